"""The metric of masks."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from spen_images.image_metric import ImageMetric
from spen_plugins import Batch, BinaryGrid, Proposal

DEFINITIONS = {
    "metric": (
        "IoU of each image, |y and gold| / |y or gold| of masks cut at 0.5, 1 where both are empty, then the mean over "
        "images"
    ),
    "pixel_accuracy": "share of right pixels, of all pixels of all images",
}


class SegmentationMetric(ImageMetric):
    """IoU of decoded masks, image by image."""

    def __init__(self, decode: Any) -> None:
        super().__init__(decode)
        self._right = self._pixels = 0.0

    def score_images(self, proposal: Proposal, batch: Batch, labelled: Tensor) -> Tensor:
        decided, gold = (y.detach().cpu().double()[labelled] for y in (self._decode(proposal, batch.x), batch.gold))
        mask = None if batch.x.mask is None else batch.x.mask.cpu()[labelled]
        space = BinaryGrid()
        pixels = float(space.size(gold, mask).sum())
        self._pixels += pixels
        self._right += pixels - float(space.cost(decided, gold, mask).sum())
        return space.score(decided, gold, mask)[:, 0]

    def summarise(self, mean: float) -> dict[str, Any]:
        return {"iou": mean, "pixel_accuracy": self._right / self._pixels}
