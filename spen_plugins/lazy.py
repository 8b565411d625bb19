"""Packages whose names are imported at first use, so that importing them costs nothing."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def lazy_names(
    package: dict[str, Any], names: Mapping[str, Iterable[str]] | None = None
) -> tuple[Callable[[str], Any], list[str]]:
    """The `__getattr__` of a package, and the sorted list of its names.

    Args:
        package: its `globals()`, where imported names are stored.
        names: module below `spen_plugins` -> its names; None: the imports in the package's block `if TYPE_CHECKING:`.
    """
    where = _imported_names(package) if names is None else {}
    for module, some in (names or {}).items():
        where |= dict.fromkeys(some, f"spen_plugins.{module}")

    def get(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(where[name]), name)
        package[name] = value
        return value

    return get, sorted(where)


def _imported_names(package: Mapping[str, Any]) -> dict[str, str]:
    """Name -> module, of the imports that only type checkers execute."""
    source = package["__spec__"].loader.get_source(package["__name__"])
    blocks = [node.body for node in ast.parse(source).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}
