"""Inputs and batches."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class X:
    """The input: all that may be seen at test time.

    Args:
        inputs: tensors by name; a task and its feature networks agree on the names.
        mask: `(batch, *masked)` boolean, `(batch, token)` for sequences; None if outputs have no padding.
        size: number of examples.
    """

    inputs: dict[str, Tensor]
    mask: Tensor | None
    size: int

    def to(self, device: torch.device | str) -> X:
        return X(
            {name: value.to(device, non_blocking=True) for name, value in self.inputs.items()},
            None if self.mask is None else self.mask.to(device, non_blocking=True),
            self.size,
        )


@dataclass(frozen=True)
class Batch:
    """A batch of examples, with gold outputs apart from inputs, so that a test-time net can't see them.

    Args:
        x: the inputs.
        rows: `(batch,)` indices of the examples in their part.
        gold: `(batch, 1, *variables)`, or None if nothing is annotated; zero in rows without gold.
        labelled: `(batch,)` boolean, the mask of rows with gold.
    """

    x: X
    rows: Tensor
    gold: Tensor | None
    labelled: Tensor

    def __len__(self) -> int:
        return self.x.size

    def to(self, device: torch.device | str) -> Batch:
        gold = None if self.gold is None else self.gold.to(device, non_blocking=True)
        return Batch(self.x.to(device), self.rows.to(device), gold, self.labelled.to(device))
