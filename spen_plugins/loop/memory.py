"""Errors of Python's and torch's allocators as one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from spen_plugins.errors import RunError

SMALLER = "take a smaller trainer.batch_size, or more trainer.accumulate, or fewer samples"
_MESSAGES = ("can't allocate memory", "Storage size calculation overflowed")


def is_out_of_memory(error: BaseException) -> bool:
    """True of an error of Python's or torch's allocator."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(text in str(error) for text in _MESSAGES)


@contextmanager
def translate_memory_errors(doing: str, smaller: str = SMALLER) -> Iterator[None]:
    """Raises a `RunError` in place of an allocator's error inside."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise RunError(f"memory ran out in {doing} ({reason}); {smaller}") from error
