"""The part that metrics of images have in common: a score of each decoded image."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from spen_plugins import Batch, DataError, Metric, Proposal


class ImageMetric(Metric):
    """The mean of a score of decoded images, image by image. Subclasses implement `score_images` and `summarise`.

    Args:
        decode: decodes a proposal, as the task does.
    """

    def __init__(self, decode: Any) -> None:
        self._decode = decode
        self._scores: list[Tensor] = []
        self._labelled: list[Tensor] = []

    @abstractmethod
    def score_images(self, proposal: Proposal, batch: Batch, labelled: Tensor) -> Tensor:
        """Scores of the images with gold, `(labelled,)` float64; `labelled` is `(batch,)`, all on the CPU."""

    @abstractmethod
    def summarise(self, mean: float) -> dict[str, Any]:
        """All scores, given the mean over images."""

    def update(self, proposal: Proposal, batch: Batch) -> None:
        labelled = (torch.zeros_like(batch.labelled) if batch.gold is None else batch.labelled).cpu()
        self._labelled.append(labelled)
        if batch.gold is not None:
            self._scores.append(self.score_images(proposal, batch, labelled))

    def compute(self) -> dict[str, Any]:
        if not any(map(len, self._scores)):
            raise DataError("scores", None, "no image with gold to compare it with", "at least one to score")
        return self.summarise(torch.cat(self._scores).mean().item())

    def ratios(self) -> tuple[Tensor, Tensor]:
        """The score and 1 for each image."""
        labelled = torch.cat(self._labelled)
        numerator = torch.zeros(len(labelled), dtype=torch.double)
        if self._scores:
            numerator[labelled] = torch.cat(self._scores)
        return numerator, labelled.double()
