"""Meanings of senses and of their roles, from the task of senses, where it is installed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from spen_plugins import PluginError, Registry

if TYPE_CHECKING:
    from spen_plugins.sentences import SenseTask

TASK = "propbank.senses"
"""The task whose senses frames have."""


@cache
def lexicon() -> type[SenseTask] | None:
    """The task that knows what senses mean; None where it is not installed."""
    try:
        return Registry().resolve("task", TASK)
    except PluginError:
        return None


def gloss(sense: str | None) -> str | None:
    """The meaning of a sense in a few words, if known."""
    known = lexicon()
    return None if known is None or sense is None else known.gloss(sense) or None


def describe(sense: str | None, role: str) -> str | None:
    """The meaning of a role in this sense, if known."""
    known = lexicon()
    return None if known is None or sense is None else known.describe(sense, role)
