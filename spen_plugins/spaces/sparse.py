"""Sums over rows of a matrix, given lists of row indices: sparse matrix products with derivatives of any order."""

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
            other = Lists(sort_ascending(self.indices * rows + owners) % max(rows, 1), starts, rows)
        else:
            order = self.indices.argsort(stable=True)
            other = Lists(owners[order], starts, rows, self.values[order])
        other.__dict__["transposed"] = self
        return other

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
