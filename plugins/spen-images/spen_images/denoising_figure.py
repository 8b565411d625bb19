"""Images before and after denoising, side by side (Belanger et al. 2017, Fig. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from spen_images.denoising_metric import psnr, squared_error
from spen_images.figure_examples import decode_first
from spen_plugins import ConfigError, ImageInputs, RealGrid, RunFolder, Task
from spen_plugins.figures import images_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spen_plugins.figures import Group

WIDTH = 2.2  # inches, of an image


@dataclass
class Denoised:
    """An image: without noise, with it, and as each run has denoised it; all `(row, column)`, 0 black to 1 white."""

    clean: Tensor
    noisy: Tensor
    noisy_psnr: float
    outputs: dict[str, Tensor] = field(default_factory=dict)
    """By the run's label."""
    psnrs: dict[str, float] = field(default_factory=dict)


def denoise_first(groups: Sequence[Group], count: int) -> list[Denoised]:
    """The first images of the runs' test part (validation, without one), denoised by each run.

    Of several seeds the first is taken.

    Raises:
        ConfigError: a run is none on images, or runs have other images or noise than the first.
        SpenError: data or weights are missing or have changed.
    """
    images: list[Denoised] = []
    for one in decode_first(groups, count, _require_images):
        y, clean, noisy = one.y.clamp(0, 1), one.batch.gold, one.batch.x.inputs["image"]
        if len(images) == one.number:
            error = squared_error(noisy.unsqueeze(1), clean, None)
            images.append(Denoised(clean[0, 0], noisy[0], psnr(error).item()))
        elif not torch.equal(images[one.number].noisy, noisy[0]):
            raise ConfigError(
                f"{one.run.path} has other images or other noise (task.sigma, task.noise_seed) than "
                f"{groups[0].runs[0].path}; plot them apart"
            )
        images[one.number].outputs[one.label] = y[0, 0]
        images[one.number].psnrs[one.label] = psnr(squared_error(y, clean, None)).item()
    return images


def denoising_figure(images: Sequence[Denoised]) -> Figure:
    """A row for each image: clean, noisy, and denoised by each run, with its PSNR."""
    rows = [
        [
            ("clean", image.clean.numpy(), ""),
            ("noisy", image.noisy.numpy(), f"{image.noisy_psnr:.2f} dB"),
            *((label, y.numpy(), f"{image.psnrs[label]:.2f} dB") for label, y in image.outputs.items()),
        ]
        for image in images
    ]
    return images_figure(rows, WIDTH)


def _require_images(task: Task, run: RunFolder) -> None:
    if not isinstance(task.inputs, ImageInputs) or not isinstance(task.space, RealGrid):
        name = type(task).__name__
        raise ConfigError(f"{run.path} has no images to show: its task is {name}; expected 'images.denoising'")
