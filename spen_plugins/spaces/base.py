"""Output spaces: pure functions over tensors of outputs, no parameters."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from spen_plugins.spaces.distribution import Proposal


class OutputSpace(ABC):
    """The relaxed set Y_R of outputs, its geometry, and its default distribution.

    Shapes: `y`, `gold` and `logits` are `(batch, sample, *variables)`; `mask` is `(batch, *masked)` boolean, true
    for existing variables, or None if all exist. The masked axes are the first variable axes: `(batch, token)` for
    sequences. Rows of padding are zero in all results. Every function broadcasts over the sample axis.
    """

    discrete: bool = True
    """False if outputs are real numbers, which are neither relaxed nor rounded."""
    simplex: bool = False
    """True if the last axis of `y` is a distribution that sums to one; false if its entries are separate variables."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int | None, ...]:
        """Sizes of the variable axes; None if it differs between batches."""

    def sizes(self, mask: Tensor | None) -> tuple[int | None, ...]:
        """Sizes of the variable axes in a batch with this mask; None if neither the space nor the mask has it."""
        masked_sizes = () if mask is None else mask.shape[1:]
        return tuple(
            size if size is not None or axis >= len(masked_sizes) else masked_sizes[axis]
            for axis, size in enumerate(self.shape)
        )

    @abstractmethod
    def relax(self, logits: Tensor, mask: Tensor | None) -> Tensor:
        """Logits -> relaxed y, differentiable."""

    @abstractmethod
    def logits(self, y: Tensor, mask: Tensor | None) -> Tensor:
        """Logits that relax to `y`, finite: y is clamped to at least 1e-4 from 0 (and, for labels, from 1)."""

    @abstractmethod
    def project(self, y: Tensor, mask: Tensor | None) -> Tensor:
        """The nearest point of the relaxed set (Euclidean), for projected gradient steps."""

    @abstractmethod
    def round(self, y: Tensor, mask: Tensor | None) -> Tensor:
        """Relaxed y -> the nearest discrete output, variable by variable."""

    def cost(self, y: Tensor, gold: Tensor, mask: Tensor | None = None) -> Tensor:
        """The margin's Δ: a distance summed over variables, by default L1, `(batch, sample)`."""
        return sum_variables((y - gold).abs(), mask)

    @abstractmethod
    def score(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        """Soft score in [0, 1], 1 if y equals gold, `(batch, sample)`."""

    def size(self, y: Tensor, mask: Tensor | None = None) -> Tensor:
        """Number of variables of each example, at least 1, `(batch, 1)`: the divisor of a mean Δ."""
        if mask is None:
            return y.new_full((y.shape[0], 1), float(math.prod(y.shape[2:-1] if self.simplex else y.shape[2:])))
        return mask.flatten(1).sum(-1, keepdim=True).clamp(min=1).to(y.dtype)

    def tally(self, gold: Tensor) -> tuple[Tensor, Tensor] | None:
        """Counts of each value: the sum of gold outputs over examples and places, and the number of summands, a
        scalar. Their ratio, which broadcasts to y's shape, is the output of a constant predictor. None if the space has
        no such predictor.

        Args:
            gold: `(batch, 1, *variables)`, zero on padding; every example has gold.
        """
        return None

    @abstractmethod
    def independent(self, logits: Tensor, mask: Tensor | None = None, **kept: Any) -> Proposal:
        """The default distribution: variables independent given x, with these logits `(batch, 1, *variables)`.

        Args:
            kept: further fields of a `Proposal`: `features`, `iterates`.
        """


class Box(OutputSpace):
    """Variables that are 0 or 1, relaxed to [0, 1]."""

    def relax(self, logits: Tensor, mask: Tensor | None = None) -> Tensor:
        return mask_padding(torch.sigmoid(logits), mask)

    def logits(self, y: Tensor, mask: Tensor | None = None) -> Tensor:
        return mask_padding(torch.logit(y, eps=1e-4), mask)

    def project(self, y: Tensor, mask: Tensor | None = None) -> Tensor:
        return mask_padding(y.clamp(0.0, 1.0), mask)

    def round(self, y: Tensor, mask: Tensor | None = None) -> Tensor:
        return mask_padding((y > 0.5).to(y.dtype), mask)


def mask_padding(y: Tensor, mask: Tensor | None) -> Tensor:
    """`y` with zeros on padding: y `(batch, sample, *variables)`, mask `(batch, *masked)`."""
    return y if mask is None else y * mask.unsqueeze(1)[(..., *[None] * (y.dim() - mask.dim() - 1))]


def sum_variables(values: Tensor, mask: Tensor | None = None) -> Tensor:
    """Σ over variables, without padding: `(batch, sample)`."""
    return mask_padding(at_least_float32(values), mask).flatten(2).sum(-1)


def at_least_float32(values: Tensor) -> Tensor:
    """Values in at least float32: in bfloat16 the error of a sum over many variables is too large."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def inner_product(scores: Tensor, y: Tensor) -> Tensor:
    """Σ over variables of scores · y: `(batch, *variables)`, `(batch, sample, *variables)` -> `(batch, sample)`.

    In full precision, also under autocast; one batched product, without an intermediate tensor of y's size.
    """
    scores, y = at_least_float32(scores), at_least_float32(y)
    with torch.autocast(y.device.type, enabled=False):
        return torch.bmm(y.flatten(2), scores.flatten(1).unsqueeze(-1).to(y.dtype)).squeeze(-1)


def take_vectors(vectors: Tensor, places: Tensor, dim: int = 1) -> Tensor:
    """Vectors at some places, `(batch, place)`: `(batch, word, *size)` -> `(batch, place, *size)`.

    Equal to `gather` with repeated places, but faster, because it copies whole vectors. Places are not checked: a place
    out of range returns another example's vector.

    Args:
        dim: 1; 0 if the words come first, `(word, batch, *size)` at `(place, batch)`.
    """
    first, second = vectors.shape[:2]
    if dim == 0:
        rows = places * second + torch.arange(second, device=places.device)
    else:
        rows = places + second * torch.arange(first, device=places.device).unsqueeze(1)
    return vectors.flatten(0, 1).index_select(0, rows.flatten()).unflatten(0, places.shape)


def draw_index(weights: Tensor) -> Tensor:
    """Draws an index for each row of non-negative weights, `(…, n)` -> `(…)`."""
    cumulative = weights.cumsum(-1)
    u = 1 - torch.rand(weights.shape[:-1], device=weights.device, dtype=weights.dtype)  # above 0: no index of weight 0
    return torch.searchsorted(cumulative, (u * cumulative[..., -1]).unsqueeze(-1)).squeeze(-1)
