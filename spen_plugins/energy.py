"""Energies: E(x, y), one number per example and output; low is good."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from spen_plugins.batch import X
from spen_plugins.component import Component
from spen_plugins.errors import ConfigError, PluginError
from spen_plugins.spaces import SparseLabels


class Energy(Component):
    """E_Θ(x, y), also called the loss-net.

    Subclasses implement `forward`; those with `uses_features = True` usually override `encode`, too, so that the part
    that does not depend on y is computed once for many outputs.
    """

    takes_sparse: ClassVar[bool] = False
    """If true, `forward` also takes label sets as `SparseLabels`; otherwise it gets the dense tensor."""
    takes_runs: ClassVar[bool] = False
    """If true, `init.energy` names finished runs, whose inference nets become its part `nets`."""

    def __call__(self, features: Any, y: Tensor | SparseLabels) -> Tensor:
        """Calls `forward` and checks the shape of the result: another would be broadcast, and train at a wrong scale.

        Raises:
            PluginError: the energies are not `(batch, sample)`.
        """
        energies = super().__call__(features, y)
        if energies.shape != y.shape[:2]:
            raise PluginError(
                f"{type(self).__name__} returned energies of shape {tuple(energies.shape)} for outputs of shape "
                f"{tuple(y.shape)}; expected (batch, sample) = {tuple(y.shape[:2])}"
            )
        return energies

    def encode(self, x: X) -> Any:
        """The part of the energy that does not depend on y, including the mask."""
        return x.mask if self.features is None else (self.features(x), x.mask)

    def forward(self, features: Any, y: Tensor) -> Tensor:
        """Energies of `y` `(batch, sample, *variables)` given `encode(x)`: `(batch, sample)`."""
        raise NotImplementedError(f"{type(self).__name__} does not implement forward")

    def gradient(self, features: Any, y: Tensor) -> Tensor:
        """dE/dy, of y's shape; differentiable, in y and the parameters, while gradients are recorded.

        Uses autograd, which differentiates each operation of `forward` twice if training goes through gradient steps.
        Override it for an energy with a closed-form gradient: one derivative is then enough, which takes less time.
        """
        is_recording = torch.is_grad_enabled()
        with torch.enable_grad():
            argument = y if is_recording and y.requires_grad else y.detach().requires_grad_()
            return torch.autograd.grad(self(features, argument).sum(), argument, create_graph=is_recording)[0]

    def log_z(self, features: Any) -> Tensor:
        """ln Z(x) = ln Σ_y exp(−E(x, y)) over all discrete y, `(batch,)`, for energies that have it in closed form.

        Raises:
            ConfigError: this energy does not have it.
        """
        raise ConfigError(
            f"{type(self).__name__} has no closed-form sum over all outputs; learning by likelihood requires an energy "
            "that has one, such as local or linear_chain"
        )

    def marginals(self, features: Any) -> Tensor:
        """The mean of y under p ∝ exp(−E), `(batch, 1, *variables)`, for energies that have it in closed form.

        Raises:
            ConfigError: this energy does not have it.
        """
        raise ConfigError(
            f"{type(self).__name__} has no closed-form marginals; energy_loss.marginals requires an energy that has "
            "them, such as local or linear_chain"
        )

    def modes(self, features: Any, shift: Tensor) -> Tensor:
        """Discrete outputs y that minimise E(x, y) − Σ shift · y, `(batch, sample, *variables)`, without gradient.

        Args:
            features: `encode(x)`.
            shift: `(batch, sample, *variables)`, added to the scores of single variables.

        Raises:
            ConfigError: the energy has no exact search for them.
        """
        raise ConfigError(
            f"{type(self).__name__} has no exact search for the output of lowest energy; expected an energy that has "
            "one, such as local or linear_chain"
        )

    def at(self, x: X) -> BoundEnergy:
        """E_x: the energy bound to x, called with y."""
        return BoundEnergy(self, x)


class BoundEnergy:
    """E_x(y): encodes x at the first call and keeps the features; valid until the energy's parameters change."""

    def __init__(self, energy: Energy, x: X) -> None:
        self.energy, self.x = energy, x
        self._is_recording = torch.is_grad_enabled()

    @cached_property
    def features(self) -> Any:
        """`energy.encode(x)`."""
        with torch.set_grad_enabled(self._is_recording):  # the gradient mode at binding, not at the first access
            return self.energy.encode(self.x)

    def gradient(self, y: Tensor) -> Tensor:
        """dE/dy, of y's shape; see `Energy.gradient`."""
        return self.energy.gradient(self.features, y)

    def modes(self, shift: Tensor) -> Tensor:
        """Outputs that minimise E(x, y) − Σ shift · y, of the shape of `shift`; see `Energy.modes`."""
        with torch.no_grad():
            return self.energy.modes(self.features, shift)

    def log_z(self) -> Tensor:
        """ln Z(x), `(batch,)`; see `Energy.log_z`."""
        value = self.energy.log_z(self.features)
        if value.shape != (self.x.size,):
            problem = f"returned shape {tuple(value.shape)}; expected (batch,) = ({self.x.size},)"
            raise PluginError(f"{type(self.energy).__name__}.log_z {problem}")
        return value

    def marginals(self) -> Tensor:
        """The mean of y under p ∝ exp(−E_x), `(batch, 1, *variables)`; see `Energy.marginals`."""
        return self.energy.marginals(self.features)

    def __call__(self, y: Tensor | SparseLabels) -> Tensor:
        """`(batch, sample, *variables)` -> `(batch, sample)`.

        Raises:
            ValueError: y has another shape.
            PluginError: the energies have another shape.
        """
        expected = (self.x.size, None, *self.energy.space.sizes(self.x.mask))
        if not has_shape(y, expected):
            raise ValueError(
                f"{type(self.energy).__name__} got outputs of shape {tuple(y.shape)}; "
                f"expected (batch, sample, *variables) = {show_shape(expected)}"
            )
        if isinstance(y, SparseLabels) and not self.energy.takes_sparse:
            y = y.dense(next((p.dtype for p in self.energy.parameters()), torch.get_default_dtype()))
        return self.energy(self.features, y)


def has_shape(value: Tensor | SparseLabels, sizes: Sequence[int | None]) -> bool:
    """True if the axes have these sizes; a size of None allows any."""
    return len(sizes) == value.dim() and all(a in (None, b) for a, b in zip(sizes, value.shape, strict=True))


def show_shape(sizes: Sequence[int | None]) -> str:
    """Sizes of axes in words, for messages."""
    return f"({', '.join('any' if size is None else str(size) for size in sizes)})"
