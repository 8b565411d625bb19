"""Tasks of the registry, loaded, for tests."""

from __future__ import annotations

import spen_plugins as sp
from spen_plugins.registry import Registry


def loaded(name: str, **fields: object) -> sp.Task:
    """A task by its type and the fields of its config."""
    cls, config = Registry().parse("task", {"type": name, **fields}, "task", "test")
    task = cls(config)
    task.load()
    return task
