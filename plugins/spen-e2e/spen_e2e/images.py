"""Energies of images (Belanger et al. 2017, Sec. 6.1), and nets to start from or to compare with."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize

import spen_plugins as sp
from spen_plugins.nn import at_least_float32

Layer = TypeVar("Layer", bound=nn.Module)


class ImagePrior(sp.Energy):
    """E(x, y) = ½ ‖x − y‖² + w Σ over pixels of prior(y), for a noisy image x and a clean image y (Eq. 12).

    w is σ², trained in log space. Subclasses implement `prior`.
    """

    class Config(sp.Config):
        filters: int = Field(32, ge=1)
        """Number of filters of each convolution."""
        size: int = Field(7, ge=1)
        """Rows and columns of a filter; odd."""
        weight: float = Field(0.01, gt=0)
        """Initial w, the variance of the noise; trained. With pixels between 0 and 1, σ = 25 of 255 is 0.0096."""
        beta: float = Field(25.0, gt=0)
        """SoftPlus(a) = ln(1 + exp(β a)) / β; grey levels differ by far less than 1, where a small β is a line."""
        precision: Literal["float32", "bfloat16"] = "float32"
        """Type of numbers in the convolutions of the gradient in y, which `e2e.unrolled` uses; bfloat16 is several
        times faster on processors that compute in it (Intel's AMX, GPUs). The rest of a step stays in float32."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_images(self, task)
        require_filters(config.size, task)
        self.log_weight = nn.Parameter(torch.tensor(math.log(config.weight)))

    def encode(self, x: sp.X) -> tuple[Tensor, Tensor | None]:
        """The noisy image `(batch, row, column)`, and the mask."""
        return x.inputs["image"], x.mask

    def forward(self, features: tuple[Tensor, Tensor | None], y: Tensor) -> Tensor:
        image, mask = features
        prior = self.prior(*_flatten_images(y, mask))
        values = 0.5 * (image.unsqueeze(1) - y).square()
        if mask is not None:
            values = values * mask.unsqueeze(1)
        return at_least_float32(values).flatten(2).sum(-1) + self.log_weight.exp() * prior.view(y.shape[:2])

    def gradient(self, features: tuple[Tensor, Tensor | None], y: Tensor) -> Tensor:
        image, mask = features
        is_half = self.config.precision == "bfloat16"
        with torch.autocast(y.device.type, torch.bfloat16, enabled=is_half):
            prior_slope = self.slope(*_flatten_images(y, mask))
        slopes = y - image.unsqueeze(1) + self.log_weight.exp() * prior_slope.to(y.dtype).view_as(y)
        return slopes if mask is None else slopes * mask.unsqueeze(1)

    def prior(self, y: Tensor, inside: Tensor | None) -> Tensor:
        """Σ over pixels of the prior, `(image,)`; y is `(image, 1, row, column)`, and `inside` the mask as numbers, of
        the same shape, None without padding."""
        raise NotImplementedError

    def slope(self, y: Tensor, inside: Tensor | None) -> Tensor:
        """The gradient of `prior` in y, of y's shape; arbitrary on padding."""
        raise NotImplementedError

    def softplus(self, values: Tensor) -> Tensor:
        """SoftPlus with the config's β."""
        return F.softplus(values, beta=self.config.beta)

    def rises(self, values: Tensor) -> Tensor:
        """The derivative of `softplus`."""
        return torch.sigmoid(self.config.beta * values)


class FieldOfExperts(ImagePrior):
    """prior(y) = Σ_k SoftAbs(f_k ∗ y), SoftAbs(a) = (SoftPlus(a) + SoftPlus(−a)) / 2: an ℓ1 field of experts with two
    derivatives (Eq. 13, 14). It is convex in y."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.experts = nn.Conv2d(1, config.filters, config.size, padding=config.size // 2, bias=False)

    def prior(self, y: Tensor, inside: Tensor | None) -> Tensor:
        responses = self.experts(y)
        # (SoftPlus(a) + SoftPlus(−a)) / 2 is SoftPlus(a) − a / 2.
        return at_least_float32(mask_images(self.softplus(responses) - responses / 2, inside)).flatten(1).sum(-1)

    def slope(self, y: Tensor, inside: Tensor | None) -> Tensor:
        return transpose_convolution(mask_images(self.rises(self.experts(y)) - 0.5, inside), self.experts)


class DeepPrior(ImagePrior):
    """prior(y) = DNN(y): convolution, SoftPlus, convolution, SoftPlus, and a weighted sum of the channels (Eq. 15)."""

    class Config(ImagePrior.Config):
        icnn: bool = False
        """If true, the energy is convex in y: the magnitudes of the second convolution's and the sum's weights are used
        (Sec. 2.3)."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        n, size = config.filters, config.size
        self.first = nn.Conv2d(1, n, size, padding=size // 2)
        self.second = nn.Conv2d(n, n, size, padding=size // 2)
        self.last = nn.Conv2d(n, 1, 1, bias=False)
        if config.icnn:
            self.second, self.last = non_negative(self.second), non_negative(self.last)
            # Sums of SoftPlus with weights of one sign are far from 0, where SoftPlus is a line; this moves them back.
            nn.init.constant_(self.second.bias, 0)
            self.second.bias.data -= math.log(2) / config.beta * self.second.weight.detach().sum((1, 2, 3))

    def prior(self, y: Tensor, inside: Tensor | None) -> Tensor:
        hidden = mask_images(self.softplus(self.first(y)), inside)
        hidden = self.softplus(self.second(hidden))
        return at_least_float32(mask_images(self.last(hidden), inside)).flatten(1).sum(-1)

    def slope(self, y: Tensor, inside: Tensor | None) -> Tensor:
        first = self.first(y)
        second = self.second(mask_images(self.softplus(first), inside))
        slope = mask_images(self.last.weight.view(-1, 1, 1) * self.rises(second), inside)
        slope = transpose_convolution(slope, self.second) * mask_images(self.rises(first), inside)
        return transpose_convolution(slope, self.first)


class _Magnitude(nn.Module):
    """|weight|, element by element."""

    def forward(self, weight: Tensor) -> Tensor:
        return weight.abs()


def non_negative(layer: Layer) -> Layer:
    """The layer with |weight| in place of its weight; the trained parameter is still the weight, and the bias is free.

    A net (input-convex: Amos et al. 2017) is convex in y if its first layer is any linear one, all later ones are such
    layers, and the functions between them are convex and non-decreasing, like SoftPlus.
    """
    parametrize.register_parametrization(layer, "weight", _Magnitude())
    return layer


class Input(sp.InferenceNet):
    """The unchanged input image, where a descent starts; the net has no parameters."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_images(self, task)

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        return self.space.independent(x.inputs["image"].unsqueeze(1), x.mask)


class Convnet(sp.InferenceNet):
    """A feed-forward net of the deep prior's layers without the sum over pixels (Sec. 6.1.3); predicts the noise."""

    class Config(sp.Config):
        filters: int = Field(32, ge=1)
        """Number of filters of each convolution."""
        size: int = Field(7, ge=1)
        """Rows and columns of a filter; odd."""
        beta: float = Field(25.0, gt=0)
        """SoftPlus(a) = ln(1 + exp(β a)) / β, as in the deep prior."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_images(self, task)
        require_filters(config.size, task)
        n, size = config.filters, config.size
        self.first = nn.Conv2d(1, n, size, padding="same")
        self.second = nn.Conv2d(n, n, size, padding="same")
        self.last = nn.Conv2d(n, 1, 1, bias=False)

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        image = x.inputs["image"].unsqueeze(1)
        mask = None if x.mask is None else x.mask.unsqueeze(1).to(image)
        beta = self.config.beta
        hidden = mask_images(F.softplus(self.first(image), beta), mask)
        noise = self.last(F.softplus(self.second(hidden), beta))
        return self.space.independent(image - noise, x.mask)


def transpose_convolution(values: Tensor, layer: nn.Conv2d) -> Tensor:
    """The gradient in a convolution's input, from the gradient in its output, `(image, channel, row, column)` each."""
    return F.conv_transpose2d(values, layer.weight, padding=layer.padding)


def _flatten_images(y: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """y, zero on padding, and its mask as numbers: `(batch · sample, 1, row, column)` each."""
    images = y.flatten(0, 1).unsqueeze(1)
    if mask is None:
        return images, None
    inside = mask.unsqueeze(1).expand_as(y).flatten(0, 1).unsqueeze(1).to(y.dtype)
    return images * inside, inside


def mask_images(values: Tensor, inside: Tensor | None) -> Tensor:
    """The values `(image, channel, row, column)`, zero on padding: the next convolution sees the border of each image,
    not that of the batch. `inside` is as in `ImagePrior.prior`."""
    return values if inside is None else values * inside


def require_images(component: sp.Component, task: sp.Task) -> None:
    """Raises `ConfigError` unless the task goes from images of one channel to images."""
    if not isinstance(task.inputs, sp.ImageInputs) or not isinstance(task.space, sp.RealGrid):
        raise sp.ConfigError(
            f"{type(component).__name__} requires grayscale images as inputs and outputs; found "
            f"{type(task.inputs).__name__} and {type(task.space).__name__}. Use task 'images.denoising'"
        )


def require_filters(size: int, task: sp.Task, block: int = 1) -> None:
    """Raises `ConfigError` unless filters of `size` blocks, of `block` pixels each, have a middle, and fit into the
    training images."""
    if size % 2 == 0:
        raise sp.ConfigError(f"found size={size}; expected an odd number, so that filters have a centre")
    smallest = task.inputs.smallest
    if smallest is not None and smallest < size * block:
        pixels = f"size={size}" if block == 1 else f"size={size}, block={block}"
        raise sp.ConfigError(
            f"found {pixels}; expected a filter within the smallest training image or crop ({smallest})"
        )
