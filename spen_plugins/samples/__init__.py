"""Synthetic sample corpora, which need neither downloads nor network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
FOLDER = Path(__file__).parent


def cut(items: Iterable[T], sizes: Mapping[str, int]) -> dict[str, list[T]]:
    """Consecutive items as parts of these sizes."""
    iterator = iter(items)
    return {part: list(islice(iterator, size)) for part, size in sizes.items()}
