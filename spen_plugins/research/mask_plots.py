"""Images with their masks, gold and predicted, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from spen_plugins.builtin.tasks.segmentation import Segmentation
from spen_plugins.errors import ConfigError
from spen_plugins.figures.kit import images_figure
from spen_plugins.registry import Registry
from spen_plugins.runs.own_data import load_task
from spen_plugins.runs.predictor import Predictor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spen_plugins.runs.groups import Group

WIDTH = 1.6  # inches, of an image


@dataclass
class Masked:
    """An image, its gold mask, and the mask that each run predicts, `(row, column)`, by the run's label."""

    image: np.ndarray
    gold: np.ndarray
    outputs: dict[str, np.ndarray] = field(default_factory=dict)
    ious: dict[str, float] = field(default_factory=dict)


def masked(groups: Sequence[Group], count: int) -> list[Masked]:
    """The first images of the runs' test part, with the masks that each run predicts.

    Of several seeds the first is taken.

    Raises:
        ConfigError: a run is none of segmentation, or runs have other images than the first.
        SpenError: data or weights are missing or have changed.
    """
    found: list[Masked] = []
    for group in groups:
        run = group.runs[0]
        registry = Registry()
        task = load_task(run, registry)
        if not isinstance(task, Segmentation):
            name = type(task).__name__
            raise ConfigError(f"{run.path} has no masks to show: its task is {name}; expected 'segmentation'")
        predictor = Predictor(run, registry=registry)
        for number, example in enumerate(task.part("test")[:count]):
            batch = task.collate([example])
            with torch.no_grad():
                y = task.decode(predictor.model.propose(batch.x), batch.x)
            if len(found) == number:
                found.append(Masked(example.image, batch.gold[0, 0].numpy()))
            elif not np.array_equal(found[number].image, example.image):
                raise ConfigError(f"{run.path} has other images than {groups[0].runs[0].path}; plot them apart")
            found[number].outputs[group.label] = y[0, 0].numpy()
            found[number].ious[group.label] = task.space.score(y, batch.gold, None).item()
    return found


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
