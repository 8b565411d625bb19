"""Output structures whose partition function, marginals and samples are exact, and losses for energies without them."""

from __future__ import annotations

from spen_plugins import Classes, hookimpl


@hookimpl
def spen_energy() -> Classes:
    return {
        "counts": "spen_exact.counts:CountsEnergy",
        "hierarchy": "spen_exact.hierarchy:HierarchyEnergy",
        "star": "spen_exact.star:StarEnergy",
        "segments": "spen_exact.segments:Segments",
    }


@hookimpl
def spen_inference_net() -> Classes:
    return {
        "counts": "spen_exact.counts:Counts",
        "hierarchy": "spen_exact.hierarchy:Hierarchy",
        "star": "spen_exact.star:StarNet",
        "mixture": "spen_exact.mixture:LabelMixtureNet",
        "segments": "spen_exact.segments:SegmentsNet",
    }


@hookimpl
def spen_energy_loss() -> Classes:
    return {
        "partition": "spen_exact.partition:Partition",
        "fenchel_young": "spen_exact.fenchel_young:FenchelYoung",
    }
