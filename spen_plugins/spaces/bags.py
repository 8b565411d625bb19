"""Label sets written as lists of their labels, for label spaces so large that a row of zeros is the costly part."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True, eq=False)
class LabelBags:
    """Discrete outputs `(batch, sample, label)` as the numbers of the labels that are on.

    Args:
        indices: `(total,)` labels, one bag after the other, no label twice in a bag.
        offsets: `(batch * sample,)` where each bag starts, as `torch.nn.functional.embedding_bag` takes it.
        shape: (batch, sample, label), the shape of the dense tensor they stand for.
    """

    indices: Tensor
    offsets: Tensor
    shape: tuple[int, int, int]

    @classmethod
    def of_dense(cls, y: Tensor) -> LabelBags:
        """The bags of `y` `(batch, sample, label)` of zeros and ones."""
        return cls.of_keys(positive(y.flatten()), y.shape)

    @classmethod
    def of_keys(cls, keys: Tensor, shape: tuple[int, ...]) -> LabelBags:
        """From places `(total,)` in the flat dense tensor, ascending."""
        rows = keys // shape[2]
        bags = cls(keys - rows * shape[2], _starts(rows, shape[0] * shape[1]), tuple(shape))
        bags.__dict__["rows"] = rows
        return bags

    @cached_property
    def rows(self) -> Tensor:
        """`(total,)`, the bag of each label: example · sample count + sample."""
        return _owners(self.offsets, self.indices.shape[0])

    @cached_property
    def places(self) -> Tensor:
        """`(total,)`, where each label's number stands in a flat `(batch, label)` table."""
        if self.shape[1] == 1:
            return self.rows * self.shape[2] + self.indices
        return self.rows // self.shape[1] * self.shape[2] + self.indices

    @cached_property
    def _lists(self) -> _Lists:
        return _Lists(self.indices, self.offsets, self.shape[2])

    def dim(self) -> int:
        return 3

    def dense(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The outputs as a tensor `(batch, sample, label)` of zeros and ones."""
        y = torch.zeros(self.shape, dtype=dtype, device=self.indices.device)
        y.view(-1)[self.rows * self.shape[2] + self.indices] = 1
        return y

    def sums(self, scores: Tensor) -> Tensor:
        """Σ over each bag of `scores` `(batch, label)`: `(batch, sample)`, what `inner` gives for the dense outputs."""
        values = scores.reshape(-1)[self.places]
        total = values.new_zeros(self.offsets.shape[0]).index_add(0, self.rows, values)
        return total.view(self.shape[:2])

    def vectors(self, weight: Tensor) -> Tensor:
        """Σ over each bag of the rows of `weight` `(label, size)`, `(batch * sample, size)`; twice differentiable."""
        return _ListSum.apply(weight, self._lists)


def join(first: LabelBags, second: LabelBags) -> LabelBags:
    """The samples of `first`, then those of `second`, for each example."""
    batch, a, labels = first.shape
    b = second.shape[1]

    def moved(bags: LabelBags, shift: int) -> Tensor:
        example = bags.rows if bags.shape[1] == 1 else bags.rows // bags.shape[1]
        return (bags.rows + example * (a + b - bags.shape[1]) + shift) * labels + bags.indices

    keys = ascending(torch.cat([moved(first, 0), moved(second, a)]))
    return LabelBags.of_keys(keys, (batch, a + b, labels))


def ascending(values: Tensor) -> Tensor:
    """`values` `(n,)` sorted; numpy sorts ten times as fast as torch does on a CPU."""
    if values.device.type == "cpu":
        return torch.from_numpy(np.sort(values.numpy()))
    return values.sort().values


def where(mask: Tensor) -> Tensor:
    """Numbers of the true elements of `mask` `(n,)`, ascending; numpy again is several times as fast where few are."""
    if mask.device.type == "cpu":
        return torch.from_numpy(np.flatnonzero(mask.numpy()))
    return mask.nonzero().squeeze(1)


def positive(values: Tensor) -> Tensor:
    """Numbers of the elements of `values` `(n,)` above zero, ascending; looks closer only at blocks that have one."""
    size = 64
    blocks = (F.pad(values, (0, -len(values) % size)) if len(values) % size else values).view(-1, size)
    some = where(blocks.amax(1) > 0)
    inside = where((blocks[some] > 0).flatten())
    return some[inside // size] * size + inside % size


@dataclass(eq=False)
class _Lists:
    """A sparse 0/1 matrix `(list, column)`: the columns of each row's ones."""

    indices: Tensor
    offsets: Tensor
    columns: int

    @cached_property
    def transposed(self) -> _Lists:
        rows = self.offsets.shape[0]
        keys = self.indices * rows + _owners(self.offsets, self.indices.shape[0])
        other = _Lists(ascending(keys) % max(rows, 1), _starts(self.indices, self.columns), rows)
        other.__dict__["transposed"] = self
        return other


class _ListSum(torch.autograd.Function):
    """S W for the matrix S of `lists`; linear in W, so its gradient Sᵀ G is the same sum over the transposed lists.

    Each row of the gradient is written once, and the transposed lists are made once for all that is summed over them.
    """

    @staticmethod
    def forward(ctx: Any, weight: Tensor, lists: _Lists) -> Tensor:
        ctx.lists = lists
        return F.embedding_bag(lists.indices, weight, lists.offsets, mode="sum")

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _ListSum.apply(grad.contiguous(), ctx.lists.transposed), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: Any) -> Tensor:
        return _ListSum.apply(tangent, ctx.lists)


def _starts(rows: Tensor, n: int) -> Tensor:
    """Where each of `n` lists starts, given how often each number occurs in `rows`: `(n,)`."""
    return F.pad(torch.bincount(rows, minlength=n).cumsum(0)[:-1], (1, 0))


def _owners(offsets: Tensor, total: int) -> Tensor:
    """The list of each element: the opposite of `_starts` where `rows` ascend, `(total,)`."""
    return torch.repeat_interleave(F.pad(offsets, (0, 1), value=total).diff(), output_size=total)
