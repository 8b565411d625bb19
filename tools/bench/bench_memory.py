"""Resident memory and memory in use of a training process, with our setting of the allocator and with glibc's own.

    python -m tools.bench.bench_memory roles data=ewt --minutes 60     # two runs side by side; a line for each fifth
    python -m tools.bench.bench_memory roles data=ewt --speed  # processor time an update, both in turns in one run

Memory in use is resident memory without the free blocks that the C library keeps. Linux with glibc only.
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
"""The threshold that glibc itself reaches, once such blocks have been freed."""


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
    options = parser.parse_args()
    if options.speed or options.child:
        folder = tempfile.mkdtemp()
        if options.speed:
            take_turns(options.minutes, folder)
        else:
            watch(options.child, options.minutes, folder)
        app([options.config, *options.arguments, "trainer.epochs=100000", "--quiet", "--out", f"{folder}/run"])
    command = [
        sys.executable,
        "-m",
        "tools.bench.bench_memory",
        options.config,
        *options.arguments,
        "--minutes",
        str(options.minutes),
        "--child",
    ]
    # Any MALLOC_… variable turns our setting off; this one has glibc's own value.
    environments = {"ours": {}, "glibc": {"MALLOC_ARENA_TEST": "8"}}
    print("| allocator | minutes | updates | MiB resident | in use | ratio | most resident |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    children = [
        subprocess.Popen([*command, name], env={**os.environ, **environment})
        for name, environment in environments.items()
    ]
    raise SystemExit(max(child.wait() for child in children))


def watch(name: str, minutes: float, folder: str) -> None:
    """Print a line each fifth of the time, then remove the folder and end the process."""
    LIBC.mallinfo2.restype = Mallinfo
    updates = 0

    def count(*_: Any) -> None:
        nonlocal updates
        updates += 1

    def print_lines() -> None:
        process, peak = psutil.Process(), 0
        for second in range(1, round(60 * minutes) + 1):
            time.sleep(1)
            resident = process.memory_info().rss
            peak = max(peak, resident)
            if second % max(1, round(12 * minutes)) == 0:
                in_use = resident - LIBC.mallinfo2().fordblks
                sizes = f"{resident / 2**20:.0f} | {in_use / 2**20:.0f} | {resident / in_use:.2f} | {peak / 2**20:.0f}"
                print(f"| {name} | {second / 60:.0f} | {updates} | {sizes} |", flush=True)
        leave(folder)

    register_optimizer_step_post_hook(count)
    threading.Thread(target=print_lines, daemon=True).start()


def take_turns(minutes: float, folder: str) -> None:
    """Alternate the thresholds between updates, print the ratio of their times, and end as `watch` does."""
    times: dict[int, list[float]] = {GLIBC: [], MMAP_THRESHOLD: []}
    end, updates, start = time.monotonic() + 60 * minutes, 0, time.process_time()

    def count(*_: Any) -> None:
        nonlocal updates, start
        updates += 1
        if updates % UPDATES:
            return
        threshold, next_threshold = (GLIBC, MMAP_THRESHOLD) if updates // UPDATES % 2 else (MMAP_THRESHOLD, GLIBC)
        times[threshold].append(time.process_time() - start)
        ratios = [our_time / glibc_time for glibc_time, our_time in zip(*times.values(), strict=False)][2:]
        if time.monotonic() > end and len(ratios) > 2:
            quarters = statistics.quantiles(ratios, n=4)
            print(f"ours, to glibc: {quarters[1]:.2f} [{quarters[0]:.2f}, {quarters[2]:.2f}], {len(ratios)} pairs")
            leave(folder)
        LIBC.mallopt(-3, next_threshold)
        LIBC.mallopt(-1, 2 * next_threshold)
        start = time.process_time()

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
