"""Mistakes in the code of a component as one sentence."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from spen_plugins.component import Component
from spen_plugins.errors import PluginError
from spen_plugins.features import FeatureNetwork
from spen_plugins.loop.memory import is_out_of_memory
from spen_plugins.task import Task
from spen_plugins.trainer import Trainer

MISTAKES = (AttributeError, ImportError, IndexError, NameError, RuntimeError, TypeError)
"""Errors of code, such as a wrong name or shape."""


@contextmanager
def translate_mistakes() -> Iterator[None]:
    """Raises a `PluginError` that names method and line in place of `MISTAKES` in a component's code inside."""
    try:
        yield
    except MISTAKES as error:
        method = _find_innermost_method(error)
        if method is None or is_out_of_memory(error):
            raise
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise PluginError(f"{method} fails in training: {reason}") from error


def _find_innermost_method(error: Exception) -> str | None:
    """The innermost method of a component in an error's traceback, with file and line."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        component = frame.f_locals.get("self")
        is_torch = str(frame.f_globals.get("__name__")).startswith("torch.")
        if isinstance(component, (Component, FeatureNetwork, Task, Trainer)) and not is_torch:
            code = frame.f_code
            return f"{type(component).__name__}.{code.co_name} ({code.co_filename}, line {line})"
    return None
