"""Inputs and batches."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class X:
    """All that may be seen at test time.

    Args:
        inputs: tensors by name; which names there are is between a task and its feature networks.
        mask: `(batch, *masked)` boolean, `(batch, token)` for sequences; None where outputs have no padding.
        size: how many examples.
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
    """Some examples, with their gold outputs apart so that a test-time net can't see them.

    Args:
        x: the inputs.
        rows: `(batch,)` numbers of the examples in their part.
        gold: `(batch, 1, *variables)`, or None where nothing is annotated; zero in rows without gold.
        labelled: `(batch,)` boolean, which rows have gold.
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
