"""Rules that a user writes about a task's outputs: `task.rules`, a file that a plugin reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from spen_plugins.batch import X
from spen_plugins.data.catalogue import locate
from spen_plugins.errors import ConfigError
from spen_plugins.settings.config import Config
from spen_plugins.spaces import OutputSpace, Proposal
from spen_plugins.task import PARTS, Indexer, Task
from spen_plugins.task_parts import PartlyLabelled, Rewards

VOTES = "rule_votes"
"""Name in `X.inputs` of the rules' summed votes; see `Rules`."""
FIRED = "rules_fired"
"""Name in `X.inputs` of the rules that hold; see `Rules`."""


class MarkedWords(tuple):
    """Words as a rule's argument; attributes hold what the task knows: for roles, the index `predicate`, from 0."""

    def __new__(cls, words: Iterable[str], **marks: Any) -> MarkedWords:
        instance = super().__new__(cls, words)
        instance.__dict__.update(marks)
        return instance


class Rules(Indexer):
    """The rules of a file, as a function of the hook `spen_rules` reads them.

    Life: `bind`, once the task knows its labels or tags; then `index` applies the rules to an example: its words, or
    its whole text as the only word. `collate` returns the tensors from which `reward` scores outputs:

    - `VOTES`, of the shape of y without the axis of samples: the summed weight of the rules for each label or
      tag, minus that of the rules against it;
    - `FIRED`, `(batch, [token,] rule)` boolean: the rules that hold for a text, or at a token.

    Attributes:
        checksums: sha256 of each file read, by path.
    """

    checksums: Mapping[str, str]

    @abstractmethod
    def bind(self, space: OutputSpace) -> Sequence[str]:
        """Set the task's output space; returns sentences for the user, such as names that are left out.

        Raises:
            ConfigError: the rules don't match the space.
        """

    def fit(self, hits: Sequence[Any], gold: Sequence[np.ndarray]) -> Sequence[str]:
        """Weigh the rules by examples with gold, `task.rule_weights=fitted`; returns sentences for the user.

        By default the weights stay.

        Args:
            hits: for each example, the result of `index`.
            gold: index of each word's tag, −1 if unknown, or of each label, for each example.
        """
        return []

    @abstractmethod
    def rule_votes(self) -> Tensor:
        """The side that each rule takes on each label or tag, `(rule, value)`: 1 for it, −1 against it, 0 neither."""

    @abstractmethod
    def reward(self, x: X, y: Tensor) -> Tensor:
        """As `Rewards.reward`."""

    @abstractmethod
    def search(self, x: X, proposal: Proposal) -> Tensor:
        """As `Rewards.search`."""


ReadRules = Callable[[Path], Rules]


def require_rules(task: Task, learns: bool = False) -> None:
    """Check that a task that is trained has rules.

    Args:
        task: the task.
        learns: if true, the method learns from the rules on examples without gold.

    Raises:
        ConfigError: it has none, or all its training examples have gold.
    """
    if isinstance(task, TakesRules) and task.read_rules is None:
        return
    if not isinstance(task, Rewards) or task.rule_votes() is None:
        remedy = "pass task.rules=mine.py" if isinstance(task, TakesRules) else "this task does not support them"
        raise ConfigError(f"this method requires rules; {remedy}")
    if learns and isinstance(task, PartlyLabelled) and not task.keys_without_gold:
        raise ConfigError(
            "this method requires training examples without gold, but all have gold: task.labelled=50 hides the gold "
            "of the others, task.unlabelled=FILE names more examples"
        )


class NamesSenses(ABC):
    """A task about predicates, whose files may contain the predicates' senses."""

    @abstractmethod
    def number_senses(self, senses: Sequence[str]) -> None:
        """From now on, `x.inputs["sense"]` `(batch,)` is the index of each predicate's sense in `senses`; −1 if it has
        no sense, or another one.

        Raises:
            ConfigError: no training example has one of the senses.
        """


class RulesConfig(Config):
    """The rules of a task."""

    rules: str | None = None
    """A file of rules that vote on outputs, for methods that learn from examples without gold. A Python file (plugin
    spen-rules) is code that runs when training begins; predictions never read it. null: none."""
    rule_weights: Literal["given", "fitted"] = "given"
    """Weights of the rules: those of the file, or fitted to the training examples with gold."""


class TakesRules(Rewards):
    """A task whose config is a `RulesConfig`; `load` ends with `apply_rules`."""

    config: Any
    indexers: dict[str, Indexer]
    space: OutputSpace
    part: Callable[[str], Sequence[Any]]
    rules: Rules | None = None
    read_rules: ReadRules | None = None
    """Reads a file of rules; set only in training, so that no other use of a run executes the file's code."""

    def apply_rules(self, find: Callable[[Any], Any], gold: Callable[[Any], np.ndarray | None]) -> list[str]:
        """Read the file of `task.rules`, make it an indexer and apply it to all parts; called at the end of `load`.

        Args:
            find: an example -> the result of `self.rules.index` for it, which is stored with the example.
            gold: an example -> its gold, as in `Rules.fit`; None if it has none.

        Returns:
            The notes of `Rules.bind` and `Rules.fit`.
        """
        if self.config.rules is None or self.read_rules is None:
            return []
        self.rules = self.read_rules(locate(self.config.rules))
        notes = [*self.rules.bind(self.space)]
        self.indexers["rules"] = self.rules
        for part in PARTS:
            examples = {id(example): example for example in self.part(part)}.values()  # those with gold may be repeated
            pairs = [(find(example), gold(example)) for example in examples]
            if part == "train" and self.config.rule_weights == "fitted":
                labelled = [(hits, values) for hits, values in pairs if values is not None]
                notes += self.rules.fit([hits for hits, _ in labelled], [values for _, values in labelled])
        return notes

    def rule_checksums(self) -> dict[str, str]:
        """sha256 of each file that the rules were read from, by path."""
        return {} if self.rules is None else {**self.rules.checksums}

    def rule_votes(self) -> Tensor | None:
        return None if self.rules is None else self.rules.rule_votes()

    def reward(self, x: X, y: Tensor) -> Tensor | None:
        return None if self.rules is None else self.rules.reward(x, y)

    def search(self, x: X, proposal: Proposal) -> Tensor | None:
        return None if self.rules is None else self.rules.search(x, proposal)
