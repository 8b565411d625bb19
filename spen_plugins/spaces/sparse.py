"""Lists of the labels that are on, and sums of matrix rows over them, with derivatives of any order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(eq=False)
class Lists:
    """A sparse matrix S `(list, column)`: for each row, the indices and values of non-zero columns.

    Args:
        indices: `(total,)` column indices, one list after the other.
        offsets: `(lists,)` start of each list, as in `torch.nn.functional.embedding_bag`.
        columns: number of columns.
        values: `(total,)`, None if all are 1.
    """

    indices: Tensor
    offsets: Tensor
    columns: int
    values: Tensor | None = None

    @cached_property
    def transposed(self) -> Lists:
        """Sᵀ; computed once."""
        rows = self.offsets.shape[0]
        owners = find_lists(self.offsets, self.indices.shape[0])
        starts = find_starts(self.indices, self.columns)
        if self.values is None:
            transposed = Lists(sort_ascending(self.indices * rows + owners) % max(rows, 1), starts, rows)
        else:
            order = self.indices.argsort(stable=True)
            transposed = Lists(owners[order], starts, rows, self.values[order])
        transposed.__dict__["transposed"] = self
        return transposed

    def sums(self, weight: Tensor) -> Tensor:
        """S W, `(columns, size)` -> `(lists, size)`."""
        return _ListSum.apply(weight, self)


class _ListSum(torch.autograd.Function):
    """S W, linear in W; S is a constant.

    torch's `embedding_bag` has no second derivative and no forward mode, which gradient rules that differentiate
    through another player's update need. The gradient Sᵀ G is also a sum over lists, those of the transposed matrix; so
    each of its rows is written once, which takes half the time of scattering rows into zeros.
    """

    # `forward` takes the context itself: a separate `setup_context` makes torch inspect the signature at every call.
    @staticmethod
    def forward(ctx: Any, weight: Tensor, lists: Lists) -> Tensor:
        ctx.lists = lists
        return F.embedding_bag(lists.indices, weight, lists.offsets, mode="sum", per_sample_weights=lists.values)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _ListSum.apply(grad.contiguous(), ctx.lists.transposed), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: Any) -> Tensor:
        return _ListSum.apply(tangent, ctx.lists)


def find_starts(rows: Tensor, n: int) -> Tensor:
    """Starts of each of `n` lists, from the counts of each index in `rows`: `(n,)`."""
    return F.pad(torch.bincount(rows, minlength=n).cumsum(0)[:-1], (1, 0))


def find_lists(offsets: Tensor, total: int) -> Tensor:
    """The list of each element, `(total,)`: the inverse of `find_starts` for ascending `rows`."""
    return torch.repeat_interleave(F.pad(offsets, (0, 1), value=total).diff(), output_size=total)


def sort_ascending(values: Tensor) -> Tensor:
    """`values` `(n,)` sorted; NumPy sorts ten times as fast as torch on a CPU."""
    if values.device.type == "cpu":
        return torch.from_numpy(np.sort(values.numpy()))
    return values.sort().values


@dataclass(frozen=True, eq=False)
class SparseLabels:
    """Discrete outputs `(batch, sample, label)` as the indices of the labels that are on.

    Args:
        indices: `(total,)` label indices, one set after the other, distinct within a set.
        offsets: `(batch * sample,)` start of each set, as in `torch.nn.functional.embedding_bag`.
        shape: (batch, sample, label), the shape of the dense tensor.
    """

    indices: Tensor
    offsets: Tensor
    shape: tuple[int, int, int]

    @classmethod
    def from_dense(cls, y: Tensor) -> SparseLabels:
        """Sparse labels of `y` `(batch, sample, label)` of zeros and ones."""
        return cls.from_keys(find_positive(y.flatten()), y.shape)

    @classmethod
    def from_keys(cls, keys: Tensor, shape: tuple[int, ...]) -> SparseLabels:
        """Sparse labels from ascending indices `(total,)` into the flat dense tensor."""
        rows = keys // shape[2]
        sets = cls(keys - rows * shape[2], find_starts(rows, shape[0] * shape[1]), tuple(shape))
        sets.__dict__["rows"] = rows
        return sets

    @cached_property
    def rows(self) -> Tensor:
        """`(total,)`, the set of each label: example · number of samples + sample."""
        return find_lists(self.offsets, self.indices.shape[0])

    @cached_property
    def places(self) -> Tensor:
        """`(total,)`, the index of each label in a flat `(batch, label)` table."""
        if self.shape[1] == 1:
            return self.rows * self.shape[2] + self.indices
        return self.rows // self.shape[1] * self.shape[2] + self.indices

    @cached_property
    def _lists(self) -> Lists:
        return Lists(self.indices, self.offsets, self.shape[2])

    def dim(self) -> int:
        return 3

    def dense(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The outputs as a tensor `(batch, sample, label)` of zeros and ones."""
        y = torch.zeros(self.shape, dtype=dtype, device=self.indices.device)
        y.view(-1)[self.rows * self.shape[2] + self.indices] = 1
        return y

    def sums(self, scores: Tensor) -> Tensor:
        """Σ over each set of `scores` `(batch, label)`: `(batch, sample)`, as `inner_product` of the dense outputs."""
        values = scores.reshape(-1)[self.places]
        total = values.new_zeros(self.offsets.shape[0]).index_add(0, self.rows, values)
        return total.view(self.shape[:2])

    def vectors(self, weight: Tensor) -> Tensor:
        """Σ over each set of the rows of `weight` `(label, size)`, `(batch * sample, size)`; twice differentiable."""
        return self._lists.sums(weight)

    def join(self, other: SparseLabels) -> SparseLabels:
        """These samples of each example, followed by those of `other`."""
        batch, a, labels = self.shape
        b = other.shape[1]

        def shift_keys(sets: SparseLabels, shift: int) -> Tensor:
            example = sets.rows if sets.shape[1] == 1 else sets.rows // sets.shape[1]
            return (sets.rows + example * (a + b - sets.shape[1]) + shift) * labels + sets.indices

        keys = sort_ascending(torch.cat([shift_keys(self, 0), shift_keys(other, a)]))
        return SparseLabels.from_keys(keys, (batch, a + b, labels))


def find_true(mask: Tensor) -> Tensor:
    """Ascending indices of the true elements of `mask` `(n,)`; NumPy is several times as fast if few are."""
    if mask.device.type == "cpu":
        return torch.from_numpy(np.flatnonzero(mask.numpy()))
    return mask.nonzero().squeeze(1)


def find_positive(values: Tensor) -> Tensor:
    """Ascending indices of the positive elements of `values` `(n,)`; searches only blocks that have one."""
    size = 64
    blocks = (F.pad(values, (0, -len(values) % size)) if len(values) % size else values).view(-1, size)
    filled_blocks = find_true(blocks.amax(1) > 0)
    offsets = find_true((blocks[filled_blocks] > 0).flatten())
    return filled_blocks[offsets // size] * size + offsets % size
