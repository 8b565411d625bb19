"""Counts of rules on examples: where they fire, beside which other rules, and how often they are right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import spen_plugins as sp
from spen_rules.rule_data import RuleData
from spen_rules.vote_energy import find_kind
from spen_rules.votes import VotingRules

BATCH = 256


@dataclass
class RuleCounts:
    """Counts over the units of outputs: words, or texts.

    Attributes:
        places: hits of all rules, `(hit, 4)`: rule, example, first unit, end.
        units: number of units.
        labelled: number of examples with gold.
        sides: side of each rule on each value, as in `Rules.rule_votes`.
        hits, labelled_hits: number of hits, and of hits in examples with gold, `(rule,)`.
        exact_hits: number of `labelled_hits` that are gold spans, `(rule,)`; −1 for rules that aren't for types.
        fired: units, `(rule + 1,)`, on which a rule fires; the last is for all rules together.
        overlapping, conflicting: fired units where another rule fires, or a rule that contradicts it.
        judged, right: fired units with gold, and those where gold agrees with the rule.
        scores: scores of the weighted vote; None without gold.
    """

    places: np.ndarray
    units: int
    labelled: int
    sides: np.ndarray
    hits: np.ndarray
    labelled_hits: np.ndarray
    exact_hits: np.ndarray
    fired: np.ndarray
    overlapping: np.ndarray
    conflicting: np.ndarray
    judged: np.ndarray
    right: np.ndarray
    scores: dict[str, Any] | None

    @property
    def is_known(self) -> np.ndarray:
        """False for rules that are left out, as they vote on no value."""
        return self.sides.any(1)


def count_votes(data: RuleData, rules: VotingRules) -> RuleCounts:
    """Counts on all examples; the rules are bound to the data's output space.

    Raises:
        ConfigError: a rule fails.
    """
    places = find_places(data, rules)
    sides = rules.rule_votes().numpy()
    clashes = find_clashes(sides, isinstance(data.task.space, sp.TagSequence)).astype(np.float32)
    data.task.indexers["rules"] = rules
    metric, units, sums = data.task.metric(), 0, np.zeros((5, len(sides) + 1), dtype=np.int64)
    for start in range(0, len(data.examples), BATCH):
        batch = data.task.collate(data.examples[start : start + BATCH])
        metric.update(data.task.space.independent(batch.x.inputs[sp.VOTES].unsqueeze(1), batch.x.mask), batch)
        fired, gold, has_gold = list_units(batch)
        units += len(fired)
        sums += count_units(fired, gold, has_gold, sides, clashes)
    labelled = np.array([data.gold(example) is not None for example in data.examples], dtype=bool)
    is_judged = labelled[places[:, 1]]
    hits, labelled_hits = (np.bincount(rows, minlength=len(sides)) for rows in (places[:, 0], places[is_judged, 0]))
    exact_hits = count_exact(data, rules, places[is_judged])
    scores = metric.compute() if labelled.any() else None
    return RuleCounts(places, units, int(labelled.sum()), sides, hits, labelled_hits, exact_hits, *sums, scores)


def find_places(data: RuleData, rules: VotingRules) -> np.ndarray:
    """Applies the rules to each example, which keeps its hits for `collate`; returns the `places` of `RuleCounts`."""
    hits = []
    for number, example in enumerate(data.examples):
        item = data.items(example)["rules"] = rules.index(data.words(example))
        hits.append(np.insert(item[1], 1, number, axis=1))
    return np.concatenate([np.zeros((0, 4), dtype=np.int32), *hits])


def find_clashes(sides: np.ndarray, is_exclusive: bool) -> np.ndarray:
    """Pairs of rules that contradict each other, `(rule, rule)` boolean: one is for a value that the other is against,
    or, with `is_exclusive`, both are for values and have none in common."""
    pro, con = (side.astype(np.float32) for side in (sides > 0, sides < 0))
    clashes = pro @ con.T > 0
    clashes |= clashes.T
    if is_exclusive:
        votes = pro.any(1)
        clashes |= votes[:, None] & votes & (pro @ pro.T == 0)
    return clashes


def list_units(batch: sp.Batch) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """The rules that fire on a batch's units, `(unit, rule)`, gold `(unit, value)`, and where there is gold."""
    fired, mask = batch.x.inputs[sp.FIRED], batch.x.mask
    gold = None if batch.gold is None else batch.gold[:, 0]
    if mask is None:
        return fired.numpy(), None if gold is None else gold.numpy(), batch.labelled.numpy()
    has_gold = batch.labelled[:, None].expand_as(mask)[mask].numpy()
    return fired[mask].numpy(), None if gold is None else gold[mask].numpy(), has_gold


def count_units(
    fired: np.ndarray, gold: np.ndarray | None, has_gold: np.ndarray, sides: np.ndarray, clashes: np.ndarray
) -> np.ndarray:
    """Counts of units, `(5, rule + 1)`: fired, overlapping, conflicting, judged and right of `RuleCounts`; the last two
    are 0 for all rules together."""
    voting = fired & sides.any(1)
    overlapping = voting & (voting.sum(1, keepdims=True) > 1)
    conflicting = voting & (voting.astype(np.float32) @ clashes > 0)
    judged = fired & has_gold[:, None]
    right = np.zeros_like(judged)
    if gold is not None:
        is_for, is_against = (gold @ side.T.astype(np.float32) > 0 for side in (sides > 0, sides < 0))
        right = judged & np.where((sides < 0).any(1), ~is_against, is_for)
    counts = [array.sum(0) for array in (fired, overlapping, conflicting, judged, right)]
    totals = [array.any(1).sum() for array in (voting, overlapping, conflicting)]
    return np.column_stack([counts, [*totals, 0, 0]])


def count_exact(data: RuleData, rules: VotingRules, places: np.ndarray) -> np.ndarray:
    """Hits that are gold spans of a rule's types, `(rule,)`; −1 for rules against types, or for tags."""
    kinds = {find_kind(tag) for tag in data.values} - {"O"} if data.has_spans else set()
    rule_kinds = [() if rule.is_against else [name for name in rule.names if name in kinds] for rule in rules.rules]
    counts = np.array([0 if names else -1 for names in rule_kinds])
    for rule, number, start, end in places.tolist():
        spans = data.examples[number].spans if rule_kinds[rule] else ()
        counts[rule] += any((name, start, end) in spans for name in rule_kinds[rule])
    return counts
