"""A check of components' configs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from spen_plugins.settings.config import Config
from spen_plugins.settings.fields import fields

_NUMBERS = (float("nan"), float("inf"), -float("inf"))


def check_config(config: type[Config]) -> None:
    """Check a component's `Config`: no field of it, or of a table in it, takes NaN or infinity, alone, in a list or in
    a table, each says what it is for, and a user could give its default."""
    try:
        config.model_validate_json("{}")
    except ValidationError as error:
        for detail in error.errors():
            key = ".".join(map(str, detail["loc"]))
            assert detail["type"] == "missing", f"{config.__qualname__}: the default of {key!r}: {detail['msg']}"
    for field in fields(config, nested=True):
        key = f"{config.__qualname__}.{field.name}"
        assert field.doc, f"{key} has no docstring"
        path = field.name.split(".")
        for number in _NUMBERS:
            for value in (number, [number], {"a": number}):
                assert not _takes(config, path, value), f"{key} takes {value}; expected finite numbers only"


def _takes(config: type[Config], path: Sequence[str], value: Any) -> bool:
    """False if an error is about the field; others may be missing."""
    table = value
    for key in reversed(path):
        table = {key: table}
    try:
        config.model_validate_json(json.dumps(table))
    except ValidationError as error:
        return not any(detail["loc"][0] == path[0] and path[-1] in detail["loc"] for detail in error.errors())
    return True
