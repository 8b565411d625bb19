"""Fields of the input beside the text, as columns: their types, and the values that do not fit them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

LOOKED_AT = 100
"""Number of lines of each file of JSON lines from which the types of its fields are inferred."""
OTHER = "other_fields"
"""Column of JSON for fields, and for values of types, that these lines do not have."""
WHOLE = 1 << 63


def infer_kinds(tables: Iterable[Mapping[str, Any]], field: str) -> dict[str, str]:
    """The type of each field but `field`: "string", "bool", "int64", "double", or "json", JSON text."""
    kinds: dict[str, str | None] = {}
    for table in tables:
        for name, value in table.items():
            if name != field:
                kinds[name] = _join_kinds(kinds.get(name), _find_kind(value))
    return {name: kind or "json" for name, kind in kinds.items()}


def _find_kind(value: Any) -> str | None:
    if value is None:
        return None
    names = (("bool", bool), ("int64", int), ("double", float), ("string", str))
    kind = next((name for name, type_ in names if isinstance(value, type_)), "json")
    return "json" if kind == "int64" and not -WHOLE <= value < WHOLE else kind


def _join_kinds(first: str | None, second: str | None) -> str | None:
    if first is None or second is None or first == second:
        return first or second
    return "double" if {first, second} == {"int64", "double"} else "json"


def as_columns(fields: Mapping[str, Any], kinds: Mapping[str, str], names: Mapping[str, str]) -> dict[str, Any]:
    """A row's fields by the names of their columns; null for a null. `kinds` has the type of each field that has a
    column, "any" for a field that Arrow has typed."""
    row: dict[str, Any] = {}
    other_fields = {}
    for name, value in fields.items():
        kind = kinds.get(name)
        if kind == "json":
            row[names[name]] = None if value is None else as_json(value)
        elif kind == "any" or (
            kind is not None and _join_kinds(kind, _find_kind(value)) == kind and _fits(value, kind)
        ):
            row[names[name]] = value
        else:
            other_fields[name] = value
    if other_fields:
        row[OTHER] = as_json(other_fields)
    return row


def _fits(value: Any, kind: str) -> bool:
    """False for a whole number that a column of doubles would change."""
    return kind != "double" or not isinstance(value, int) or int(float(value)) == value


def name_columns(fields: Iterable[str], used_names: Collection[str]) -> dict[str, str]:
    """The name of each field's column: the field's name, after `input_` where it is taken."""
    columns: dict[str, str] = {}
    for name in fields:
        column = name
        while column in used_names or column in columns.values():
            column = f"input_{column}"
        columns[name] = column
    return columns


def make_plain(value: Any) -> Any:
    """A value in types of JSON; other values, and whole numbers of more than 64 bits, become strings."""
    return json.loads(as_json(value), parse_int=lambda digits: n if -WHOLE <= (n := int(digits)) < WHOLE else digits)


def as_json(value: Any) -> str:
    """A value as JSON text; values of types that JSON lacks become strings."""
    return json.dumps(value, ensure_ascii=False, default=str)
