"""Hierarchies of labels in which a label implies its parent: forests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from spen_plugins.errors import ConfigError


@dataclass(frozen=True)
class Level:
    """The labels at one depth below the roots, and their parents, `(label,)` each."""

    labels: Tensor
    parents: Tensor


class Forest:
    """The hierarchy of L labels.

    Args:
        names: the labels.
        parents: the index of each label's parent; None for a root.

    Attributes:
        levels: of the labels that have a parent, from the first depth below the roots to the last.

    Raises:
        ConfigError: a label is its own ancestor.
    """

    def __init__(self, names: Sequence[str], parents: Sequence[int | None]) -> None:
        self.names, self.parents = list(names), list(parents)
        depths = []
        for label in range(len(names)):
            chain = [label]
            while (above := self.parents[chain[-1]]) is not None:
                if above in chain:
                    cycle = " -> ".join(names[i] for i in [*chain[chain.index(above) :], above])
                    raise ConfigError(f"label hierarchy: found {cycle}; expected no label to be its own ancestor")
                chain.append(above)
            depths.append(len(chain) - 1)
        self.levels = [
            Level(torch.tensor(labels), torch.tensor([self.parents[i] for i in labels]))
            for d in range(1, max(depths, default=0) + 1)
            for labels in [[i for i, one in enumerate(depths) if one == d]]
        ]
        self.children = torch.tensor([i for i, p in enumerate(self.parents) if p is not None], dtype=torch.long)
        self.above = torch.tensor([p for p in self.parents if p is not None], dtype=torch.long)

    def is_coherent(self, y: Tensor) -> Tensor:
        """True for sets that have the parent of each of their labels: boolean `(..., label)` -> `(...)`."""
        children, above = self.children.to(y.device), self.above.to(y.device)
        return ~(y[..., children] & ~y[..., above]).any(-1)

    def limit(self, values: Tensor) -> Tensor:
        """Values `(..., label)`, those of children at most their parents'."""
        for level in self.levels:
            labels, parents = level.labels.to(values.device), level.parents.to(values.device)
            limited = torch.minimum(values[..., labels], values[..., parents])
            values = values.index_copy(-1, labels, limited)
        return values

    @cached_property
    def preorder(self) -> tuple[list[int], list[int]]:
        """The labels in an order in which a label's descendants follow it directly; and, at each place of this order,
        the first place after the label's descendants."""
        below: dict[int | None, list[int]] = {}
        for label, parent in enumerate(self.parents):
            below.setdefault(parent, []).append(label)
        order: list[int] = []
        ends = [0] * len(self.parents)
        stack = [(label, False) for label in reversed(below.get(None, []))]
        while stack:
            label, done = stack.pop()
            if done:
                ends[label] = len(order)
                continue
            order.append(label)
            stack.append((label, True))
            stack.extend((child, False) for child in reversed(below.get(label, [])))
        return order, [ends[label] for label in order]
