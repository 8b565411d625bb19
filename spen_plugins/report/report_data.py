"""Sections of a report that don't need the runs' data: tables of scores, and curves."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spen_plugins.errors import ConfigError
from spen_plugins.report.compare import LIKELIHOODS, check_baselines, compare
from spen_plugins.report.tables import caption, cells, heads
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.many.groups import Group
from spen_plugins.scores.bootstrap import estimate

NONE = "–"
"""Placeholder for a missing value."""


@dataclass(frozen=True)
class Table:
    """A table of texts; the first cell of a row is its heading."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def format_scores(values: Iterable[float | None], unit: str) -> str:
    """Scores, one per seed -> their mean and its standard error, fractions in per cent."""
    known = [value for value in values if value is not None]
    return estimate(known).shown(unit) if known else NONE


def describe_unit(groups: Sequence[Group]) -> str:
    """The unit of the scores in the tables."""
    units = {unit: None for group in groups for run in group.runs if (unit := run.unit())}
    if not units:
        return "In per cent"
    all_of_them = all(run.unit() for group in groups for run in group.runs)
    return f"{'As they are' if all_of_them else 'In per cent, or as they are'} ({', '.join(units)})"


def list_parts(groups: Sequence[Group]) -> list[str]:
    """The parts on which a run was scored."""
    scored = {name for group in groups for run in group.runs for name in run.metrics() or {}}
    return [name for name in ("validation", "test") if name in scored]


def make_score_table(groups: Sequence[Group], part: str) -> Table:
    """Table of groups by scores, mean ± standard error over seeds."""
    scores = {group.label: [_read_part(run, part) for run in group.runs] for group in groups}
    names = list_keys(table for seeds in scores.values() for table in seeds)
    names = [n for n in names if not any(isinstance(t.get(n), dict) for seeds in scores.values() for t in seeds)]
    units = {group.label: group.runs[0].unit() for group in groups}
    rows = [
        [label, str(len(seeds)), *(format_scores((table.get(name) for table in seeds), units[label]) for name in names)]
        for label, seeds in scores.items()
    ]
    return Table(["", "seeds", *names], [*rows, *_make_constant_rows(groups, part, names)])


def _make_constant_rows(groups: Sequence[Group], part: str, names: Sequence[str]) -> list[list[str]]:
    """A row with the selection score of a constant predictor, for each of the groups' data sets."""
    rows: dict[tuple[str, str], list[str]] = {}
    for group in groups:
        constant = _read_part(group.runs[0], "protocol").get("constant_predictor", {})
        if part in constant:
            value = format_scores([constant[part]], group.runs[0].unit())
            rows.setdefault((constant["score"], value), []).append(group.label)
    return [
        [
            "constant predictor" + (f" of {', '.join(labels)}" if len(labels) < len(groups) else ""),
            "",
            *(value if name == score else NONE for name in names),
        ]
        for (score, value), labels in rows.items()
    ]


def make_nested_tables(groups: Sequence[Group], part: str) -> dict[str, Table]:
    """Scores with several entries, such as one per role, by `group: score`; means over seeds, counts unchanged."""
    tables = {}
    for group in groups:
        seeds = [_read_part(run, part) for run in group.runs]
        for name in list_keys(seeds):
            if all(isinstance(table.get(name), dict) for table in seeds):
                entries, unit = [table[name] for table in seeds], group.runs[0].unit()
                if f"{name}." == LIKELIHOODS:
                    entries, unit = [{"nats": table} for table in entries], "nats"
                tables[f"{group.label}: {name}"] = _make_nested_table(entries, unit)
    return tables


def _make_nested_table(seeds: Sequence[Mapping[str, Mapping[str, Any]]], unit: str) -> Table:
    columns = list_keys(row for table in seeds for row in table.values())
    rows = []
    for name in sorted(list_keys(seeds)):
        cells = [[table[name][column] for table in seeds if column in table.get(name, {})] for column in columns]
        rows.append([name, *(_format_scores_or_counts(values, unit) for values in cells)])
    return Table(["", *columns], rows)


def _format_scores_or_counts(values: Sequence[float], unit: str) -> str:
    if values and all(isinstance(value, int) for value in values):
        return f"{statistics.fmean(values):.10g}"
    return format_scores(values, unit)


def make_differences(groups: Sequence[Group], part: str, against: Sequence[str] = ()) -> tuple[Table | None, list[str]]:
    """Paired differences of the selection score to baselines, and notes on them."""
    check_baselines(groups, against)
    if len(groups) < 2:
        return None, []
    try:
        comparison = compare(groups, part, against=against)
    except ConfigError as error:
        return None, [f"No paired differences: {error}."]
    last = 1 + len(comparison.scores) + len(comparison.against)
    rows = [[row[0], *(cell or NONE for cell in row[1 + len(comparison.scores) : last])] for row in cells(comparison)]
    head = ["", *heads(comparison)[1 + len(comparison.scores) : last]]
    known = {note for group in groups for note in group.notes}
    return Table(head, rows), [caption(comparison), *(note for note in comparison.notes if note not in known)]


def draw_training(groups: Sequence[Group]) -> str:
    """Training curves as inline SVG; empty if no run has a history."""
    if not any(run.history() for group in groups for run in group.runs):
        return ""
    from spen_plugins.figures.kit import svg
    from spen_plugins.report.training_plots import training_figure

    # Otherwise each figure contains web addresses.
    text = svg(training_figure(groups), ("Date", "Creator", "Type", "Format"))
    return text[text.index("<svg") :]


def check_part(part: str | None, groups: Sequence[Group]) -> str:
    """The part whose examples are shown: `part` if given, otherwise test if there is one."""
    known = list_parts(groups)
    if part is None:
        return known[-1] if known else "validation"
    if part not in known:
        raise ConfigError(f"--part {part}: no run was scored on it; expected {' or '.join(known)}")
    return part


def _read_part(run: RunFolder, part: str) -> Mapping[str, Any]:
    return (run.metrics() or {}).get(part, {})


def list_keys(tables: Iterable[Mapping[str, Any]]) -> list[str]:
    """All keys, in order of first occurrence."""
    return list(dict.fromkeys(key for table in tables for key in table))
