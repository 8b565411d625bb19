"""One example of vectors from a Python or JSON value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from spen_plugins.data.tables.arff import ancestry
from spen_plugins.data.tables.gold_rows import true_value
from spen_plugins.data.tables.table_columns import Columns
from spen_plugins.errors import DataError, did_you_mean

_KEYS = {"vector", "features", "labels"}
_bad = partial(DataError, "item", None)


def parse_item(columns: Columns, item: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """`{"vector": [...]}` or `{"features": ...}`, `"labels"` optional -> features `(size,)` float32, gold numbers."""
    keys = set(item) if isinstance(item, Mapping) else set()
    if len({"vector", "features"} & keys) != 1 or keys - _KEYS:
        problem = f"keys {', '.join(map(repr, item))}" if isinstance(item, Mapping) else type(item).__name__
        raise _bad(problem, '{"vector": [...]} or {"features": {...}}, perhaps with "labels"')
    vector = _read_vector(columns, item["vector"]) if "vector" in keys else _read_features(columns, item["features"])
    return vector, None if item.get("labels") is None else _label_numbers(columns, item["labels"])


def _read_vector(columns: Columns, values: Any) -> np.ndarray:
    real, names = columns.real, columns.names
    try:
        vector = np.array(values, dtype=np.float32)
    except (TypeError, ValueError):
        vector = np.empty(0)
    if vector.shape != (len(names),):
        raise _bad(f"a vector {values!r:.60}", f"{len(names)} numbers")
    bad = np.flatnonzero(np.where(real, np.isinf(vector), ~np.isin(vector, (0, 1))))
    if len(bad):
        wanted = "a finite number" if real[bad[0]] else "0 or 1"
        raise _bad(f"{vector[bad[0]]:g} for feature {names[bad[0]]!r}", wanted)
    return vector


def _read_features(columns: Columns, features: Any) -> np.ndarray:
    if not isinstance(features, (Mapping, list, tuple)):
        raise _bad(f"features {features!r:.80}", "{name: value} or a list of names")
    vector = np.where(columns.real, np.nan, 0).astype(np.float32)
    for name, value in features.items() if isinstance(features, Mapping) else ((name, 1) for name in features):
        _check_name("feature", name, columns.places)
        at, number = _number(name, columns.features[name], value)
        vector[columns.places[name] + at] = number
    return vector


def _number(name: str, values: Sequence[str], value: Any) -> tuple[int, float]:
    """The place of a value among an attribute's features, and its number there."""
    if not values:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
            raise _bad(f"{value!r} for feature {name!r}", "a finite number")
        return 0, value
    true = true_value(values)
    if value in values:
        return (values.index(value), 1) if true is None else (0, value == values[true])
    if true is None or value not in (0, 1):
        wanted = ", ".join(values) if true is None else f"0, 1, {' or '.join(values)}"
        raise _bad(f"{value!r} for feature {name!r}", f"one of {wanted}")
    return 0, value


def _label_numbers(columns: Columns, names: Any) -> np.ndarray:
    if not isinstance(names, (list, tuple)):
        raise _bad(f"labels {names!r:.80}", 'a list of label names, as in ["a", "b"]')
    place = {name: i for i, name in enumerate(columns.labels)}
    for name in names:
        _check_name("label", name, place)
    if columns.classes is not None:
        names = {a for name in names for a in ancestry(name)}
    return np.array(sorted({place[name] for name in names}), dtype=np.int32)


def _check_name(what: str, name: Any, known: Mapping[str, int]) -> None:
    if not isinstance(name, str) or name not in known:
        raise _bad(f"{what} {name!r}", f"one of the {len(known)} known {what}s.{did_you_mean(str(name), known)}")
