"""Packages whose names are imported at first use, so that importing them costs nothing."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def lazy_names(package: dict[str, Any]) -> tuple[Callable[[str], Any], list[str]]:
    """The `__getattr__` of a package, and the sorted list of the names that its source imports `if TYPE_CHECKING`.

    `dir()` of the package then lists these names, too.

    Args:
        package: its `globals()`, where imported names are stored.
    """
    tree = ast.parse(Path(package["__file__"]).read_text(encoding="utf-8"))
    blocks = [node.body for node in tree.body if isinstance(node, ast.If)]
    imports = [node for body in blocks for node in body if isinstance(node, ast.ImportFrom)]
    modules = {alias.name: str(node.module) for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(modules[name]), name)
        package[name] = value
        return value

    package["__dir__"] = lambda: sorted({*package, *modules})
    return get, sorted(modules)
