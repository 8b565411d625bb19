"""End-to-end structured prediction energy networks (Belanger, Yang & McCallum 2017)."""

from __future__ import annotations

from spen_plugins import Classes, Functions, hookimpl


@hookimpl
def spen_task() -> Classes:
    return {"arcs": "spen_e2e.arcs_task:RoleArcs"}


@hookimpl
def spen_energy() -> Classes:
    return {
        "arcs": "spen_e2e.arcs:Arcs",
        "foe": "spen_e2e.images:FieldOfExperts",
        "deep_prior": "spen_e2e.images:DeepPrior",
        "residual_prior": "spen_e2e.residual:ResidualPrior",
    }


@hookimpl
def spen_inference_net() -> Classes:
    return {
        "arc_scorer": "spen_e2e.arcs:ArcScorer",
        "input": "spen_e2e.images:Input",
        "convnet": "spen_e2e.images:Convnet",
        "unrolled": "spen_e2e.unrolled:Unrolled",
    }


@hookimpl
def spen_trainer() -> Classes:
    return {"unroll": "spen_e2e.unroll:Unroll"}


@hookimpl
def spen_figure() -> Functions:
    return {
        "gbi": "spen_e2e.gbi_figures:gbi",
        "trajectory": "spen_e2e.gbi_figures:trajectory",
    }
