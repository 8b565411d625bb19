"""The registry: plugins, their hooks, and classes by type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spen_plugins.registry.registry import Registry

__all__ = ["Registry"]


def __getattr__(name: str) -> Any:
    """`Registry` at first use: it imports pydantic, which `spen --help` avoids."""
    if name != "Registry":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from spen_plugins.registry.registry import Registry

    return Registry


def __dir__() -> list[str]:
    return __all__
