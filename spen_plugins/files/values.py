"""JSON texts: valid where they are written, read strictly."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn


def to_json(value: Any, indent: int | None = None) -> str:
    """Valid JSON: null stands for a number that is NaN or infinite."""
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_replace_non_finite(value), indent=indent, ensure_ascii=False, allow_nan=False)


def _replace_non_finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_replace_non_finite(key): _replace_non_finite(item) for key, item in value.items()}
    return [_replace_non_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def from_json(text: str | bytes) -> Any:
    """The value of a JSON text, read strictly; bytes are UTF-8, with a byte order mark or without.

    Raises:
        ValueError: it is no JSON; or it is too deep, has half a character, or a number that is no finite one.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig")
    try:
        value = json.loads(text, parse_constant=_reject, parse_float=_read_float)
        if "\\ud" in text or "\\uD" in text:  # half of a pair can't be written again
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("tables or lists inside one another, too deep to be read") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"half a character ({error.object[error.start]!a})") from None
    return value


def _reject(name: str) -> NoReturn:
    raise ValueError(f"{name:.20} is no number of JSON")


def _read_float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _reject(text)
