"""Files of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spen_spacy.annotate.fields import as_json

_NO_ERROR = '"error": null}\n'
"""End of the line of a document that did not fail. This key is the last, so that counting failures parses nothing."""


def write_line(row: Mapping[str, Any], error: str | None) -> str:
    """A row and its error as a line of strict JSON: infinities and NaN are null."""
    row = {**row, "error": error}
    try:
        text = json.dumps(row, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        text = as_json(json.loads(as_json(row), parse_constant=lambda _: None))
    return f"{text}\n"


def count_failed(path: Path) -> int:
    """Lines of a shard that have an error."""
    with path.open(encoding="utf-8", newline="\n") as file:
        return sum(map(has_error, file))


def has_error(text: str) -> bool:
    """True for the line of a document that failed."""
    return not text.endswith(_NO_ERROR)
