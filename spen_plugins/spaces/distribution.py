"""Distributions over outputs: q(y | x), what an inference net returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from spen_plugins.errors import PluginError
from spen_plugins.spaces.base import OutputSpace

T = TypeVar("T")


@dataclass(frozen=True)
class Proposal(ABC):
    """q(y | x), a distribution over the outputs of a batch, with the words of `torch.distributions`.

    Immutable, so what it has computed once stays true. `space.independent(logits, mask)` makes the one whose variables
    are independent given x; a net whose variables are not (a CRF) returns a subclass of its own, which implements
    `mode`, `sample`, `rsample` and `log_prob`, and usually overrides `mean`, `perturb` and `k_best`.

    Args:
        space: the output space.
        logits: `(batch, 1, *variables)`.
        mask: as `X.mask`.
        features: the net's features, for heads that share them.
        iterates: relaxed outputs along an optimiser's path, from first to last, where the net is one.
        chosen: the discrete output that the net itself decides on, `(batch, 1, *variables)`, where that is not for the
            task to do: `Task.decode` returns it.
    """

    space: OutputSpace
    logits: Tensor
    mask: Tensor | None = None
    features: Any = None
    iterates: tuple[Tensor, ...] = ()
    chosen: Tensor | None = None
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    sparse: ClassVar[bool] = False
    """True where there is a `sample_sparse(n)`, which draws from the same distribution as `sample`, as `SparseLabels`.
    A subclass with other samples sets it to False."""

    def __post_init__(self) -> None:
        # A net may run in half precision; what is drawn and compared may not: rare labels would be drawn too often.
        if self.logits.dtype in (torch.bfloat16, torch.float16):
            object.__setattr__(self, "logits", self.logits.float())

    @cached_property
    def mean(self) -> Tensor:
        """The relaxed output, `(batch, 1, *variables)`, differentiable in the net's parameters."""
        with self.as_made():
            return self.space.relax(self.logits, self.mask)

    @property
    @abstractmethod
    def mode(self) -> Tensor:
        """The most probable discrete output the space allows, `(batch, 1, *variables)`, without gradient."""

    @abstractmethod
    def sample(self, n: int) -> Tensor:
        """`n` discrete outputs, drawn independently and anew at each call, `(batch, n, *variables)`, no gradient."""

    @abstractmethod
    def rsample(self, n: int, temperature: float = 1.0) -> Tensor:
        """`n` relaxed samples with a gradient to the logits (concrete, Gumbel-softmax), `(batch, n, *variables)`."""

    def perturb(self, n: int, std: float) -> Tensor:
        """`n` relaxed outputs with Gaussian noise of deviation `std` on the logits, `(batch, n, *variables)`."""
        batch, _, *variables = self.logits.shape
        noise = torch.randn(batch, n, *variables, device=self.logits.device, dtype=self.logits.dtype)
        return self.space.relax(self.logits + std * noise, self.mask)

    @abstractmethod
    def log_prob(self, y: Tensor) -> Tensor:
        """ln q(y | x), `(batch, sample)`; of a relaxed y, the bound Σ y · ln q of independent variables."""

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        """The `k` most probable discrete outputs the space allows, best first, and ln q of each.

        Shapes: `(batch, k, *variables)` of zeros and ones and `(batch, k)`, without gradient. Where fewer than `k`
        exist, ln q is −∞ and the mode stands again. A distribution may do without it.

        Raises:
            PluginError: it does.
        """
        raise PluginError(
            f"{type(self).__name__}, the distribution over {type(self.space).__name__}, doesn't list its k best "
            "outputs, of which the inference net 'rerank' chooses one: give it the method k_best, or predict with "
            "another net"
        )

    def keep(self, name: Any, make: Callable[[], T]) -> T:
        """`make()` at the first call with this name, the same value at later ones: samples drawn once per proposal."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    def as_made(self) -> torch.set_grad_enabled:
        """The gradient mode this proposal was made in: what it keeps must not depend on who asks first."""
        return torch.set_grad_enabled(self.logits.requires_grad)

    def detach(self) -> Proposal:
        """The same proposal without gradients to the net."""
        return replace(
            self,
            logits=self.logits.detach(),
            features=self.features.detach() if isinstance(self.features, Tensor) else None,
            iterates=tuple(y.detach() for y in self.iterates),
            _kept={},
        )
