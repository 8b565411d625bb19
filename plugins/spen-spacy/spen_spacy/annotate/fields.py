"""Fields of the input beside the text, as columns: their types, and what does not fit them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

LOOKED_AT = 100
"""Lines of each file of JSON lines from which the types of its fields are taken."""
OTHER = "other_fields"
"""Column of JSON for fields, and values of a type, that these lines do not have."""
WHOLE = 1 << 63


def infer_kinds(tables: Iterable[Mapping[str, Any]], field: str) -> dict[str, str]:
    """The type of each field but `field`: "string", "bool", "int64", "double", or "json", a text of JSON."""
    kinds: dict[str, str | None] = {}
    for table in tables:
        for name, value in table.items():
            if name != field:
                kinds[name] = _join_kinds(kinds.get(name), _kind(value))
    return {name: kind or "json" for name, kind in kinds.items()}


def _kind(value: Any) -> str | None:
    if value is None:
        return None
    names = (("bool", bool), ("int64", int), ("double", float), ("string", str))
    kind = next((name for name, type_ in names if isinstance(value, type_)), "json")
    return "json" if kind == "int64" and not -WHOLE <= value < WHOLE else kind


def _join_kinds(one: str | None, other: str | None) -> str | None:
    if one is None or other is None or one == other:
        return one or other
    return "double" if {one, other} == {"int64", "double"} else "json"


def as_columns(fields: Mapping[str, Any], known: Mapping[str, str], names: Mapping[str, str]) -> dict[str, Any]:
    """A row's fields by the names of their columns; null where there is none. `known` has the type of each field that
    has a column, "any" of one that Arrow has typed."""
    row: dict[str, Any] = {}
    other = {}
    for name, value in fields.items():
        kind = known.get(name)
        if kind == "json":
            row[names[name]] = None if value is None else as_json(value)
        elif kind == "any" or (kind is not None and _join_kinds(kind, _kind(value)) == kind and _fits(value, kind)):
            row[names[name]] = value
        else:
            other[name] = value
    if other:
        row[OTHER] = as_json(other)
    return row


def _fits(value: Any, kind: str) -> bool:
    """False of a whole number that a column of doubles would change."""
    return kind != "double" or not isinstance(value, int) or int(float(value)) == value


def name_columns(known: Iterable[str], taken: Collection[str]) -> dict[str, str]:
    """The name of each field's column: its own, or `input_` and its own where that is taken."""
    columns: dict[str, str] = {}
    for name in known:
        column = name
        while column in taken or column in columns.values():
            column = f"input_{column}"
        columns[name] = column
    return columns


def make_plain(value: Any) -> Any:
    """A value of nothing but what JSON has; others, and whole numbers of more than 64 bits, as their own text."""
    return json.loads(as_json(value), parse_int=lambda digits: n if -WHOLE <= (n := int(digits)) < WHOLE else digits)


def as_json(value: Any) -> str:
    """A text of JSON; what JSON does not have as its own text."""
    return json.dumps(value, ensure_ascii=False, default=str)
