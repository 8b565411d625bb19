"""Scores of task `e2e.arcs`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from spen_e2e.arc_repair import Pairs, Repair, find_violations, repair_roles
from spen_plugins import Batch, DataError, Metric, Proposal, X
from spen_plugins.sentences import CORE, Argument, SentenceBatch, SpanCounts, join

REPAIRS: tuple[Repair, ...] = get_args(Repair)
DEFINITIONS = {
    "metric": "span_f1: arguments right in role and every piece, as the CoNLL-2005 evaluation counts them; V left out, "
    "C-X joined to the X before it, R-X a role of its own; arguments that are no candidates count as missed",
    "f1_none, f1_heuristic, f1_ilp": "span_f1 of the most probable roles, and under the constraints of task.repair",
    "violations": "share of predicates whose most probable roles break a constraint, before repair: overlaps of "
    "arguments, repeats of a core role (A0-A5, ARG0-ARG5; no C-, R-)",
    "reach": "share of gold arguments whose pieces are all candidates; reached_f1 is span_f1 with these alone as gold",
}
"""Definitions of the scores, for a run's protocol."""


@dataclass(frozen=True)
class Places:
    """Places of a batch's pairs, concatenated: `row`, `column` `(pair,)` in the mask, and `pairs`."""

    row: np.ndarray
    column: np.ndarray
    pairs: Pairs

    @classmethod
    def from_inputs(cls, x: X) -> Places:
        assert x.mask is not None
        row, column = np.nonzero(x.mask.cpu().numpy())
        numbers = {name: x.inputs[name].cpu().numpy() for name in ("pair_predicate", "pair_candidate")}
        first, last = (x.inputs[f"candidate_{end}"].cpu().numpy() for end in ("first", "last"))
        predicate, candidate = numbers["pair_predicate"][row, column], numbers["pair_candidate"][row, column]
        predicate_numbers = row * x.inputs["predicate_at"].shape[1] + predicate
        return cls(row, column, Pairs(predicate_numbers, first[row, candidate], last[row, candidate]))

    def values(self, y: Tensor) -> np.ndarray:
        """`(batch, 1, pair, role)` -> `(pair, role)` in double precision."""
        return y[:, 0].detach().cpu().numpy()[self.row, self.column].astype(np.float64)


class Roles:
    """The names of roles, none first, and the decisions and arguments with these roles."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.core = np.array([CORE.fullmatch(name) is not None for name in names])

    def decide(self, proposal: Proposal, x: X, *repairs: Repair) -> tuple[Places, list[np.ndarray]]:
        """The roles `(pair,)` of a batch's pairs by each repair; the net's own choices are not repaired."""
        places = Places.from_inputs(x)
        is_chosen = proposal.chosen is not None
        p = places.values(proposal.chosen if is_chosen else proposal.mean)
        return places, [repair_roles(p, places.pairs, self.core, "none" if is_chosen else repair) for repair in repairs]

    def arguments(self, places: Places, roles: np.ndarray) -> dict[int, list[Argument]]:
        """The arguments of each predicate that has any, by its number in the batch."""
        spans: dict[int, list[tuple[str, int, int]]] = {}
        arcs = np.flatnonzero(roles)
        argument_pairs = places.pairs.take(arcs)
        order = np.lexsort((argument_pairs.last, argument_pairs.first, argument_pairs.predicate))
        rows = np.stack([argument_pairs.predicate, roles[arcs], argument_pairs.first, argument_pairs.last], 1)[order]
        for predicate, role, first, last in rows.tolist():
            spans.setdefault(predicate, []).append((self.names[role], first, last))
        return {predicate: join(pieces) for predicate, pieces in spans.items()}


class ArcMetric(Metric):
    """`span_precision`, `span_recall`, `span_f1`, `f1_none`, `f1_heuristic`, `f1_ilp`, `reached_f1`, `reach`,
    `violations`, `overlaps`, `repeats`, accuracy of `arcs`, `roles`; `repair` is that of `span_f1`."""

    def __init__(self, roles: Roles, repair: Repair) -> None:
        self._roles, self._repair = roles, repair
        self._counts = {name: SpanCounts() for name in REPAIRS}
        self._reached = SpanCounts()
        self._sums: Counter[str] = Counter()
        self._ratios: list[Tensor] = []

    def update(self, proposal: Proposal, batch: Batch) -> None:
        assert isinstance(batch, SentenceBatch)
        ratios = torch.zeros(len(batch.rows), 2, dtype=torch.double)
        self._ratios.append(ratios)
        labelled = batch.labelled.cpu().numpy()
        if batch.gold is None or not labelled.any():
            return
        width = batch.x.inputs["predicate_at"].shape[1]
        places, decisions = self._roles.decide(proposal, batch.x, *REPAIRS)
        for repair, roles in zip(REPAIRS, decisions, strict=True):
            arguments = self._roles.arguments(places, roles)
            for row in np.flatnonzero(labelled).tolist():
                example, ratio = batch.examples[row], [0, 0]
                for i, (gold, reached) in enumerate(zip(example.arguments, example.reached, strict=True)):
                    predicted = arguments.get(row * width + i, [])
                    right_count = self._counts[repair].add(predicted, gold)
                    if repair == self._repair:
                        self._reached.add(predicted, reached)
                        ratio[0] += 2 * right_count
                        ratio[1] += len(predicted) + len(gold)
                if repair == self._repair:
                    ratios[row] = torch.tensor(ratio, dtype=torch.double)
            if repair == "none":
                self._count_roles(batch, places, roles, labelled)

    def _count_roles(self, batch: SentenceBatch, places: Places, roles: np.ndarray, labelled: np.ndarray) -> None:
        """Counts violations and right roles before repair."""
        assert batch.gold is not None
        is_labelled = labelled[places.row]
        overlaps, repeats = find_violations(places.pairs, np.where(is_labelled, roles, 0), self._roles.core)
        gold = places.values(batch.gold).argmax(-1)
        examples = [example for example, has_gold in zip(batch.examples, labelled, strict=True) if has_gold]
        self._sums.update(
            predicates=sum(len(example.predicates) for example in examples),
            overlaps=len(overlaps),
            repeats=len(repeats),
            violations=len(np.union1d(overlaps, repeats)),
            pairs=int(is_labelled.sum()),
            right=int(((roles == gold) & is_labelled).sum()),
        )

    def ratios(self) -> tuple[Tensor, Tensor]:
        """Twice the right arguments, and predicted plus gold ones, by sentence: span F1 is the ratio of their sums."""
        numerator, denominator = torch.cat(self._ratios).unbind(1)
        return numerator, denominator

    def compute(self) -> dict[str, Any]:
        if not self._sums["predicates"]:
            raise DataError("scores", None, "no predicate with gold roles", "at least one to score")
        scores = self._counts[self._repair].scores()
        roles = scores.pop("roles")
        return {
            **scores,
            **{f"f1_{repair}": counts.scores()["span_f1"] for repair, counts in self._counts.items()},
            "reached_f1": self._reached.scores()["span_f1"],
            "reach": self._reached.gold.total() / max(self._counts[self._repair].gold.total(), 1),
            **{name: self._sums[name] / self._sums["predicates"] for name in ("violations", "overlaps", "repeats")},
            "accuracy": self._sums["right"] / max(self._sums["pairs"], 1),
            "roles": roles,
        }
