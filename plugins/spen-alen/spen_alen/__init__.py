"""Adversarial localized energy networks: a net proposes, some gradient steps refine (Pan et al. 2020)."""

from __future__ import annotations

from spen_plugins import Classes, hookimpl


@hookimpl
def spen_inference_net() -> Classes:
    return {"refine": "spen_alen.refine:Refine"}


@hookimpl
def spen_energy_loss() -> Classes:
    return {"margin": "spen_alen.margin:Margin"}
