"""Sections of a report that don't need the runs' data: tables of scores, and curves."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spen_plugins.errors import ConfigError, SpenError
from spen_plugins.registry import Registry
from spen_plugins.report.compare import LIKELIHOODS, check_baselines, compare
from spen_plugins.report.tables import caption, cells, find_best, heads
from spen_plugins.runs.folder.folder import RunFolder, read_methods
from spen_plugins.runs.many.groups import Group, find_run_selection
from spen_plugins.scores.bootstrap import estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NONE = "–"
"""Placeholder for a missing value."""


@dataclass(frozen=True)
class Table:
    """A table of texts; the first cell of a row is its heading. `best` are the row and column of cells in bold."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    best: Collection[tuple[int, int]] = ()


def format_scores(values: Iterable[float | None], unit: str) -> str:
    """Scores, one per seed -> their mean and its standard error, fractions in per cent."""
    numbers = [value for value in values if value is not None]
    return estimate(numbers).format(unit) if numbers else NONE


def describe_unit(groups: Sequence[Group]) -> str:
    """The unit of the scores in the tables."""
    units = {unit: None for group in groups for run in group.runs if (unit := run.unit())}
    if not units:
        return "In per cent"
    all_have_units = all(run.unit() for group in groups for run in group.runs)
    return f"{'As they are' if all_have_units else 'In per cent, or as they are'} ({', '.join(units)})"


def list_parts(groups: Sequence[Group]) -> list[str]:
    """The parts on which a run was scored."""
    part_names = {name for group in groups for run in group.runs for name in run.metrics() or {}}
    return [name for name in ("validation", "test") if name in part_names]


def make_score_table(groups: Sequence[Group], part: str) -> Table:
    """Table of groups by scores, mean ± standard error over seeds; the score that chooses the epochs comes first."""
    scores = {group.label: [_read_part(run, part) for run in group.runs] for group in groups}
    names = list_keys(table for seeds in scores.values() for table in seeds)
    names = [n for n in names if not any(isinstance(t.get(n), dict) for seeds in scores.values() for t in seeds)]
    selections, lower_is_better = _read_directions(groups)
    names.sort(key=lambda name: name not in selections)
    units = {group.label: group.runs[0].unit() for group in groups}
    rows = [
        [label, str(len(seeds)), *(format_scores((table.get(name) for table in seeds), units[label]) for name in names)]
        for label, seeds in scores.items()
    ]
    best = [
        (row, 2 + i)
        for i, name in enumerate(names)
        for row in find_best([r[2 + i] for r in rows], name in lower_is_better)
    ]
    is_comparable = len(groups) > 1 and len(set(units.values())) == 1
    return Table(
        ["", "seeds", *names], [*rows, *_make_constant_rows(groups, part, names)], best if is_comparable else ()
    )


def _read_directions(groups: Sequence[Group]) -> tuple[set[str], set[str]]:
    """The scores that choose epochs, and those for which low values are good; both empty if a plugin is missing."""
    registry, tasks = Registry(), [group.runs[0].config()["task"] for group in groups]
    try:
        lower_is_better = {name for task in tasks for name in registry.resolve("task", task["type"]).lower_is_better}
        return {find_run_selection(group.runs[0], registry) for group in groups}, lower_is_better
    except SpenError:
        return set(), set()


def describe_choice(groups: Sequence[Group]) -> str:
    """A sentence on the method chosen by validation in a folder of several, and on the mean of runs that predicts;
    empty for other folders."""
    parents = {path for run in _list_runs(groups) for path in run.path.resolve().parents[:2]}
    choices = [methods for path in parents if "chosen" in (methods := read_methods(path))]
    if len(choices) != 1:
        return ""
    text, mean = f"Validation chooses {choices[0]['reason']}.", choices[0].get("mean")
    if mean:
        text += f" The folder predicts with the mean of {', '.join(mean['runs'])}."
    return text


def _make_constant_rows(groups: Sequence[Group], part: str, names: Sequence[str]) -> list[list[str]]:
    """Rows with the selection score of a constant predictor, one per data set of the groups."""
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
    """Tables of scores with several entries (one per role), by `group: score`; means over seeds, counts not scaled."""
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


def make_differences(
    groups: Sequence[Group], part: str, baselines: Sequence[str] = ()
) -> tuple[Table | None, list[str]]:
    """Paired differences of the selection score to baselines, and notes on them."""
    check_baselines(groups, baselines)
    if len(groups) < 2:
        return None, []
    try:
        comparison = compare(groups, part, baselines=baselines)
    except ConfigError as error:
        return None, [f"No paired differences: {error}."]
    last = 1 + len(comparison.scores) + len(comparison.baselines)
    rows = [[row[0], *(cell or NONE for cell in row[1 + len(comparison.scores) : last])] for row in cells(comparison)]
    head = ["", *heads(comparison)[1 + len(comparison.scores) : last]]
    group_notes = {note for group in groups for note in group.notes}
    return Table(head, rows), [caption(comparison), *(note for note in comparison.notes if note not in group_notes)]


def draw_training(groups: Sequence[Group]) -> list[str]:
    """Training curves as inline SVG; empty if no run has a history."""
    if not any(run.history() for run in _list_runs(groups)):
        return []
    from spen_plugins.report.plots import training_panels

    return [_inline(figure) for figure in training_panels(groups)]


def draw_calibration(groups: Sequence[Group], parts: Sequence[str]) -> list[str]:
    """A reliability diagram of each part with bins, as inline SVG."""
    calibrated_parts = [
        part for part in parts if any((run.calibration() or {}).get(part, {}).get("bins") for run in _list_runs(groups))
    ]
    if not calibrated_parts:
        return []
    from spen_plugins.report.plots import calibration_figure

    return [_inline(calibration_figure(groups, part)) for part in calibrated_parts]


def _inline(figure: Figure) -> str:
    from spen_plugins.figures.kit import svg

    # With these metadata, each figure would contain web addresses.
    text = svg(figure, ("Date", "Creator", "Type", "Format"))
    return text[text.index("<svg") :]


def _list_runs(groups: Sequence[Group]) -> list[RunFolder]:
    return [run for group in groups for run in group.runs]


def check_part(part: str | None, groups: Sequence[Group]) -> str:
    """The part whose examples are shown: `part`, or by default test if there is one."""
    parts = list_parts(groups)
    if part is None:
        return parts[-1] if parts else "validation"
    if part not in parts:
        raise ConfigError(f"--part {part}: no run was scored on it; expected {' or '.join(parts)}")
    return part


def _read_part(run: RunFolder, part: str) -> Mapping[str, Any]:
    return (run.metrics() or {}).get(part, {})


def list_keys(tables: Iterable[Mapping[str, Any]]) -> list[str]:
    """All keys, in order of first occurrence."""
    return list(dict.fromkeys(key for table in tables for key in table))
