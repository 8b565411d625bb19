"""Sections of a report that don't need the runs' data: scores, protocol, config, environment, curves."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from spen_plugins.errors import ConfigError
from spen_plugins.report.compare import check_baselines, compare
from spen_plugins.report.tables import caption, cells, heads
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.many.groups import Group, seed_of
from spen_plugins.scores.bootstrap import estimate

NONE = "–"
"""Placeholder for a missing value."""
TYPE = re.compile(r"\w+\.type")
"""Keys whose absence matters, too."""


@dataclass(frozen=True)
class Table:
    """A table of texts; the first cell of a row is its heading."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


class Said(NamedTuple):
    """One value, and the groups that have it; empty if all do."""

    groups: str
    value: str


def shown(values: Iterable[float | None], unit: str) -> str:
    """Scores, one per seed -> their mean and its standard error, fractions in per cent."""
    found = [value for value in values if value is not None]
    return estimate(found).shown(unit) if found else NONE


def measured(groups: Sequence[Group]) -> str:
    """How the scores of the tables are to be read."""
    units = {unit: None for group in groups for run in group.runs if (unit := run.unit())}
    if not units:
        return "In per cent"
    all_of_them = all(run.unit() for group in groups for run in group.runs)
    return f"{'As they are' if all_of_them else 'In per cent, or as they are'} ({', '.join(units)})"


def parts_of(groups: Sequence[Group]) -> list[str]:
    """The parts on which a run was scored."""
    found = {name for group in groups for run in group.runs for name in run.metrics() or {}}
    return [name for name in ("validation", "test") if name in found]


def score_table(groups: Sequence[Group], part: str) -> Table:
    """Table of groups by scores, mean ± standard error over seeds."""
    scores = {group.label: [_part(run, part) for run in group.runs] for group in groups}
    names = _keys(table for seeds in scores.values() for table in seeds)
    names = [n for n in names if not any(isinstance(t.get(n), dict) for seeds in scores.values() for t in seeds)]
    units = {group.label: group.runs[0].unit() for group in groups}
    rows = [
        [label, str(len(seeds)), *(shown((table.get(name) for table in seeds), units[label]) for name in names)]
        for label, seeds in scores.items()
    ]
    return Table(["", "seeds", *names], [*rows, *_constants(groups, part, names)])


def _constants(groups: Sequence[Group], part: str, names: Sequence[str]) -> list[list[str]]:
    """A row with the selection score of a constant predictor, for each of the groups' data sets."""
    found: dict[tuple[str, str], list[str]] = {}
    for group in groups:
        constant = _part(group.runs[0], "protocol").get("constant_predictor") or {}
        if part in constant:
            value = shown([constant[part]], group.runs[0].unit())
            found.setdefault((constant["score"], value), []).append(group.label)
    return [
        [
            "constant predictor" + (f" of {', '.join(labels)}" if len(labels) < len(groups) else ""),
            "",
            *(value if name == score else NONE for name in names),
        ]
        for (score, value), labels in found.items()
    ]


def nested_tables(groups: Sequence[Group], part: str) -> dict[str, Table]:
    """Scores with several entries, such as one per role, by `group: score`; means over seeds, counts unchanged."""
    tables = {}
    for group in groups:
        seeds = [_part(run, part) for run in group.runs]
        for name in _keys(seeds):
            if all(isinstance(table.get(name), dict) for table in seeds):
                tables[f"{group.label}: {name}"] = _nested([table[name] for table in seeds], group.runs[0].unit())
    return tables


def _nested(seeds: Sequence[Mapping[str, Mapping[str, Any]]], unit: str) -> Table:
    columns = _keys(row for table in seeds for row in table.values())
    rows = []
    for name in sorted(_keys(seeds)):
        cells = [[table[name][column] for table in seeds if column in table.get(name, {})] for column in columns]
        rows.append([name, *(_scores_or_counts(values, unit) for values in cells)])
    return Table(["", *columns], rows)


def _scores_or_counts(values: Sequence[float], unit: str) -> str:
    if values and all(isinstance(value, int) for value in values):
        return f"{statistics.fmean(values):.10g}"
    return shown(values, unit)


def differences(groups: Sequence[Group], part: str, against: Sequence[str] = ()) -> tuple[Table | None, list[str]]:
    """Paired differences of the selection score to baselines, and notes on them.

    Raises:
        ConfigError: a baseline is no group's label.
    """
    check_baselines(groups, against)
    if len(groups) < 2:
        return None, []
    try:
        found = compare(groups, part, against=against)
    except ConfigError as error:
        return None, [f"No paired differences: {error}."]
    last = 1 + len(found.scores) + len(found.against)
    rows = [[row[0], *(cell or NONE for cell in row[1 + len(found.scores) : last])] for row in cells(found)]
    head = ["", *heads(found)[1 + len(found.scores) : last]]
    known = {note for group in groups for note in group.notes}
    return Table(head, rows), [caption(found), *(note for note in found.notes if note not in known)]


def protocol(groups: Sequence[Group]) -> list[tuple[str, list[Said]]]:
    """Protocols of the scores, each sentence once."""
    return merged({g.label: [(r.metrics() or {}).get("protocol", {}) for r in g.runs] for g in groups})


def config_differences(groups: Sequence[Group]) -> tuple[Table, Table]:
    """Keys of the evaluated configs, except the seed, that differ between groups: keys in all groups, then keys of
    types that only some groups have."""
    flat = {group.label: _text_of([dict(_flatten(run.config())) for run in group.runs]) for group in groups}
    differing = [k for k in _keys(flat.values()) if k != "seed" and len({t.get(k) for t in flat.values()}) > 1]
    shared = [key for key in differing if TYPE.fullmatch(key) or all(key in table for table in flat.values())]
    others = [key for key in differing if key not in shared]
    head = ["", *flat]
    table, rest = ([[k, *(t.get(k, NONE) for t in flat.values())] for k in keys] for keys in (shared, others))
    return Table(head, table), Table(head, rest)


def configs(groups: Sequence[Group]) -> dict[str, str]:
    """The evaluated config of each group's first run, as JSON."""
    return {group.label: json.dumps(group.runs[0].config(), indent=2, ensure_ascii=False) for group in groups}


def environment(groups: Sequence[Group]) -> list[tuple[str, list[Said]]]:
    """Environment of the runs: what results depend on besides configs, and costs."""
    return merged({group.label: [_environment(run) for run in group.runs] for group in groups})


def _environment(run: RunFolder) -> dict[str, Any]:
    found = run.environment()
    packages, plugins = found.get("packages", {}), found.get("plugins", {})
    seconds = [record["seconds"] for record in run.times()]
    cost = {"epochs": len(seconds), "seconds of training": f"{sum(seconds):.0f}"} if seconds else {}
    return {
        "run": str(run.path),
        "config": found.get("source"),
        "seed": seed_of(run),
        "device": found.get("device"),
        **cost,
        "git commit": (found.get("git_commit") or "")[:12],
        "Python": found.get("python"),
        "platform": found.get("platform"),
        "packages": ", ".join(f"{name} {version}" for name, version in packages.items() if version),
        "plugins": ", ".join(f"{name} {version}" for name, version in plugins.items()),
        **{
            f"sha256 of {path}": digest
            for kind in ("data_sha256", "files_sha256")
            for path, digest in found.get(kind, {}).items()
        },
    }


def merged(groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[str, list[Said]]]:
    """Tables of each group's runs -> keys, and their values with the groups that have them; without empty values."""
    texts = {label: _text_of(seeds) for label, seeds in groups.items()}
    found = []
    for key in _keys(texts.values()):
        who: dict[str, list[str]] = {}
        for label, table in texts.items():
            if key in table:
                who.setdefault(table[key], []).append(label)
        alike = len(who) == 1 and len(next(iter(who.values()))) == len(groups)
        found.append((key, [Said("" if alike else ", ".join(labels), text) for text, labels in who.items()]))
    return found


def _text_of(seeds: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Each key's value as text; all values if the seeds differ."""
    table = {}
    for key in _keys(seeds):
        values = dict.fromkeys(_words(seed[key]) for seed in seeds if seed.get(key) is not None)
        if text := ", ".join(value for value in values if value):
            table[key] = text
    return table


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {item}" for key, item in value.items() if item is not None)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def training_svg(groups: Sequence[Group]) -> str:
    """Training curves as inline SVG; empty if no run has a history.

    Raises:
        ConfigError: matplotlib isn't installed.
    """
    if not any(run.history() for group in groups for run in group.runs):
        return ""
    from spen_plugins.figures.kit import svg
    from spen_plugins.report.training_plots import training_figure

    # Otherwise each figure contains web addresses.
    text = svg(training_figure(groups), ("Date", "Creator", "Type", "Format"))
    return text[text.index("<svg") :]


def check_part(part: str | None, groups: Sequence[Group]) -> str:
    """The part whose examples are shown: `part` if given, otherwise test if there is one.

    Raises:
        ConfigError: no run was scored on it.
    """
    known = parts_of(groups)
    if part is None:
        return known[-1] if known else "validation"
    if part not in known:
        raise ConfigError(f"--part {part}: no run was scored on it; expected {' or '.join(known)}")
    return part


def _part(run: RunFolder, part: str) -> Mapping[str, Any]:
    return (run.metrics() or {}).get(part, {})


def _keys(tables: Iterable[Mapping[str, Any]]) -> list[str]:
    """All keys, in order of first occurrence."""
    return list(dict.fromkeys(key for table in tables for key in table))


def _flatten(value: Any, name: str = "") -> Iterable[tuple[str, Any]]:
    """A config's leaves by dotted name; lists are leaves."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _flatten(item, f"{name}.{key}" if name else key)
    else:
        yield name, value
