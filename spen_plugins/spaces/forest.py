"""Hierarchies of labels in which a label implies its parent: forests."""

from __future__ import annotations

from collections import Counter
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
        levels: the labels that have a parent, by depth, from the first level below the roots to the last.

    Raises:
        ConfigError: a label is its own ancestor.
    """

    def __init__(self, names: Sequence[str], parents: Sequence[int | None]) -> None:
        self.names, self.parents = list(names), list(parents)
        self._paths: list[list[int]] = []  # from a root to each label
        for label in range(len(names)):
            path = {label: None}  # keys in order, upwards
            ancestor = self.parents[label]
            while ancestor is not None:
                if ancestor in path:
                    chain = [*path]
                    cycle = " -> ".join(names[i] for i in [*chain[chain.index(ancestor) :], ancestor])
                    raise ConfigError(f"label hierarchy: found {cycle}; expected no label to be its own ancestor")
                path[ancestor] = None
                ancestor = self.parents[ancestor]
            self._paths.append([*path][::-1])
        self.levels = [
            Level(torch.tensor(labels), torch.tensor([self.parents[i] for i in labels]))
            for length in range(2, max(map(len, self._paths), default=0) + 1)
            for labels in [[i for i, path in enumerate(self._paths) if len(path) == length]]
        ]
        self.children = torch.tensor([i for i, p in enumerate(self.parents) if p is not None], dtype=torch.long)
        self.above = torch.tensor([p for p in self.parents if p is not None], dtype=torch.long)

    def is_coherent(self, y: Tensor) -> Tensor:
        """True for sets that have the parent of each of their labels: boolean `(..., label)` -> `(...)`."""
        children, parents = self.children.to(y.device), self.above.to(y.device)
        return ~(y[..., children] & ~y[..., parents]).any(-1)

    def limit(self, values: Tensor) -> Tensor:
        """Values `(..., label)`, lowered so that no child exceeds its parent."""
        for level in self.levels:
            labels, parents = level.labels.to(values.device), level.parents.to(values.device)
            minima = torch.minimum(values[..., labels], values[..., parents])
            values = values.index_copy(-1, labels, minima)
        return values

    @cached_property
    def preorder(self) -> tuple[list[int], list[int]]:
        """The labels in an order in which a label's descendants follow it directly; and, at each place of this order,
        the first place after the label's descendants."""
        order = sorted(range(len(self._paths)), key=self._paths.__getitem__)
        sizes = Counter(label for path in self._paths for label in path)  # of each label's subtree
        return order, [place + sizes[label] for place, label in enumerate(order)]
