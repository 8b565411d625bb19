"""Images with their masks, gold and predicted, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from spen_images.figure_examples import decode_first
from spen_images.segmentation import Segmentation
from spen_plugins import ConfigError, RunFolder, Task
from spen_plugins.figures import images_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spen_plugins.figures import Group

WIDTH = 1.6  # inches, of an image


@dataclass
class Masked:
    """An image, its gold mask, and the mask that each run predicts, `(row, column)`, by the run's label."""

    image: np.ndarray
    gold: np.ndarray
    outputs: dict[str, np.ndarray] = field(default_factory=dict)
    ious: dict[str, float] = field(default_factory=dict)


def mask_first(groups: Sequence[Group], count: int) -> list[Masked]:
    """The first images of the runs' test part, with the masks that each run predicts.

    Of several seeds the first is taken.

    Raises:
        ConfigError: a run is none of segmentation, or runs have other images than the first.
        SpenError: data or weights are missing or have changed.
    """
    images: list[Masked] = []
    for one in decode_first(groups, count, _require_masks):
        if len(images) == one.number:
            images.append(Masked(one.example.image, one.batch.gold[0, 0].numpy()))
        elif not np.array_equal(images[one.number].image, one.example.image):
            raise ConfigError(f"{one.run.path} has other images than {groups[0].runs[0].path}; plot them apart")
        images[one.number].outputs[one.label] = one.y[0, 0].numpy()
        images[one.number].ious[one.label] = one.task.space.score(one.y, one.batch.gold, None).item()
    return images


def masks_figure(images: Sequence[Masked]) -> Figure:
    """A row for each image: the image, its gold mask, and that of each run with its IoU."""
    rows = [
        [
            ("image", image.image / 255, ""),
            ("gold", image.gold, ""),
            *((label, y, f"IoU {image.ious[label]:.3f}") for label, y in image.outputs.items()),
        ]
        for image in images
    ]
    return images_figure(rows, WIDTH)


def _require_masks(task: Task, run: RunFolder) -> None:
    if not isinstance(task, Segmentation):
        name = type(task).__name__
        raise ConfigError(f"{run.path} has no masks to show: its task is {name}; expected 'images.segmentation'")
