"""Rows of images: the given ones, and the output of each run (Belanger et al. 2017, Fig. 1)."""

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
"""Name, pixels and score in words, as in `images_figure`."""
Show = Callable[[Any, Any, Batch, Tensor], tuple[list[Cell], np.ndarray, str]]
"""Task, example, its batch and a run's output -> the given images' cells, and the run's pixels and score."""


def denoised_rows(groups: Sequence[Group], count: int) -> list[list[Cell]]:
    """A row for each image: clean, noisy, and denoised by each run, with its PSNR."""
    difference = "other images or other noise (task.sigma, task.noise_seed)"
    return _make_rows(groups, count, Denoising, ("images", difference, 1), _show_denoised)


def masked_rows(groups: Sequence[Group], count: int) -> list[list[Cell]]:
    """A row for each image: the image, its gold mask, and the mask of each run with its IoU."""
    return _make_rows(groups, count, Segmentation, ("masks", "other images", 0), _show_masked)


def _make_rows(
    groups: Sequence[Group], count: int, kind: type[Task], words: tuple[str, str, int], show: Show
) -> list[list[Cell]]:
    """The first images of the runs' test part (validation, without one), each by the first run of each group;
    `ConfigError` if a run is of another task, or its given cell of the number in `words` differs from the first run's.
    """
    noun, difference, shared = words
    rows: list[list[Cell]] = []
    for group in groups:
        run, registry = group.runs[0], Registry()
        task = load_task(run, registry)
        if not isinstance(task, kind):
            problem = f"its task is {type(task).__name__}; expected 'images.{kind.__name__.lower()}'"
            raise ConfigError(f"{run.path} has no {noun} to show: {problem}")
        model = Predictor(run, registry=registry).model
        for number, example in enumerate((task.part("test") or task.part("validation"))[:count]):
            batch = task.collate([example])
            with torch.no_grad():
                y = task.decode(model.propose(batch.x), batch.x)
            cells, pixels, score = show(task, example, batch, y)
            if number == len(rows):
                rows.append(cells)
            elif not np.array_equal(cells[shared][1], rows[number][shared][1]):
                raise ConfigError(f"{run.path} has {difference} than {groups[0].runs[0].path}; plot them separately")
            rows[number].append((group.label, pixels, score))
    return rows


def _show_denoised(task: Denoising, example: Any, batch: Batch, y: Tensor) -> tuple[list[Cell], np.ndarray, str]:
    y, noisy = y.clamp(0, 1), batch.x.inputs["image"].unsqueeze(1)
    noisy_score, score = (f"{psnr(squared_error(image, batch.gold, None)).item():.2f} dB" for image in (noisy, y))
    cells = [("clean", batch.gold[0, 0].numpy(), ""), ("noisy", noisy[0, 0].numpy(), noisy_score)]
    return cells, y[0, 0].numpy(), score


def _show_masked(task: Segmentation, example: Any, batch: Batch, y: Tensor) -> tuple[list[Cell], np.ndarray, str]:
    cells = [("image", example.image / 255, ""), ("gold", batch.gold[0, 0].numpy(), "")]
    return cells, y[0, 0].numpy(), f"IoU {task.space.score(y, batch.gold, None).item():.3f}"
