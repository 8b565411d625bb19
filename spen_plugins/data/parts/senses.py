"""Senses of predicates, for energies that know which roles a sense has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence


class NamesSenses(ABC):
    """A task about predicates, whose files may say which sense each has."""

    @abstractmethod
    def number_senses(self, senses: Sequence[str]) -> None:
        """From now on, `x.inputs["sense"]` `(batch,)` is the place of each predicate's sense in `senses`; −1 if it has
        none, or another.

        Raises:
            ConfigError: no training example has one of them.
        """
