"""The figures of `spen plot denoise` and `spen plot masks`."""

from __future__ import annotations

from typing import Annotated

import typer

from spen_plugins.figures import Out, Runs, find_groups, images_figure, save_figure

Images = Annotated[int, typer.Option(min=1, help="Number of images, the first ones of the test part.")]


def denoise(runs: Runs, images: Images = 3, out: Out = None) -> None:
    """Test images: clean, noisy and denoised by each run, with their PSNR."""
    from spen_images.image_rows import denoised_rows

    groups = find_groups(runs)
    save_figure(images_figure(denoised_rows(groups, images), 2.2), groups[0], "denoise", out)


def masks(runs: Runs, images: Images = 4, out: Out = None) -> None:
    """Test images: image, gold mask, and the mask predicted by each run, with its IoU."""
    from spen_images.image_rows import masked_rows

    groups = find_groups(runs)
    save_figure(images_figure(masked_rows(groups, images), 1.6), groups[0], "masks", out)
