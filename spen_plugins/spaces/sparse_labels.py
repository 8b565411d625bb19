"""Label sets as lists of their labels, for label spaces so large that dense rows of zeros are costly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from spen_plugins.spaces.sparse import Lists, find_lists, find_starts, sort_ascending


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
        """From ascending indices `(total,)` into the flat dense tensor."""
        rows = keys // shape[2]
        bags = cls(keys - rows * shape[2], find_starts(rows, shape[0] * shape[1]), tuple(shape))
        bags.__dict__["rows"] = rows
        return bags

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
        """These samples, then those of `other`, for each example."""
        batch, a, labels = self.shape
        b = other.shape[1]

        def shift_keys(bags: SparseLabels, shift: int) -> Tensor:
            example = bags.rows if bags.shape[1] == 1 else bags.rows // bags.shape[1]
            return (bags.rows + example * (a + b - bags.shape[1]) + shift) * labels + bags.indices

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
    filled = find_true(blocks.amax(1) > 0)
    inside = find_true((blocks[filled] > 0).flatten())
    return filled[inside // size] * size + inside % size
