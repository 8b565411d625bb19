"""Ends a tool whose data, runs or arguments are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from spen_plugins.errors import SpenError


@contextmanager
def end_with_message(*others: type[Exception]) -> Iterator[None]:
    """Turns a `SpenError`, and errors of other types, into a message without a traceback and exit status 1."""
    try:
        yield
    except (SpenError, *others) as error:
        raise SystemExit(f"error: {error}") from None
