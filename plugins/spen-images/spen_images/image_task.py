"""Common base of tasks from images to grids: parts, batches of several sizes, predictions as PNG, scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

import spen_plugins as sp
from spen_images.images import WHITE, to_base64


class ImageTask(sp.Task, sp.Augments):
    """From an image to a number from 0 to 1 for each pixel; examples have `name` and `shape`, `(rows, columns)`."""

    key: ClassVar[str]
    """Key of a prediction's image, a PNG in base64, 8 bits; its other keys are `name` and, with gold, the score."""
    digits: ClassVar[int]
    """Digits to which a prediction's score is rounded."""
    unit: ClassVar[str] = ""
    """Unit of the score."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._parts: dict[str, list[Any]] = {part: [] for part in sp.PARTS}
        self._checksums: dict[str, str] = {}

    @abstractmethod
    def pixels(self, example: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """An example's input, `(row, column, channel)`, and gold, `(row, column)`, as the net sees them."""

    @abstractmethod
    def measure(self, proposal: sp.Proposal, batch: sp.Batch) -> dict[str, Tensor]:
        """Measures of each image, `(batch,)` float64 on the CPU, by name, with `selection`; gold is known."""

    @abstractmethod
    def summarise(self, measured: dict[str, Tensor]) -> dict[str, Any]:
        """The scores, given the measures of all images with gold."""

    def part(self, name: str) -> Sequence[Any]:
        return self._parts[name]

    def checksums(self) -> dict[str, str]:
        return dict(self._checksums)

    def length(self, example: Any) -> int:
        """Orders examples by rows, then by columns, so that few batches hold images of different sizes."""
        rows, columns = example.shape
        return rows * 2**16 + columns

    def show(self, example: Any) -> sp.Shown:
        """The image's name and size."""
        return sp.Shown([f"{example.name} ({example.shape[0]} rows, {example.shape[1]} columns)"])

    def collate(self, examples: Sequence[Any], rows: Sequence[int] | None = None) -> sp.Batch:
        shapes = np.array([example.shape for example in examples])
        size = len(examples), *shapes.max(0).tolist()
        image, gold = np.zeros((*size, self.inputs.channels), np.float32), np.zeros(size, np.float32)
        labelled = []
        for i, (example, (height, width)) in enumerate(zip(examples, shapes.tolist(), strict=True)):
            image[i, :height, :width], target = self.pixels(example)
            gold[i, :height, :width] = 0 if target is None else target
            labelled.append(target is not None)
        levels = torch.from_numpy(image).movedim(3, 1)
        levels = levels[:, 0] if self.inputs.channels == 1 else levels.contiguous()
        masks = [np.arange(longest) < lengths[:, None] for longest, lengths in zip(size[1:], shapes.T, strict=True)]
        is_padded = (shapes != shapes[0]).any()
        mask = torch.from_numpy(masks[0][:, :, None] & masks[1][:, None]) if is_padded else None
        return sp.Batch.of({"image": levels}, mask, torch.from_numpy(gold).unsqueeze(1), labelled, rows)

    def metric(self) -> ImageMetric:
        return ImageMetric(self)

    def predictions(self, proposal: sp.Proposal, batch: sp.Batch, examples: Sequence[Any]) -> list[dict[str, Any]]:
        decoded = self.decode(proposal, batch.x).detach().float().clamp(0, 1)
        scores = {} if batch.gold is None else self.measure(proposal, batch)
        levels = (decoded * WHITE).round().byte()[:, 0].cpu().numpy()
        answers = [
            {"name": e.name, self.key: to_base64(np.ascontiguousarray(y[: e.shape[0], : e.shape[1]]))}
            for e, y in zip(examples, levels, strict=True)
        ]
        for i in batch.labelled.nonzero()[:, 0].tolist():
            answers[i][self.selection] = round(scores[self.selection][i].item(), self.digits)
        return answers


class ImageMetric(sp.Metric):
    """The mean of an image task's score over images, and its other scores."""

    def __init__(self, task: ImageTask) -> None:
        self._task, self.unit = task, task.unit
        self._measured: list[dict[str, Tensor]] = []
        self._labelled: list[Tensor] = []

    def update(self, proposal: sp.Proposal, batch: sp.Batch) -> None:
        labelled = (torch.zeros_like(batch.labelled) if batch.gold is None else batch.labelled).cpu()
        self._labelled.append(labelled)
        if batch.gold is not None:
            self._measured.append({k: v[labelled] for k, v in self._task.measure(proposal, batch).items()})

    def compute(self) -> dict[str, Any]:
        if not any(map(torch.any, self._labelled)):
            raise sp.DataError("scores", None, "no image with gold to compare it with", "at least one to score")
        names = self._measured[0]
        return self._task.summarise({k: torch.cat([measured[k] for measured in self._measured]) for k in names})

    def ratios(self) -> tuple[Tensor, Tensor]:
        """The score and 1 for each image."""
        labelled = torch.cat(self._labelled)
        numerator = torch.zeros(len(labelled), dtype=torch.double)
        if self._measured:
            numerator[labelled] = torch.cat([measured[self._task.selection] for measured in self._measured])
        return numerator, labelled.double()
