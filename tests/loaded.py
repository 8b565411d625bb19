"""Tasks of the registry and modules of scripts, loaded, for tests."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import spen_plugins as sp
from spen_plugins.registry import Registry


def loaded(name: str, **fields: object) -> sp.Task:
    """A task by its type and the fields of its config."""
    cls, config = Registry().parse("task", {"type": name, **fields}, "task", "test")
    task = cls(config)
    task.load()
    return task


def module_of(path: Path) -> ModuleType:
    """The module of a script that is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
