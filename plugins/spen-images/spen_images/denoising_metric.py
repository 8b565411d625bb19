"""The metric of denoised images."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spen_plugins import Batch, DataError, Metric, Proposal

BEST = 100.0  # dB, of an image without any error, so that means stay finite

DEFINITIONS = {
    "metric": (
        "PSNR = 10 log10(1 / MSE) dB of pixels from 0 to 1, of each image, then the mean over images; outputs are "
        f"clipped to [0, 1] and not rounded; at most {BEST:g} dB an image"
    ),
    "psnr_noisy": "PSNR of the noisy images themselves, as they are",
    "rmse": "root of the mean over images of the MSE, in grey levels (of 255)",
}


class DenoisingMetric(Metric):
    """PSNR of decoded images, image by image."""

    unit = "dB"

    def __init__(self, decode: Any) -> None:
        self._decode = decode
        self._errors: list[Tensor] = []
        self._noise: list[Tensor] = []
        self._labelled: list[Tensor] = []

    def update(self, proposal: Proposal, batch: Batch) -> None:
        labelled = torch.zeros_like(batch.labelled) if batch.gold is None else batch.labelled
        self._labelled.append(labelled.cpu())
        if batch.gold is None:
            return
        found = self._decode(proposal).detach().clamp(0, 1)
        noisy = batch.x.inputs["image"].unsqueeze(1)
        for errors, image in ((self._errors, found), (self._noise, noisy)):
            errors.append(squared_error(image, batch.gold, batch.x.mask)[labelled.cpu()])

    def compute(self) -> dict[str, Any]:
        if not any(map(len, self._errors)):
            raise DataError("scores", None, "no image with a clean one to compare it with", "at least one to score")
        errors, noise = torch.cat(self._errors), torch.cat(self._noise)
        return {
            "psnr": psnr(errors).mean().item(),
            "psnr_noisy": psnr(noise).mean().item(),
            "rmse": 255 * errors.mean().sqrt().item(),
        }

    def ratios(self) -> tuple[Tensor, Tensor]:
        """PSNR and 1 for each image."""
        labelled = torch.cat(self._labelled)
        numerator = torch.zeros(len(labelled), dtype=torch.double)
        if self._errors:
            numerator[labelled] = psnr(torch.cat(self._errors))
        return numerator, labelled.double()


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
