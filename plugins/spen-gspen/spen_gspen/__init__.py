"""Graph structured prediction energy networks: potentials on pairs, and a global term (Graber & Schwing 2019)."""

from __future__ import annotations

from spen_plugins import Classes, hookimpl


@hookimpl
def spen_energy() -> Classes:
    return {"star": "spen_gspen.energy:StarGraph"}


@hookimpl
def spen_inference_net() -> Classes:
    return {"mirror": "spen_gspen.mirror:MirrorNet"}


@hookimpl
def spen_energy_loss() -> Classes:
    return {"gap": "spen_gspen.gap:Gap"}


@hookimpl
def spen_trainer() -> Classes:
    return {"staged": "spen_gspen.staged:Staged"}
