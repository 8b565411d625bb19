"""Constraints on labels, or on the tags of a sentence, that the config names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

import spen_plugins as sp
from spen_plugins.nn import at_least_float32, mask_padding
from spen_rules.logic import Constraint, log_truth, violation


class NameConstraint(Constraint):
    """A constraint on named variables: a label is on, or a tag is that of some word.

    The name of a tag may also be a type, `PER`, which stands for all its tags (`B-PER`, `I-PER`, …).
    """

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        if not isinstance(self.space, (sp.LabelSet, sp.TagSequence)):
            outputs = f"found {type(self.space).__name__}"
            raise sp.ConfigError(f"{type(self).__name__} requires label sets or tag sequences as outputs; {outputs}")
        self.has_tags = isinstance(self.space, sp.TagSequence)

    def make_group(self, names: Iterable[str]) -> Tensor:
        """The variables of each name, `(variable, name)`: 1 where the name stands for the variable.

        Raises:
            ConfigError: the task lacks one of the names.
        """
        values = self.space.tags if self.has_tags else self.space.labels
        kinds = [tag[2:] if self.has_tags and tag[1:2] == "-" else tag for tag in values]
        columns = []
        for name in names:
            column = [float(name in (value, kind)) for value, kind in zip(values, kinds, strict=True)]
            if not any(column):
                raise sp.ConfigError(f"energy: unknown output {name!r}.{sp.did_you_mean(name, {*values, *kinds})}")
            columns.append(column)
        return torch.tensor(columns).t()

    def truths(self, y: Tensor, mask: Tensor | None, group: Tensor) -> tuple[Tensor, Tensor]:
        """The probabilities that each name is present and that it is absent, `(batch, sample, name)` each."""
        y = at_least_float32(y)
        with torch.autocast(y.device.type, enabled=False):
            p = y @ group.to(y.dtype)
        if self.has_tags:
            p = mask_padding(p, mask)
            if self.config.logic == "product":
                absent = (1 - p).clamp(min=0).prod(2)
                return 1 - absent, absent
            p = p.amax(2)
        return p, 1 - p


class GroupConstraint(NameConstraint):
    """A constraint on a group of names."""

    class Config(Constraint.Config):
        names: list[str] | None = Field(None, min_length=2)
        """The labels, tags or types; null: all labels."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        if config.names is None and self.has_tags:
            raise sp.ConfigError("energy.names: found null; expected the tags or types to constrain")
        names = self.space.labels if config.names is None else config.names
        self.register_buffer("group", self.make_group(names), persistent=False)

    def exclusion(self, present: Tensor, absent: Tensor) -> Tensor:
        """The violation of "each name implies that all others are absent", `(batch, sample)`."""
        return violation(log_truth(present), self.all_others(log_truth(absent))).sum(-1)


class AtMostOne(GroupConstraint):
    """At most one of the names."""

    def forward(self, features: Tensor | None, y: Tensor) -> Tensor:
        return self.exclusion(*self.truths(y, features, self.group))


class ExactlyOne(GroupConstraint):
    """One of the names, and no other of them."""

    def forward(self, features: Tensor | None, y: Tensor) -> Tensor:
        present, absent = self.truths(y, features, self.group)
        any_present = present.amax(-1) if self.config.logic == "godel" else 1 - absent.clamp(min=0).prod(-1)
        return self.exclusion(present, absent) - log_truth(any_present)


class PairConstraint(NameConstraint):
    """A constraint on pairs of names."""

    class Config(Constraint.Config):
        pairs: list[tuple[str, str]] = Field(min_length=1)
        """Pairs of labels, tags or types."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        for side, names in zip(("first", "second"), zip(*config.pairs, strict=True), strict=True):
            self.register_buffer(side, self.make_group(names), persistent=False)


class Implies(PairConstraint):
    """The first name of each pair implies the second."""

    def forward(self, features: Tensor | None, y: Tensor) -> Tensor:
        first, _ = self.truths(y, features, self.first)
        second, _ = self.truths(y, features, self.second)
        return violation(log_truth(first), log_truth(second)).sum(-1)


class Excludes(PairConstraint):
    """The names of each pair exclude one another."""

    def forward(self, features: Tensor | None, y: Tensor) -> Tensor:
        first, no_first = self.truths(y, features, self.first)
        second, no_second = self.truths(y, features, self.second)
        first, no_first, second, no_second = map(log_truth, (first, no_first, second, no_second))
        return (violation(first, no_second) + violation(second, no_first)).sum(-1)
