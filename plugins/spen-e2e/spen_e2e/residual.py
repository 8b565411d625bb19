"""A deeper prior of images than the paper's, for the same time: a residual net on blocks of pixels."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

import spen_plugins as sp
from spen_e2e.images import ImagePrior, mask_images, require_filters, transpose_convolution
from spen_plugins.nn import at_least_float32


class ResidualPrior(ImagePrior):
    """prior(y) = Σ over blocks of vᵀ h_L, h_0 = SoftPlus(f_0 ∗ blocks(y)), h_l = h_{l−1} + SoftPlus(f_l ∗ h_{l−1}).

    The channels of blocks(y) are the pixels of each block of `block` × `block` (Zhang et al. 2018, FFDNet), so that a
    convolution costs block² times less, and sees block times as far. An image whose sides are not multiples of `block`
    is padded with zeros after its last pixels.
    """

    class Config(ImagePrior.Config):
        filters: int = Field(48, ge=1)
        """Number of filters of each convolution."""
        size: int = Field(3, ge=1)
        """Rows and columns of a filter, in blocks; odd."""
        layers: int = Field(4, ge=1, le=1000)
        """L, the number of convolutions after the first."""
        block: int = Field(2, ge=1)
        """Rows and columns of a block, in pixels."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_filters(config.size, task, config.block)
        n, size = config.filters, config.size
        self.first = nn.Conv2d(config.block**2, n, size, padding=size // 2)
        self.others = nn.ModuleList(nn.Conv2d(n, n, size, padding=size // 2) for _ in range(config.layers))
        self.last = nn.Conv2d(n, 1, 1, bias=False)

    def prior(self, y: Tensor, inside: Tensor | None) -> Tensor:
        blocks, inside = self._split_blocks(y, inside)
        hidden = mask_images(self.softplus(self.first(blocks)), inside)
        for layer in self.others:
            hidden = hidden + mask_images(self.softplus(layer(hidden)), inside)
        return at_least_float32(self.last(hidden)).flatten(1).sum(-1)

    def slope(self, y: Tensor, inside: Tensor | None) -> Tensor:
        blocks, inside = self._split_blocks(y, inside)
        first = self.first(blocks)
        hidden, responses = mask_images(self.softplus(first), inside), []
        for layer in self.others:
            responses.append(layer(hidden))
            hidden = hidden + mask_images(self.softplus(responses[-1]), inside)
        gradient = self.last.weight.view(-1, 1, 1)
        for layer, values in zip(reversed(self.others), reversed(responses), strict=True):
            gradient = gradient + transpose_convolution(mask_images(gradient * self.rises(values), inside), layer)
        slope = transpose_convolution(mask_images(gradient * self.rises(first), inside), self.first)
        return F.pixel_shuffle(slope, self.config.block)[..., : y.shape[-2], : y.shape[-1]]

    def _split_blocks(self, y: Tensor, inside: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Blocks of y, `(image, block², row, column)`, and the mask of those with a pixel of the image, or None."""
        n = self.config.block
        rows, columns = (-size % n for size in y.shape[-2:])
        y = F.pad(y, (0, columns, 0, rows))
        if inside is not None:
            inside = F.max_pool2d(F.pad(inside, (0, columns, 0, rows)), n)
        return F.pixel_unshuffle(y, n), inside
