"""Kinds of the values in a run folder's JSON files that commands rely on, checked when a file is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spen_plugins.errors import RunError
from spen_plugins.files import read_json, read_json_tables

NUMBER = int | float
KINDS: dict[str, dict[str, Any]] = {
    "config.json": {"task": dict, "seed": int | None},
    "environment.json": {"packages": dict | None, "data_sha256": dict | None, "parameters": dict | None},
    "metrics.json": {"validation": dict | None, "test": dict | None, "protocol": dict | None},
    "calibration.json": {"temperature": NUMBER, "validation": dict | None, "test": dict | None},
    "history.jsonl": {"stage": str, "epoch": int, "score": NUMBER | None, "losses": dict | None},
    "times.jsonl": {"seconds": NUMBER},
    "methods.json": {"methods": list},
    "seeds.json": {"configs": dict},
}
"""File -> key -> kind of its value; a key whose kind includes None may be missing."""


def read_table(path: Path) -> dict[str, Any] | None:
    """The table of a JSON file, checked; None without the file."""
    return check_kinds(read_json(path), path) if path.exists() else None


def read_tables(path: Path) -> list[dict[str, Any]]:
    """The tables of a file of JSON lines, checked; empty without the file."""
    tables = read_json_tables(path) if path.exists() else []
    return [check_kinds(table, path, line) for line, table in enumerate(tables, 1)]


def check_kinds(table: dict[str, Any], path: Path, line: int | None = None) -> dict[str, Any]:
    """The table of a file or of one of its lines; raises a `RunError` if a value has another kind."""
    kinds: Mapping[str, Any] = KINDS.get(path.name, {})
    for key, kind in kinds.items():
        if not isinstance(table.get(key), kind):
            place = path if line is None else f"{path}:{line}"
            expected = getattr(kind, "__name__", kind)
            raise RunError(f"{place} is damaged: {key!r}: found {table.get(key)!r:.60}; expected {expected}")
    return table
