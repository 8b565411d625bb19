"""Optional parts of a task: what only some tasks can do. A task inherits from `Task` and from the parts that it has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from spen_plugins.task import HELD_OUT


class TakesExamples(ABC):
    """A task whose examples can be given in Python; its `Config` has a field `in_memory: bool = False`, which
    `sp.train` sets."""

    config: Any

    @property
    def in_memory(self) -> bool:
        """True if the examples are given in Python, by `take`, and a run folder doesn't keep them."""
        return self.config.in_memory

    @abstractmethod
    def take(self, parts: Mapping[str, Any], held_out: float = HELD_OUT, seed: int = 0) -> None:
        """In place of `load`: examples that are given in Python.

        Args:
            parts: name of each part -> its inputs and its outputs, a pair, in the task's own form.
            held_out: share of the training examples that validate if there is no part `validation`.
            seed: seed of their choice.

        Raises:
            ConfigError: the config names files.
            DataError: the examples have the wrong form.
        """


class PartlyLabelled(ABC):
    """A task whose training part can have examples without gold."""

    @property
    @abstractmethod
    def keys_without_gold(self) -> Sequence[str]:
        """Dotted keys of the config by which it has some, such as `task.unlabelled`; empty if all have gold."""
