"""Hits of rules in context."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spen_rules.files import Rule
from spen_rules.rule_counts import RuleCounts
from spen_rules.rule_data import RuleData, cut_text, describe_votes

CONTEXT = 8
"""Words before and after a span."""
LONGEST = 120
"""Maximal number of characters of a text."""


def show_hits(data: RuleData, rules: Sequence[Rule], counts: RuleCounts, count: int) -> list[str]:
    """At most `count` hits of each rule, spread evenly over the examples, with gold where it disagrees."""
    lines: list[str] = []
    for row, rule in enumerate(rules):
        places = counts.places[counts.places[:, 0] == row]
        if not len(places):
            continue
        chosen = np.linspace(0, len(places) - 1, min(count, len(places))).round().astype(int)
        lines += ["", f"Line {rule.line}, `{_clean(rule.title)}`: {describe_votes(rule)}", ""]
        for place in places[chosen].tolist():
            gold = _find_gold(data, counts, rule, place)
            lines.append("    " + _show_place(data, place) + (f"    gold: {gold}" if gold else ""))
    return lines


def _show_place(data: RuleData, place: Sequence[int]) -> str:
    _, number, start, end = place
    words = data.words(data.examples[number])
    if data.kind == "texts":
        return cut_text(_clean(words[0]), LONGEST)
    first, last = max(start - CONTEXT, 0), min(end + CONTEXT, len(words))
    span = f"[{' '.join(words[start:end])}]"
    pieces = ["…"] * (first > 0) + [*words[first:start], span, *words[end:last]] + ["…"] * (last < len(words))
    return _clean(" ".join(pieces))


def _find_gold(data: RuleData, counts: RuleCounts, rule: Rule, place: Sequence[int]) -> str | None:
    """The gold that disagrees with a hit; None if it agrees, is unknown, or the rule is left out."""
    row, number, start, end = place
    example = data.examples[number]
    gold = data.gold(example)
    if gold is None or not counts.is_known[row]:
        return None
    values = gold if data.kind == "texts" else gold[start:end]
    if counts.exact_hits[row] >= 0:
        agrees = any((name, start, end) in example.spans for name in rule.names)
    else:
        agrees = _agrees(counts.sides[row, values], rule.is_against, data.kind == "texts")
    return None if agrees else _clean(_describe_gold(data, place, values))


def _agrees(sides: np.ndarray, is_against: bool, is_text: bool) -> bool:
    """True if a rule is right, given its sides on gold: the tags of all its words, or the labels of a text."""
    if is_against:
        return not (sides < 0).any()
    return bool((sides > 0).any() if is_text else (sides > 0).all())


def _describe_gold(data: RuleData, place: Sequence[int], values: np.ndarray) -> str:
    """The gold spans that share words with a hit, or the tags of its words, or a text's labels."""
    _, number, start, end = place
    if data.has_spans:
        words = data.words(data.examples[number])
        spans = sorted(span for span in data.examples[number].spans if span.start < end and start < span.end)
        return "; ".join(f"{kind} {' '.join(words[a:b])}" for kind, a, b in spans) or "O"
    names = [data.values[value] for value in values]
    return (", " if data.kind == "texts" else " ").join(names) or "no label"


def _clean(text: str) -> str:
    """The text on one line, without control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()
