"""Resident memory of a training process beside what is in use, with the allocator as we set it and as it comes.

    python -m tools.bench.bench_memory roles data=ewt --minutes 60     # two runs side by side; a line for each fifth
    python -m tools.bench.bench_memory roles data=ewt --speed  # processor time an update, both in turns in one run

In use is what is resident without the free blocks that the C library keeps. Linux with glibc only.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, NoReturn

import psutil
import torch  # before the first measure: it takes most of the memory of a process that just started
from torch.optim.optimizer import register_optimizer_step_post_hook

from spen_plugins.cli import MMAP_THRESHOLD
from spen_plugins.cli.run import app

LIBC: Any = ctypes.CDLL(None)
UPDATES = 20
GLIBC = 32 * 2**20
"""Where glibc's own threshold ends, once such blocks have been freed."""


class Mallinfo(ctypes.Structure):
    """glibc's `struct mallinfo2`."""

    _fields_ = (
        *((f"_{number}", ctypes.c_size_t) for number in range(8)),
        ("fordblks", ctypes.c_size_t),
        ("_", ctypes.c_size_t),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--speed", action="store_true", help="processor time an update instead of memory")
    parser.add_argument("--child", choices=("ours", "glibc"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.speed or given.child:
        folder = tempfile.mkdtemp()
        if given.speed:
            take_turns(given.minutes, folder)
        else:
            watch(given.child, given.minutes, folder)
        app([given.config, *given.arguments, "trainer.epochs=100000", "--quiet", "--out", f"{folder}/run"])
    words = [
        sys.executable,
        "-m",
        "tools.bench.bench_memory",
        given.config,
        *given.arguments,
        "--minutes",
        str(given.minutes),
        "--child",
    ]
    # Any MALLOC_… keeps ours off; this one has glibc's own value.
    apart = {"ours": {}, "glibc": {"MALLOC_ARENA_TEST": "8"}}
    print("| allocator | minutes | updates | MiB resident | in use | ratio | most resident |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    children = [subprocess.Popen([*words, name], env={**os.environ, **more}) for name, more in apart.items()]
    raise SystemExit(max(child.wait() for child in children))


def watch(name: str, minutes: float, folder: str) -> None:
    """Print a line each fifth of the time, then remove the folder and end the process."""
    LIBC.mallinfo2.restype = Mallinfo
    updates = 0

    def count(*_: Any) -> None:
        nonlocal updates
        updates += 1

    def lines() -> None:
        process, most = psutil.Process(), 0
        for second in range(1, round(60 * minutes) + 1):
            time.sleep(1)
            resident = process.memory_info().rss
            most = max(most, resident)
            if second % max(1, round(12 * minutes)) == 0:
                used = resident - LIBC.mallinfo2().fordblks
                sizes = f"{resident / 2**20:.0f} | {used / 2**20:.0f} | {resident / used:.2f} | {most / 2**20:.0f}"
                print(f"| {name} | {second / 60:.0f} | {updates} | {sizes} |", flush=True)
        leave(folder)

    register_optimizer_step_post_hook(count)
    threading.Thread(target=lines, daemon=True).start()


def take_turns(minutes: float, folder: str) -> None:
    """Updates with one threshold and the other by turns; print the ratio of their times, and end as `watch` does."""
    times: dict[int, list[float]] = {GLIBC: [], MMAP_THRESHOLD: []}
    end, updates, began = time.monotonic() + 60 * minutes, 0, time.process_time()

    def count(*_: Any) -> None:
        nonlocal updates, began
        updates += 1
        if updates % UPDATES:
            return
        done, then = (GLIBC, MMAP_THRESHOLD) if updates // UPDATES % 2 else (MMAP_THRESHOLD, GLIBC)
        times[done].append(time.process_time() - began)
        ratios = [ours / theirs for theirs, ours in zip(*times.values(), strict=False)][2:]
        if time.monotonic() > end and len(ratios) > 2:
            quarters = statistics.quantiles(ratios, n=4)
            print(f"ours, to glibc: {quarters[1]:.2f} [{quarters[0]:.2f}, {quarters[2]:.2f}], {len(ratios)} pairs")
            leave(folder)
        LIBC.mallopt(-3, then)
        LIBC.mallopt(-1, 2 * then)
        began = time.process_time()

    LIBC.mallopt(-3, GLIBC)
    LIBC.mallopt(-1, 2 * GLIBC)
    register_optimizer_step_post_hook(count)


def leave(folder: str) -> NoReturn:
    """End the process in the middle of its training."""
    sys.stdout.flush()
    shutil.rmtree(folder)
    os._exit(0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
