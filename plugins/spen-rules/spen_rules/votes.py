"""Rules of a file that vote on the outputs of a task: the weighted vote as a reward and a search."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import spen_plugins as sp
from spen_rules.files import Rule, RuleFile, load_rules
from spen_rules.vote_energy import best_votes, find_kind, measure_regret

NET_WEIGHTS = (1.0, 0.3, 0.1)
"""Weights of the net's ln q beside the votes in a search, one per result."""
REST = 0.1
"""Weight of O at words without a vote, and against labels without one."""
PRIOR = 5.0
"""Number of hits that a rule's own weight counts as when weights are fitted."""


def read_rules(path: Path) -> VotingRules:
    """The rules of a Python file."""
    return VotingRules(load_rules(path))


class VotingRules(sp.Rules):
    """Rules that vote on tags or labels with weights; a hit is (rule, start, end), or (rule, 0, 1) for texts."""

    def __init__(self, file: RuleFile) -> None:
        self.file, self.rules, self.checksums = file, file.rules, file.checksums

    def bind(self, space: sp.OutputSpace) -> list[str]:
        """Sets the space; rules for names that it lacks are left out.

        Raises:
            ConfigError: the space has none of the names, or its outputs have no names.
        """
        if not isinstance(space, (sp.LabelSet, sp.TagSequence)):
            raise sp.ConfigError(f"task.rules requires label sets or tag sequences; found {type(space).__name__}")
        self.space = space
        self._has_tags = isinstance(space, sp.TagSequence)
        values = space.tags if self._has_tags else space.labels
        self._values = {value: i for i, value in enumerate(values)}
        kinds = [find_kind(value) if self._has_tags else value for value in values]
        self.has_spans = self._has_tags and any(kind != value for kind, value in zip(kinds, values, strict=True))
        self._members = {
            name: [i for i, (value, kind) in enumerate(zip(values, kinds, strict=True)) if name in (value, kind)]
            for name in {*values, *kinds}
        }
        names = {name for rule in self.rules for name in rule.names}
        unknown = sorted(names - self._members.keys())
        kind_names = ", ".join(sorted({*kinds})[:20])
        if unknown and not names & self._members.keys():
            raise sp.ConfigError(
                f"{self.file.path}: found rules only for {', '.join(unknown)}; the task's outputs have {kind_names}"
            )
        self._rest, self._weights = self._find_rest(), self._weigh_values()
        if not unknown:
            return []
        hints = "".join(sp.did_you_mean(name, self._members) for name in unknown)
        return [f"warning: rules for {', '.join(unknown)} are ignored: the task's outputs have {kind_names}.{hints}"]

    def _find_rest(self) -> tuple[list[int], float]:
        """The values for words, or texts, without a vote, and their weight."""
        name, weight = self.file.default_vote or ("O" if self.has_spans else None, REST)
        if name is not None and name not in self._members:
            raise sp.ConfigError(f"{self.file.path}: otherwise({name!r}): no example with gold has it")
        return self._members.get(name, []), weight

    def rule_votes(self) -> Tensor:
        votes = torch.zeros(len(self.rules), len(self._values))
        for row, rule in enumerate(self.rules):
            for name in rule.names:
                votes[row, self._members.get(name, [])] = -1 if rule.is_against else 1
        return votes

    def index(self, words: Sequence[str]) -> tuple[int, np.ndarray]:
        """Number of words (1 for a text), and hits of the rules, `(hit, 3)`.

        Raises:
            ConfigError: a rule fails, or returns a value of another type or range.
        """
        content = words if isinstance(words, tuple) else tuple(words)
        content = content if self._has_tags else content[0]
        hits = [(row, *span) for row, rule in enumerate(self.rules) for span in self._apply(rule, content)]
        return len(words), np.array(hits, dtype=np.int32).reshape(-1, 3)

    def _apply(self, rule: Rule, content: str | tuple[str, ...]) -> Iterable[tuple[int, int]]:
        try:
            returned = rule.find(content)
            if not self._has_tags:
                if returned is not None and not isinstance(returned, bool | np.bool_ | re.Match):
                    raise TypeError(f"found {type(returned).__name__}; a rule for texts must return True or False")
                return [(0, 1)] if returned else []
            spans = _list_spans(returned)
        except Exception as error:
            raise self._complain(rule, f"{type(error).__name__}: {error}", content) from error
        if invalid := [span for span in spans if not 0 <= span[0] < span[1] <= len(content)]:
            raise self._complain(rule, f"found span {invalid[0]}; expected 0 <= start < end <= {len(content)}", content)
        return dict.fromkeys(spans)

    def _complain(self, rule: Rule, reason: str, content: str | Sequence[str]) -> sp.ConfigError:
        text = content if isinstance(content, str) else " ".join(content)
        return sp.ConfigError(f"{self.file.path}, line {rule.line}: rule {rule.title!r}: {reason}, on {text!r:.200}")

    def collate(self, items: Sequence[tuple[int, np.ndarray]]) -> dict[str, Tensor]:
        longest = max((length for length, _ in items), default=1) or 1
        votes = np.zeros((len(items), longest, len(self._values)), dtype=np.float32)
        fired = np.zeros((len(items), longest, len(self.rules)), dtype=bool)
        default_values, weight = self._rest
        for row, (length, hits) in enumerate(items):
            for rule, start, end in hits.tolist():
                fired[row, start:end, rule] = True
                first, inside, last, single = self._weights[rule]
                votes[row, start:end] += inside
                if end - start == 1:
                    votes[row, start] += single - inside
                else:
                    votes[row, start] += first - inside
                    votes[row, end - 1] += last - inside
            votes[row, :length, default_values] += weight * (votes[row, :length].max(-1) <= 0)
        if not self._has_tags:
            votes[votes == 0] = -REST
            return {sp.VOTES: torch.from_numpy(votes[:, 0]), sp.FIRED: torch.from_numpy(fired[:, 0])}
        return {sp.VOTES: torch.from_numpy(votes), sp.FIRED: torch.from_numpy(fired)}

    def fit(self, hits: Sequence[tuple[int, np.ndarray]], gold: Sequence[np.ndarray]) -> list[str]:
        """Sets each rule's weight to the log-odds of its share of right words, or texts, in these examples, at least 0.

        The file's weight w counts as `PRIOR` more words or texts, of which the share σ(w) is right.
        """
        sides = self.rule_votes().numpy()
        right, count = np.zeros(len(self.rules)), np.zeros(len(self.rules))
        for (_, spans), values in zip(hits, gold, strict=True):
            for row, start, end in spans.tolist():
                span_values = values[start:end][values[start:end] >= 0] if self._has_tags else None
                is_named = (
                    [np.isin(values, np.flatnonzero(sides[row])).any()]
                    if span_values is None
                    else sides[row][span_values] != 0
                )
                agrees = np.asarray(is_named) != self.rules[row].is_against
                right[row] += agrees.sum()
                count[row] += len(agrees)
        file_weights = np.array([rule.weight for rule in self.rules])
        shares = (right + PRIOR / (1 + np.exp(-file_weights))) / (count + PRIOR)
        fitted = np.maximum(np.log(shares / (1 - shares)), 0)
        self._weights *= (fitted / file_weights)[:, None, None]
        descriptions = (
            f"{rule.title} (line {rule.line}) {weight:.1f}" for rule, weight in zip(self.rules, fitted, strict=True)
        )
        return [f"rule weights fitted on {len(gold)} examples with gold: {', '.join(descriptions)}"]

    def _weigh_values(self) -> np.ndarray:
        """Weight of each rule's vote for each value, at the first, an inner, the last and the only word of a span,
        `(rule, 4, value)`."""
        weights = np.zeros((len(self.rules), 4, len(self._values)), dtype=np.float32)
        for row, rule in enumerate(self.rules):
            for name in filter(self._members.get, rule.names):
                places = [self._members[name]] * 4
                if not rule.is_against and name not in self._values:
                    places = [self._find_tag(name, prefixes) for prefixes in ("BI", "I", "EI", "SBI")]
                for place, members in enumerate(places):
                    weights[row, place, members] += -rule.weight if rule.is_against else rule.weight
        return weights

    def _find_tag(self, kind: str, prefixes: str) -> list[int]:
        """The index of a type's tag with the first of these prefixes that has one; [] if none has."""
        tags = (f"{prefix}-{kind}" for prefix in prefixes)
        return next(([self._values[tag]] for tag in tags if tag in self._values), [])

    def reward(self, x: sp.X, y: Tensor) -> Tensor:
        """1 − E / the largest possible E, the energy `rules.votes`, `(batch, sample)`; 1 without votes."""
        votes = x.inputs[sp.VOTES]
        lowest = votes.amin(-1) if self._has_tags else votes.clamp(max=0)
        largest = (best_votes(self.space, votes) - lowest).flatten(1).sum(1, keepdim=True)
        reward = 1 - measure_regret(self.space, votes, y) / torch.where(largest > 0, largest, 1)
        return reward.clamp(0, 1)  # sums are rounded

    @torch.no_grad()
    def search(self, x: sp.X, proposal: sp.Proposal) -> Tensor:
        """The best outputs by the votes and the net's ln q, one for each of `NET_WEIGHTS`, `(batch, 3, *variables)`;
        the net's best output where their reward would be lower than its reward."""
        votes, mode = x.inputs[sp.VOTES].unsqueeze(1), proposal.mode
        shifted = [replace(proposal, logits=proposal.logits + votes / c, chosen=None, _kept={}) for c in NET_WEIGHTS]
        outputs = torch.cat([candidate.mode for candidate in shifted], 1)
        is_worse = self.reward(x, outputs) < self.reward(x, mode)
        return torch.where(is_worse.view(*is_worse.shape, *[1] * (mode.dim() - 2)), mode, outputs)


def _list_spans(returned: Any) -> list[tuple[int, int]]:
    try:
        return [(int(start), int(end)) for start, end in returned or ()]
    except (TypeError, ValueError) as error:
        if error.__traceback__.tb_next is not None:  # raised by the rule itself, a generator
            raise
        raise TypeError(f"found {returned!r:.60}; a rule for words must return pairs (start, end)") from None
