"""The registry: plugins, their hooks, and classes by type.

`Registry` is imported at first use: it imports pydantic, which `spen --help` avoids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spen_plugins.lazy import lazy_names

__getattr__, __all__ = lazy_names(globals())

if TYPE_CHECKING:
    from spen_plugins.registry.registry import Registry
