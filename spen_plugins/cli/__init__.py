"""The command lines: `spen-run` trains and evaluates, `spen` does the rest.

Modules here import nothing heavy at the top, so that help is fast.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Mapping

MMAP_THRESHOLD = 8 * 2**20
"""Bytes. A threshold of 1 MiB leaves even fewer holes, but nets with large tensors then train 1.3 times longer."""

_TRIM, _MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's malloc.h


def return_large_blocks(environment: Mapping[str, str] = os.environ) -> bool:
    """Make glibc return large blocks to the system as soon as they are freed; returns true if it worked.

    By default glibc keeps blocks of up to 32 MiB for reuse. Batches of sentences differ in size, so they leave holes
    that nothing fits: resident memory grew to 1.7 times the memory in use (tools/bench/bench_memory.py).

    Args:
        environment: if it sets `MALLOC_…` or `GLIBC_TUNABLES`, the user's choice is kept.
    """
    is_set = any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in environment)
    if is_set or platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(_MMAP, MMAP_THRESHOLD) and mallopt(_TRIM, 2 * MMAP_THRESHOLD))


# Spinning threads make a busy machine many times slower. OpenMP reads this setting when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
return_large_blocks()
