"""Types of the columns of annotations in Parquet, and their values for pyarrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from spen_spacy.annotate.columns import Column
from spen_spacy.annotate.fields import as_json

_PLACE = [("text", pa.string()), ("start", pa.int32()), ("end", pa.int32()), ("score", pa.float64())]
_ARGUMENT = pa.struct([("role", pa.string()), ("description", pa.string()), *_PLACE])
_FRAME = pa.struct(
    [
        ("predicate", pa.struct(_PLACE)),
        *((name, pa.string()) for name in ("sense", "gloss")),
        ("sense_score", pa.float64()),
        ("arguments", pa.list_(_ARGUMENT)),
    ]
)
TYPES = {
    "texts": pa.list_(pa.string()),
    "numbers": pa.list_(pa.int32()),
    "floats": pa.list_(pa.float64()),
    "spans": pa.list_(pa.struct([("label", pa.string()), *_PLACE])),
    "frames": pa.list_(_FRAME),
    "groups": pa.list_(pa.struct([("key", pa.string()), ("label", pa.string()), *_PLACE])),
    "numbers_by_name": pa.map_(pa.string(), pa.float64()),
    "json": pa.string(),
}
"""Type of each kind of column. Probabilities are doubles: as float32, 0.9973 would be read as 0.9972999691963196."""


def make_cell(column: Column, value: Any) -> Any:
    """A value of a column for a table of pyarrow."""
    if column.kind == "numbers_by_name":
        return list(value.items())
    return as_json(value) if column.kind == "json" and value is not None else value
