"""The metric of masks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spen_plugins import Batch, BinaryGrid, DataError, Metric, Proposal

DEFINITIONS = {
    "metric": (
        "IoU of each image, |y and gold| / |y or gold| of masks cut at 0.5, 1 where both are empty, then the mean over "
        "images"
    ),
    "pixel_accuracy": "share of right pixels, of all pixels of all images",
}


class SegmentationMetric(Metric):
    """IoU of decoded masks, image by image."""

    def __init__(self, decode: Any) -> None:
        self._decode = decode
        self._ious: list[Tensor] = []
        self._labelled: list[Tensor] = []
        self._right = self._pixels = 0.0

    def update(self, proposal: Proposal, batch: Batch) -> None:
        labelled = (torch.zeros_like(batch.labelled) if batch.gold is None else batch.labelled).cpu()
        self._labelled.append(labelled)
        if batch.gold is None:
            return
        found, gold = (y.detach().cpu().double()[labelled] for y in (self._decode(proposal, batch.x), batch.gold))
        mask = None if batch.x.mask is None else batch.x.mask.cpu()[labelled]
        space = BinaryGrid()
        self._ious.append(space.score(found, gold, mask)[:, 0])
        pixels = float(space.size(gold, mask).sum())
        self._pixels += pixels
        self._right += pixels - float(space.cost(found, gold, mask).sum())

    def compute(self) -> dict[str, Any]:
        if not any(map(len, self._ious)):
            raise DataError("scores", None, "no image with a mask to compare it with", "at least one to score")
        return {"iou": torch.cat(self._ious).mean().item(), "pixel_accuracy": self._right / self._pixels}

    def ratios(self) -> tuple[Tensor, Tensor]:
        """IoU and 1 for each image."""
        labelled = torch.cat(self._labelled)
        numerator = torch.zeros(len(labelled), dtype=torch.double)
        if self._ious:
            numerator[labelled] = torch.cat(self._ious)
        return numerator, labelled.double()
