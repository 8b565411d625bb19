"""The registry: plugins, their hooks, and classes by type."""

from spen_plugins.registry.registry import Registry

__all__ = ["Registry"]
