"""The figures of `spen plot denoise` and `spen plot masks`."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spen_plugins.figures import Out, Runs, find_groups, new_figure, save_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Images = Annotated[int, typer.Option(min=1, help="Number of test images to draw, from the first.")]


def denoise(runs: Runs, images: Images = 3, out: Out = None) -> None:
    """Draw test images: clean, noisy and denoised by each run, with their PSNR."""
    from spen_images.image_rows import denoised_rows

    groups = find_groups(runs)
    save_figure(images_figure(denoised_rows(groups, images), 2.2), groups[0], "denoise", out)


def masks(runs: Runs, images: Images = 4, out: Out = None) -> None:
    """Draw test images, their gold masks, and the masks predicted by each run, with their IoU."""
    from spen_images.image_rows import masked_rows

    groups = find_groups(runs)
    save_figure(images_figure(masked_rows(groups, images), 1.6), groups[0], "masks", out)


@styled
def images_figure(rows: Sequence[Sequence[tuple[str, Any, str]]], width: float) -> Figure:
    """Rows of images, each with its name above the first row, and its score.

    Args:
        rows: name, pixels from 0 black to 1 white `(row, column)`, in colours `(row, column, 3)`, and score in words.
        width: inches of an image.
    """
    heights = [width * cells[0][1].shape[0] / cells[0][1].shape[1] for cells in rows]
    figure = new_figure(width * len(rows[0]), sum(heights) + 0.3 * len(rows) + 0.2)
    axes = figure.subplots(len(rows), len(rows[0]), squeeze=False, height_ratios=heights)
    for number, (row, cells) in enumerate(zip(axes, rows, strict=True)):
        for axis, (name, pixels, score) in zip(row, cells, strict=True):
            axis.imshow(pixels, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axis.set_axis_off()
            names = textwrap.wrap(name, int(13 * width)) if number == 0 else []
            axis.set_title("\n".join(line for line in [*names, score] if line))
    return figure
