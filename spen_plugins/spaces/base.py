"""Output spaces: pure functions over tensors of outputs, no parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from spen_plugins.spaces.distribution import Proposal


class OutputSpace(ABC):
    """The relaxed set Y_R that outputs live in, its geometry, and its default distribution.

    Shapes: `y`, `gold` and `logits` are `(batch, sample, *variables)`; `mask` is `(batch, *masked)` boolean, true
    where a variable exists, or None where all do. The masked axes are the first variable axes: `(batch, token)` for
    sequences. Rows of padding are zero in everything a space returns. Every function broadcasts over the sample axis.
    """

    simplex: bool = False
    """True where the last axis of `y` holds shares that sum to one, rather than variables of their own."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int | None, ...]:
        """Sizes of the variable axes; None where it differs from batch to batch."""

    def sizes(self, mask: Tensor | None) -> tuple[int | None, ...]:
        """Sizes of the variable axes in a batch with this mask; None where neither the space nor a mask has it."""
        masked = () if mask is None else mask.shape[1:]
        return tuple(
            size if size is not None or axis >= len(masked) else masked[axis] for axis, size in enumerate(self.shape)
        )

    @abstractmethod
    def relax(self, logits: Tensor, mask: Tensor | None) -> Tensor:
        """Logits -> relaxed y, differentiable."""

    @abstractmethod
    def logits(self, y: Tensor, mask: Tensor | None) -> Tensor:
        """Logits that relax to `y`, finite: y is taken to be at least 1e-4 away from 0 (and, for labels, from 1)."""

    @abstractmethod
    def project(self, y: Tensor, mask: Tensor | None) -> Tensor:
        """The nearest point of the relaxed set (Euclidean), for projected gradient steps."""

    @abstractmethod
    def round(self, y: Tensor, mask: Tensor | None) -> Tensor:
        """Relaxed y -> the nearest discrete output, each variable by itself."""

    @abstractmethod
    def cost(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        """The margin's Δ: L1 distance summed over variables, `(batch, sample)`."""

    @abstractmethod
    def score(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        """Soft score in [0, 1], 1 where y equals gold, `(batch, sample)`."""

    @abstractmethod
    def size(self, y: Tensor, mask: Tensor | None) -> Tensor:
        """Number of variables of each example, `(batch, 1)`: the divisor of a mean Δ."""

    @abstractmethod
    def independent(self, logits: Tensor, mask: Tensor | None = None, **kept: Any) -> Proposal:
        """The default distribution: variables independent given x, with these logits `(batch, 1, *variables)`.

        Args:
            kept: what else a `Proposal` carries: `features`, `iterates`.
        """


def at_least_float32(values: Tensor) -> Tensor:
    """At least float32: a sum over many variables, rounded to bfloat16, is off by more than what it is compared for."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def inner_product(scores: Tensor, y: Tensor) -> Tensor:
    """Σ over variables of scores · y: `(batch, *variables)`, `(batch, sample, *variables)` -> `(batch, sample)`.

    In full precision under autocast too; one batched product, so nothing of y's size is made on the way.
    """
    scores, y = at_least_float32(scores), at_least_float32(y)
    with torch.autocast(y.device.type, enabled=False):
        return torch.bmm(y.flatten(2), scores.flatten(1).unsqueeze(-1).to(y.dtype)).squeeze(-1)
