"""Images: the tasks `denoising` and `segmentation`, nets, an energy of convolutions, noise for it, and figures."""

from __future__ import annotations

from spen_plugins import Classes, Functions, hookimpl


@hookimpl
def spen_task() -> Classes:
    return {
        "denoising": "spen_images.denoising:Denoising",
        "segmentation": "spen_images.segmentation:Segmentation",
    }


@hookimpl
def spen_inference_net() -> Classes:
    return {
        "fcn": "spen_images.convolutions:Fcn",
        "cglow": "spen_images.cglow:Cglow",
        "beside_flow": "spen_images.flow_noise:BesideFlow",
    }


@hookimpl
def spen_energy() -> Classes:
    return {"conv": "spen_images.convolutions:Conv"}


@hookimpl
def spen_energy_loss() -> Classes:
    return {"flow_nce": "spen_images.flow_noise:FlowNce"}


@hookimpl
def spen_figure() -> Functions:
    return {
        "denoise": "spen_images.figures:denoise",
        "masks": "spen_images.figures:masks",
    }
