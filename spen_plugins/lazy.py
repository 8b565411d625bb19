"""Packages whose names are imported at first use, so that importing them costs nothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def lazy_names(package: dict[str, Any], names: Mapping[str, Iterable[str]]) -> tuple[Callable[[str], Any], list[str]]:
    """The `__getattr__` of a package, and the sorted list of its names.

    Args:
        package: its `globals()`, where imported names are stored.
        names: module below `spen_plugins` -> its names.
    """
    where = {name: module for module, found in names.items() for name in found}

    def get(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"spen_plugins.{where[name]}"), name)
        package[name] = value
        return value

    return get, sorted(where)
