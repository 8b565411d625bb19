"""Implicit training of the energy (Shankar & Piratla)."""

from __future__ import annotations

from spen_plugins import Classes, Functions, hookimpl


@hookimpl
def spen_task() -> Classes:
    return {"citations": "spen_implicit.citations.task:Citations"}


@hookimpl
def spen_energy_loss() -> Classes:
    return {"cd": "spen_implicit.divergence:ContrastiveDivergence"}


@hookimpl
def spen_trainer() -> Classes:
    return {"bilevel": "spen_implicit.bilevel:Bilevel"}


@hookimpl
def spen_figure() -> Functions:
    return {"hessian": "spen_implicit.hessian_plots:hessian"}
