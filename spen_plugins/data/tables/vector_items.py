"""One example of vectors from a Python or JSON value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from spen_plugins.data.tables.arff import ancestry
from spen_plugins.data.tables.gold_rows import true_value
from spen_plugins.data.tables.table_columns import Columns
from spen_plugins.errors import DataError, did_you_mean

_KEYS = {"vector", "features", "labels"}


def parse_item(columns: Columns, item: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """`{"vector": [...]}` or `{"features": ...}`, `"labels"` optional -> features `(size,)` float32, gold numbers.

    Raises:
        DataError: an unknown feature or label (with the nearest known), a wrong length or value.
    """
    keys = set(item) if isinstance(item, Mapping) else set()
    if len({"vector", "features"} & keys) != 1 or keys - _KEYS:
        found = f"keys {', '.join(map(repr, item))}" if isinstance(item, Mapping) else type(item).__name__
        raise _bad(found, '{"vector": [...]} or {"features": {...}}, perhaps with "labels"')
    vector = _vector(columns, item["vector"]) if "vector" in keys else _by_name(columns, item["features"])
    return vector, None if item.get("labels") is None else _label_numbers(columns, item["labels"])


def _bad(found: str, expected: str) -> DataError:
    return DataError("item", None, found, expected)


def _vector(columns: Columns, values: Any) -> np.ndarray:
    real, names = columns.real, columns.names
    try:
        vector = np.array(values, dtype=np.float32)
    except (TypeError, ValueError):
        raise _bad("a vector with something not a number in it", f"{len(names)} numbers") from None
    if vector.shape != (len(names),):
        raise _bad(f"a vector of shape {vector.shape}", f"{len(names)} numbers")
    bad = np.flatnonzero(np.where(real, np.isinf(vector), ~np.isin(vector, (0, 1))))
    if len(bad):
        wanted = "a finite number" if real[bad[0]] else "0 or 1"
        raise _bad(f"{vector[bad[0]]:g} for feature {names[bad[0]]!r}", wanted)
    return vector


def _by_name(columns: Columns, features: Any) -> np.ndarray:
    if isinstance(features, str) or not isinstance(features, (Mapping, list, tuple)):
        raise _bad(f"features {features!r}", "{name: value} or a list of names")
    vector = np.where(columns.real, np.nan, 0).astype(np.float32)
    places = columns.places
    for name, value in features.items() if isinstance(features, Mapping) else ((name, 1) for name in features):
        if not isinstance(name, str) or name not in places:
            near = did_you_mean(str(name), places)
            raise _bad(f"feature {name!r}", f"one of the {len(places)} known.{near}")
        at, values = places[name], columns.features[name]
        true = true_value(values) if values else None
        if not values:
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
                raise _bad(f"{value!r} for feature {name!r}", "a finite number")
            vector[at] = value
        elif true is not None:
            if value not in (0, 1, *values):
                raise _bad(f"{value!r} for feature {name!r}", f"0, 1, {' or '.join(values)}")
            vector[at] = value == values[true] if isinstance(value, str) else value
        elif value in values:
            vector[at + values.index(value)] = 1
        else:
            raise _bad(f"{value!r} for feature {name!r}", f"one of {', '.join(values)}")
    return vector


def _label_numbers(columns: Columns, names: Any) -> np.ndarray:
    if not isinstance(names, (list, tuple)):
        raise _bad(f"labels {names!r:.80}", 'a list of label names, as in ["a", "b"]')
    place = {name: i for i, name in enumerate(columns.labels)}
    for name in names:
        if not isinstance(name, str) or name not in place:
            raise _bad(f"label {name!r}", f"a known label.{did_you_mean(str(name), place)}")
    if columns.classes is not None:
        names = {a for name in names for a in ancestry(name)}
    return np.array(sorted({place[name] for name in names}), dtype=np.int32)
