"""Output structures whose partition function, marginals and samples are exact."""

from __future__ import annotations

from spen_plugins import Classes, hookimpl


@hookimpl
def spen_energy() -> Classes:
    return {
        "counts": "spen_exact.counts:CountsEnergy",
        "hierarchy": "spen_exact.hierarchy:HierarchyEnergy",
        "star": "spen_exact.star:StarEnergy",
    }


@hookimpl
def spen_inference_net() -> Classes:
    return {
        "counts": "spen_exact.counts:Counts",
        "hierarchy": "spen_exact.hierarchy:Hierarchy",
        "star": "spen_exact.star:StarNet",
    }
