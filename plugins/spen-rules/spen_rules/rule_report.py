"""The report on rules and examples, as markdown: a table, sentences about its odd rows, and hits in context."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from spen_plugins.figures import markdown_cell
from spen_rules.files import Rule
from spen_rules.rule_counts import RuleCounts, count_votes
from spen_rules.rule_data import RuleData, cut_text, describe_votes
from spen_rules.rule_examples import show_hits
from spen_rules.votes import VotingRules

NEARLY_ALL = 0.9
"""Minimal share of all words or texts on which a rule fires nearly everywhere."""
FEWEST = 5
"""Minimal number of hits with gold for which a rule's accuracy is judged."""
LONGEST = 40
"""Maximal number of characters of a rule's title."""
_NONE = "–"
_COLUMNS = {"names": ["in gold %", "exact %"], "tags": ["accuracy %"], "texts": ["accuracy %"]}


def write_listing(rules: VotingRules) -> str:
    """The rules of a file, without any examples."""
    rows = [_describe(rule) for rule in rules.rules]
    return "\n".join([*_write_table(["line", "rule", "votes", "weight"], rows), *_write_rest(rules)]) + "\n"


def write_report(data: RuleData, rules: VotingRules, examples: int = 0) -> str:
    """The table of the rules on the data, which they are bound to, and the given number of hits of each rule."""
    counts = count_votes(data, rules)
    head = ["line", "rule", "votes", "weight", "coverage %", "hits", "overlap %", "conflict %", *_COLUMNS[data.kind]]
    rows = [_describe(rule) + _write_counts(data, counts, row) for row, rule in enumerate(rules.rules)]
    total = ["", f"all {len(rows)}, weighted vote", "", "", *_write_coverage(counts, -1, int(counts.hits.sum()))]
    lines = [_write_size(data, counts), "", *_write_table(head, [*rows, total + _write_scores(data, counts)])]
    lines += [*_write_rest(rules), *_point_out(data, rules.rules, counts)]
    if examples:
        lines += show_hits(data, rules.rules, counts, examples)
    return "\n".join(lines) + "\n"


def _describe(rule: Rule) -> list[str]:
    return [str(rule.line), cut_text(rule.title, LONGEST), describe_votes(rule), f"{rule.weight:g}"]


def _write_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    ruler = "|".join("---" if name in ("rule", "votes") else "---:" for name in head)
    lines = ["| " + " | ".join(map(markdown_cell, row)) + " |" for row in rows]
    return [f"| {' | '.join(head)} |", f"|{ruler}|", *lines]


def _write_rest(rules: VotingRules) -> list[str]:
    if rules.file.default_vote is None:
        return []
    name, weight = rules.file.default_vote
    return ["", f"Where no rule votes for anything: {markdown_cell(name)}, weight {weight:g}."]


def _write_size(data: RuleData, counts: RuleCounts) -> str:
    total = len(data.examples)
    size = f"{total:,} texts" if data.kind == "texts" else f"{total:,} sentences, {counts.units:,} words"
    labelled = {total: "all", 0: "none"}.get(counts.labelled, f"{counts.labelled:,}")
    return f"{markdown_cell(data.file)}: {size}; {labelled} with gold."


def _write_share(part: int, total: int, digits: int = 1) -> str:
    return f"{100 * part / total:.{digits}f}" if total else _NONE


def _write_coverage(counts: RuleCounts, row: int, hits: int) -> list[str]:
    fired = counts.fired[row]
    shares = [_write_share(units[row], fired) for units in (counts.overlapping, counts.conflicting)]
    return [_write_share(fired, counts.units, 2), f"{hits:,}", *shares]


def _write_counts(data: RuleData, counts: RuleCounts, row: int) -> list[str]:
    coverage = _write_coverage(counts, row, counts.hits[row])
    if not counts.is_known[row]:
        return [*coverage[:2], *[_NONE] * (2 + len(_COLUMNS[data.kind]))]
    right = [_write_share(counts.right[row], counts.judged[row])]
    if data.has_spans:
        exact = counts.exact_hits[row]
        right.append(_NONE if exact < 0 else _write_share(exact, counts.labelled_hits[row]))
    return coverage + right


def _write_scores(data: RuleData, counts: RuleCounts) -> list[str]:
    if counts.scores is None:
        return [_NONE] * len(_COLUMNS[data.kind])
    if data.has_spans:
        names = {"P": "precision", "R": "recall", "F1": "f1"}
        return [_NONE, ", ".join(f"{label} {100 * counts.scores[name]:.1f}" for label, name in names.items())]
    if data.kind == "tags":
        return [f"{100 * counts.scores['accuracy']:.1f}"]
    return [f"example F1 {100 * counts.scores['example_f1']:.1f}"]


def _point_out(data: RuleData, rules: Sequence[Rule], counts: RuleCounts) -> list[str]:
    """A list of sentences about rules that never fire, that fire nearly everywhere, or that contradict gold."""
    fired, judged, right = (values[:-1] for values in (counts.fired, counts.judged, counts.right))
    unit = "text" if data.kind == "texts" else "word"
    is_for = np.array([not rule.is_against for rule in rules])
    is_wrong = counts.is_known & is_for & (counts.labelled_hits >= FEWEST) & (2 * right < judged)

    def list_rules(rows: np.ndarray, detail: Callable[[int], str] = lambda row: "") -> str:
        titles = (
            f"{cut_text(rules[i].title, LONGEST)} (line {rules[i].line}{detail(i)})" for i in np.flatnonzero(rows)
        )
        return "; ".join(map(markdown_cell, titles))

    sentences = {
        "Rules that never fire": list_rules(fired == 0),
        f"Rules that fire on nearly every {unit}": list_rules((fired > 0) & (fired >= NEARLY_ALL * counts.units)),
        "Rules that contradict gold, less than half right": list_rules(
            is_wrong, lambda row: f", {_write_share(right[row], judged[row])} %"
        ),
    }
    lines = [f"- {heading}: {names}." for heading, names in sentences.items() if names]
    return ["", *lines] if lines else []
