"""Energies of images (Belanger et al. 2017, Sec. 6.1), and nets to start from and to compare with."""

from __future__ import annotations

import math
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

import spen_plugins as sp
from spen_e2e.convex import non_negative
from spen_plugins.nn import at_least_float32


class ImagePrior(sp.Energy):
    """E(x, y) = ½ ‖x − y‖² + w Σ over pixels of prior(y), of a noisy image x and a clean one y (Eq. 12).

    w is σ², trained in log space. Subclasses implement `prior`.
    """

    class Config(sp.Config):
        filters: int = Field(32, ge=1)
        """Number of filters of each convolution."""
        size: int = Field(7, ge=1)
        """Rows and columns of a filter; odd."""
        weight: float = Field(0.01, gt=0)
        """Initial w, the variance of the noise; trained. With pixels between 0 and 1, σ = 25 of 255 is 0.0096."""

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
        batch, samples, *size = y.shape
        inside = None if mask is None else mask.unsqueeze(1).expand(batch, samples, *size).flatten(0, 1).unsqueeze(1)
        prior = self.prior(y.flatten(0, 1).unsqueeze(1), None if inside is None else inside.to(y.dtype))
        values = 0.5 * (image.unsqueeze(1) - y).square() + self.log_weight.exp() * prior.view_as(y)
        if mask is not None:
            values = values * mask.unsqueeze(1)
        return at_least_float32(values).flatten(2).sum(-1)

    def prior(self, y: Tensor, inside: Tensor | None) -> Tensor:
        """The prior's energy at each pixel, `(image, 1, row, column)`.

        Args:
            y: `(image, 1, row, column)`.
            inside: the mask as numbers, of the same shape; None without padding.
        """
        raise NotImplementedError


class FieldOfExperts(ImagePrior):
    """prior(y) = Σ_k SoftAbs(f_k ∗ y), SoftAbs(a) = (SoftPlus(a) + SoftPlus(−a)) / 2: an ℓ1 field of experts with two
    derivatives (Eq. 13, 14). It is convex in y."""

    class Config(ImagePrior.Config):
        beta: float = Field(25.0, gt=0)
        """SoftPlus(a) = ln(1 + exp(β a)) / β."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.experts = nn.Conv2d(1, config.filters, config.size, padding="same", bias=False)

    def prior(self, y: Tensor, inside: Tensor | None) -> Tensor:
        found = self.experts(y)
        # (SoftPlus(a) + SoftPlus(−a)) / 2 is SoftPlus(a) − a / 2.
        values = F.softplus(found, beta=self.config.beta) - found / 2
        return values.sum(1, keepdim=True)


class DeepPrior(ImagePrior):
    """prior(y) = DNN(y): convolution, SoftPlus, convolution, SoftPlus, and a weighted sum of the channels (Eq. 15)."""

    class Config(ImagePrior.Config):
        icnn: bool = False
        """If true, the energy is convex in y: the magnitudes of the second convolution's and the sum's weights are used
        (Sec. 2.3)."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        n, size = config.filters, config.size
        self.first = nn.Conv2d(1, n, size, padding="same")
        self.second = nn.Conv2d(n, n, size, padding="same")
        self.last = nn.Conv2d(n, 1, 1, bias=False)
        if config.icnn:
            self.second, self.last = non_negative(self.second), non_negative(self.last)
            # Sums of SoftPlus with weights of one sign are far from 0, where SoftPlus is a line; this moves them back.
            nn.init.constant_(self.second.bias, 0)
            self.second.bias.data -= math.log(2) * self.second.weight.detach().sum((1, 2, 3))

    def prior(self, y: Tensor, inside: Tensor | None) -> Tensor:
        hidden = within(F.softplus(self.first(y)), inside)
        hidden = F.softplus(self.second(hidden))
        return self.last(hidden)


class Input(sp.InferenceNet):
    """The input image as it is: where a descent starts. It has no parameters."""

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
        inside = None if x.mask is None else x.mask.unsqueeze(1).to(image)
        hidden = within(F.softplus(self.first(image)), inside)
        noise = self.last(F.softplus(self.second(hidden)))
        return self.space.independent(image - noise, x.mask)


def within(values: Tensor, inside: Tensor | None) -> Tensor:
    """Zero on padding, so that the next convolution sees an image's border where it is, not where its batch's is."""
    return values if inside is None else values * inside


def require_images(component: sp.Component, task: sp.Task) -> None:
    """Raise `ConfigError` unless the task goes from images of one channel to images."""
    if not isinstance(task.inputs, sp.ImageInputs) or not isinstance(task.space, sp.RealGrid):
        raise sp.ConfigError(
            f"{type(component).__name__} works on grayscale images, but the task has {type(task.inputs).__name__} and "
            f"{type(task.space).__name__}; choose task 'denoising'"
        )


def require_filters(size: int, task: sp.Task) -> None:
    """Raise `ConfigError` unless filters have a middle, and fit into the images that are trained on."""
    if size % 2 == 0:
        raise sp.ConfigError(f"size={size}: a filter has an odd number of rows, so that it has a middle")
    smallest = task.inputs.smallest
    if smallest is not None and smallest < size:
        raise sp.ConfigError(f"size={size}: the filter is larger than the smallest training image or crop ({smallest})")
