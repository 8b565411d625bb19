"""Facts about runs in a report: protocols, configs and environments, and the groups that have each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from spen_plugins.report.report_data import NONE, Table, list_keys
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.many.groups import Group, read_seed

TYPE = re.compile(r"\w+\.type")
"""Keys that also count as shared if some groups lack them."""


class Fact(NamedTuple):
    """One value, and the groups that have it; `groups` is empty if all do."""

    groups: str
    value: str


def read_protocols(groups: Sequence[Group]) -> list[tuple[str, list[Fact]]]:
    """Protocols of the scores; equal ones are merged."""
    return merge_facts({g.label: [(r.metrics() or {}).get("protocol", {}) for r in g.runs] for g in groups})


def find_config_differences(groups: Sequence[Group]) -> tuple[Table, Table]:
    """Keys of the evaluated configs, except the seed, that differ between groups: keys in all groups, then keys of
    types that only some groups have."""
    tables = {group.label: _join_values([dict(_flatten(run.config())) for run in group.runs]) for group in groups}
    differing_keys = [
        k for k in list_keys(tables.values()) if k != "seed" and len({t.get(k) for t in tables.values()}) > 1
    ]
    shared_keys = [
        key for key in differing_keys if TYPE.fullmatch(key) or all(key in table for table in tables.values())
    ]
    other_keys = [key for key in differing_keys if key not in shared_keys]
    head = ["", *tables]
    shared_rows, other_rows = (
        [[k, *(t.get(k, NONE) for t in tables.values())] for k in keys] for keys in (shared_keys, other_keys)
    )
    return Table(head, shared_rows), Table(head, other_rows)


def read_environments(groups: Sequence[Group]) -> list[tuple[str, list[Fact]]]:
    """Environment of the runs: everything besides configs that results depend on, and costs."""
    return merge_facts({group.label: [_read_environment(run) for run in group.runs] for group in groups})


def _read_environment(run: RunFolder) -> dict[str, Any]:
    environment = run.environment()
    packages, plugins = environment.get("packages", {}), environment.get("plugins", {})
    seconds = [record["seconds"] for record in run.times()]
    cost = {"epochs": len(seconds), "seconds of training": f"{sum(seconds):.0f}"} if seconds else {}
    changes = " with uncommitted changes" * bool(environment.get("git_dirty"))
    return {
        "run": str(run.path),
        "config": environment.get("source"),
        "seed": read_seed(run),
        "device": environment.get("device"),
        **cost,
        "git commit": (environment.get("git_commit") or "")[:12] + changes,
        "Python": environment.get("python"),
        "platform": environment.get("platform"),
        "packages": ", ".join(f"{name} {version}" for name, version in packages.items() if version),
        "plugins": ", ".join(f"{name} {version}" for name, version in plugins.items()),
        **{
            f"sha256 of {path}": digest
            for kind in ("data_sha256", "files_sha256")
            for path, digest in environment.get(kind, {}).items()
        },
    }


def merge_facts(groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[str, list[Fact]]]:
    """Tables of each group's runs -> keys, and their values with the groups that have them; skips empty values."""
    texts = {label: _join_values(seeds) for label, seeds in groups.items()}
    facts = []
    for key in list_keys(texts.values()):
        labels_by_text: dict[str, list[str]] = {}
        for label, table in texts.items():
            if key in table:
                labels_by_text.setdefault(table[key], []).append(label)
        is_shared = len(labels_by_text) == 1 and len(next(iter(labels_by_text.values()))) == len(groups)
        facts.append(
            (key, [Fact("" if is_shared else ", ".join(labels), text) for text, labels in labels_by_text.items()])
        )
    return facts


def _join_values(seeds: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Each key's value as text; all values if the seeds differ."""
    table = {}
    for key in list_keys(seeds):
        values = dict.fromkeys(_write_value(seed[key]) for seed in seeds if seed.get(key) is not None)
        if text := ", ".join(value for value in values if value):
            table[key] = text
    return table


def _write_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {item}" for key, item in value.items() if item is not None)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _flatten(value: Any, name: str = "") -> Iterable[tuple[str, Any]]:
    """A config's leaves by dotted name; lists are leaves."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _flatten(item, f"{name}.{key}" if name else key)
    else:
        yield name, value
