"""Parts shared by output spaces on a grid of rows and columns."""

from __future__ import annotations

from torch import Tensor

from spen_plugins.spaces.base import OutputSpace, at_least_float32


class Grid(OutputSpace):
    """A variable at each place of a grid; `y` is `(batch, sample, row, column)`.

    Masks are `(batch, row, column)`; sizes may differ between batches.
    """

    @property
    def shape(self) -> tuple[int | None, ...]:
        return (None, None)

    def size(self, y: Tensor, mask: Tensor | None) -> Tensor:
        if mask is None:
            return y.new_full((y.shape[0], 1), float(y.shape[2] * y.shape[3]))
        return mask.flatten(1).sum(-1, keepdim=True).clamp(min=1).to(y.dtype)


def mask_padding(y: Tensor, mask: Tensor | None) -> Tensor:
    """Zero on padding: y `(batch, sample, row, column)`, mask `(batch, row, column)`."""
    return y if mask is None else y * mask.unsqueeze(1)


def grid_sum(values: Tensor, mask: Tensor | None) -> Tensor:
    """Σ over the grid, without padding: `(batch, sample)`."""
    return mask_padding(at_least_float32(values), mask).flatten(2).sum(-1)
