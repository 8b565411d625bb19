"""Tasks of the registry and modules of scripts, loaded, for tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import spen_plugins as sp
from spen_plugins.registry import Registry

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""


def parsed(kind: str, name: str, **fields: object) -> tuple[type, sp.Config]:
    """A component's class, by its kind and type, and its config, as a run parses it."""
    return Registry().parse(kind, {"type": name, **fields}, kind, "test")


def loaded(name: str, **fields: object) -> sp.Task:
    """A task by its type and the fields of its config."""
    cls, config = parsed("task", name, **fields)
    task = cls(config)
    task.load()
    return task


def module_of(path: Path) -> ModuleType:
    """The module of a script that is in no package; it finds those beside it, as when it is run."""
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
