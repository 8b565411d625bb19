"""Rows of images: what is given, and what each run makes of it (Belanger et al. 2017, Fig. 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from spen_images.denoising import Denoising
from spen_images.denoising_values import psnr, squared_error
from spen_images.segmentation import Segmentation
from spen_plugins import Batch, ConfigError, Predictor, Registry, Task
from spen_plugins.figures import load_task

if TYPE_CHECKING:
    from spen_plugins.figures import Group

Cell = tuple[str, np.ndarray, str]
"""Name, pixels and score in words, as of `images_figure`."""
Show = Callable[[Any, Any, Batch, Tensor], tuple[list[Cell], np.ndarray, str]]
"""Task, example, its batch and a run's output -> the cells of what is given, and the run's pixels and score."""


def denoised_rows(groups: Sequence[Group], count: int) -> list[list[Cell]]:
    """A row for each image: clean, noisy, and denoised by each run, with its PSNR."""
    differs = "other images or other noise (task.sigma, task.noise_seed)"
    return _make_rows(groups, count, Denoising, ("images", differs, 1), _show_denoised)


def masked_rows(groups: Sequence[Group], count: int) -> list[list[Cell]]:
    """A row for each image: the image, its gold mask, and that of each run with its IoU."""
    return _make_rows(groups, count, Segmentation, ("masks", "other images", 0), _show_masked)


def _make_rows(
    groups: Sequence[Group], count: int, kind: type[Task], words: tuple[str, str, int], show: Show
) -> list[list[Cell]]:
    """The first images of the runs' test part (validation, without one), each by the first run of each group;
    `ConfigError` if a run is of another task, or its given cell of the number in `words` is not that of the first run.
    """
    what, differs, same = words
    rows: list[list[Cell]] = []
    for group in groups:
        run, registry = group.runs[0], Registry()
        task = load_task(run, registry)
        if not isinstance(task, kind):
            wanted = f"its task is {type(task).__name__}; expected 'images.{kind.__name__.lower()}'"
            raise ConfigError(f"{run.path} has no {what} to show: {wanted}")
        model = Predictor(run, registry=registry).model
        for number, example in enumerate((task.part("test") or task.part("validation"))[:count]):
            batch = task.collate([example])
            with torch.no_grad():
                y = task.decode(model.propose(batch.x), batch.x)
            given, pixels, score = show(task, example, batch, y)
            if number == len(rows):
                rows.append(given)
            elif not np.array_equal(given[same][1], rows[number][same][1]):
                raise ConfigError(f"{run.path} has {differs} than {groups[0].runs[0].path}; plot them separately")
            rows[number].append((group.label, pixels, score))
    return rows


def _show_denoised(task: Denoising, example: Any, batch: Batch, y: Tensor) -> tuple[list[Cell], np.ndarray, str]:
    y, noisy = y.clamp(0, 1), batch.x.inputs["image"].unsqueeze(1)
    before, after = (f"{psnr(squared_error(image, batch.gold, None)).item():.2f} dB" for image in (noisy, y))
    given = [("clean", batch.gold[0, 0].numpy(), ""), ("noisy", noisy[0, 0].numpy(), before)]
    return given, y[0, 0].numpy(), after


def _show_masked(task: Segmentation, example: Any, batch: Batch, y: Tensor) -> tuple[list[Cell], np.ndarray, str]:
    given = [("image", example.image / 255, ""), ("gold", batch.gold[0, 0].numpy(), "")]
    return given, y[0, 0].numpy(), f"IoU {task.space.score(y, batch.gold, None).item():.3f}"
