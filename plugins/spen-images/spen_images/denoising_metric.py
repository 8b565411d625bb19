"""The metric of denoised images."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spen_images.image_metric import ImageMetric
from spen_plugins import Batch, Proposal

BEST = 100.0  # dB, of an image without any error, so that means stay finite

DEFINITIONS = {
    "metric": (
        "PSNR = 10 log10(1 / MSE) dB of pixels from 0 to 1, of each image, then the mean over images; outputs are "
        f"clipped to [0, 1] and not rounded; at most {BEST:g} dB an image"
    ),
    "psnr_noisy": "PSNR of the noisy images themselves, as they are",
    "rmse": "root of the mean over images of the MSE, in grey levels (of 255)",
}


class DenoisingMetric(ImageMetric):
    """PSNR of decoded images, image by image."""

    unit = "dB"

    def __init__(self, decode: Any) -> None:
        super().__init__(decode)
        self._errors: list[Tensor] = []
        self._noise: list[Tensor] = []

    def score_images(self, proposal: Proposal, batch: Batch, labelled: Tensor) -> Tensor:
        decided = self._decode(proposal).detach().clamp(0, 1)
        noisy = batch.x.inputs["image"].unsqueeze(1)
        for errors, image in ((self._errors, decided), (self._noise, noisy)):
            errors.append(squared_error(image, batch.gold, batch.x.mask)[labelled])
        return psnr(self._errors[-1])

    def summarise(self, mean: float) -> dict[str, Any]:
        return {
            "psnr": mean,
            "psnr_noisy": psnr(torch.cat(self._noise)).mean().item(),
            "rmse": 255 * torch.cat(self._errors).mean().sqrt().item(),
        }


def squared_error(y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
    """Mean of (y − gold)² over an image's own pixels, `(batch,)` float64 on the CPU.

    Args:
        y, gold: `(batch, 1, row, column)`.
        mask: `(batch, row, column)`.
    """
    squares = (y[:, 0].cpu().double() - gold[:, 0].cpu().double()).square()
    if mask is None:
        return squares.flatten(1).mean(1)
    inside = mask.cpu().double()
    return (squares * inside).flatten(1).sum(1) / inside.flatten(1).sum(1)


def psnr(error: Tensor) -> Tensor:
    """10 log10(1 / MSE), at most 100 dB."""
    return -10 * error.clamp(min=10 ** (-BEST / 10)).log10()
