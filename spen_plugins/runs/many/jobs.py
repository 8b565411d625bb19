"""The runs of planned folders, one after another or in parallel processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TypeAlias, TypeVar

from rich.table import Table

from spen_plugins.console import Console
from spen_plugins.errors import ConfigError, Interrupted, RunError, SpenError
from spen_plugins.loop.progress import LINE_SECONDS
from spen_plugins.runs.devices import count_processes
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.many.plans import (
    check_same_data,
    locate_run,
    make_interrupted,
    read_metrics,
    read_plan,
    read_seeds,
)
from spen_plugins.runs.options import RunOptions
from spen_plugins.runs.train import runner
from spen_plugins.runs.train.signals import interrupts
from spen_plugins.scores.bootstrap import estimate

POLL = 0.2
"""Seconds between two polls of the processes."""

K = TypeVar("K", bound=Hashable)


def side_by_side(
    lines: Mapping[K, Sequence[str]], jobs: int, say: Callable[[K, str], None], progress: Callable[[K], str]
) -> dict[K, str]:
    """Run command lines, `jobs` at a time, and return what failed ones wrote to stderr.

    After a signal, or a line that ends with the status of a ConfigError, no further line starts. A signal is passed on
    once: a second one would end the processes before they save.

    Args:
        lines: the command lines by the caller's key, in the order in which they start.
        jobs: number of processes.
        say: tells the user that a line is done, and once a minute its `progress`.
        progress: returns the progress of a line.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    environment["PYTHONSAFEPATH"] = "1"  # a typing.py in the working directory is not Python's
    pending, failures, refusal, is_stopping = list(lines), dict[K, str](), "", False
    processes: dict[K, tuple[subprocess.Popen[bytes], IO[bytes]]] = {}
    report_time = time.monotonic()
    with interrupts() as stop:
        while processes or pending:
            if stop.is_set() or refusal:
                pending.clear()
            while pending and len(processes) < jobs:
                key, log = pending.pop(0), tempfile.TemporaryFile()  # noqa: SIM115, closed when the process has ended
                process = subprocess.Popen(
                    lines[key], env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log
                )
                processes[key] = process, log
            for key, (process, log) in list(processes.items()):
                if process.poll() is None:
                    continue
                del processes[key]
                with process, log:
                    log.seek(0)
                    text = log.read().decode(errors="replace").strip()
                if process.returncode == ConfigError.exit_status:
                    refusal = text
                elif process.returncode == 0:
                    say(key, "done")
                else:
                    failures[key] = text or f"its process ended with status {process.returncode}"
            if time.monotonic() - report_time > LINE_SECONDS:
                report_time = time.monotonic()
                for key in processes:
                    say(key, progress(key))
            if stop.is_set() and not is_stopping:
                is_stopping = True
                for process, _ in processes.values():
                    process.terminate()
            time.sleep(POLL)
    if stop.is_set():
        raise Interrupted("stopped")
    if refusal:
        raise ConfigError(refusal)
    return failures


Run: TypeAlias = tuple[Path, int]
"""A folder of seeds, and a seed."""


def run_all(out: Path, plans: Mapping[Path, Sequence[int]], options: RunOptions) -> dict[Path, str]:
    """Run the unfinished seeds of planned folders; returns the messages of failed ones by folder."""
    if count_processes() > 1:
        raise ConfigError("found several seeds under torchrun; give one seed=…, or use --jobs without torchrun")
    console, options = Console(quiet=options.quiet), replace(options, printed_texts=set())
    pending, failures = _find_pending(plans, console)
    failures_by_seed: dict[Path, dict[int, str]] = {}
    try:
        if options.jobs > 1:
            failures_by_seed = _run_at_once(
                [(folder, seed) for folder, seeds in pending.items() for seed in seeds], options, console
            )
        for folder, seeds in pending.items():
            if options.jobs == 1:
                failures_by_seed[folder] = _run_in_turn(folder, seeds, options)
            console.print(summarise(folder))
            if failures_by_seed.get(folder):
                failures[folder] = _describe_failures(failures_by_seed[folder], len(seeds))
    except Interrupted as error:
        raise make_interrupted(out) from error
    return failures


def _find_pending(
    plans: Mapping[Path, Sequence[int]], console: Console
) -> tuple[dict[Path, list[int]], dict[Path, str]]:
    """The unfinished seeds of each folder, and the messages of damaged folders."""
    pending: dict[Path, list[int]] = {}
    failures: dict[Path, str] = {}
    for folder, seeds in plans.items():
        try:
            pending[folder] = [seed for seed in dict.fromkeys(seeds) if read_metrics(folder, seed) is None]
        except RunError as error:
            failures[folder] = str(error)
            continue
        if finished_seeds := [str(seed) for seed in seeds if seed not in pending[folder]]:
            console.print(f"{_make_prefix(folder, plans)}already done: seed {', '.join(finished_seeds)}")
    if any(pending.values()):
        check_same_data(
            locate_run(folder, seed) for folder in pending for seed in plans[folder] if seed not in pending[folder]
        )
    return pending, failures


def _make_prefix(folder: Path, folders: Collection[Path]) -> str:
    """A prefix that names a folder in messages, if there are several."""
    return f"{folder.name}: " if len(folders) > 1 else ""


def _describe_failures(failures: Mapping[int, str], runs: int) -> str:
    texts = "\n".join(f"seed {seed}: {text}" for seed, text in failures.items())
    note = "; the others continued" if runs > len(failures) else ""
    return f"{len(failures)} of {runs} runs failed{note}.\n{texts}"


def _run_in_turn(folder: Path, seeds: Sequence[int], options: RunOptions) -> dict[int, str]:
    """Run seeds one after another in this process; returns the messages of failed seeds."""
    failures = {}
    for seed in seeds:
        try:
            _run_one(folder, seed, options)
        except Interrupted:
            raise
        except RunError as error:
            failures[seed] = str(error)
    return failures


def _run_at_once(runs: Sequence[Run], options: RunOptions, console: Console) -> dict[Path, dict[int, str]]:
    """Run seeds of several folders in parallel processes; returns the messages of failed seeds by folder."""
    folders = {folder for folder, _ in runs}

    def say(run: Run, text: str) -> None:
        separator = " " if text == "done" else ": "
        console.print(f"{_make_prefix(run[0], folders)}seed {run[1]}{separator}{text}")

    settings = [options.device or "", str(options.checkpoint_seconds)]
    lines = {run: [sys.executable, "-m", __name__, *map(str, run), *settings] for run in runs}
    failures: dict[Path, dict[int, str]] = {}
    for (folder, seed), text in side_by_side(lines, options.jobs, say, _describe_progress).items():
        failures.setdefault(folder, {})[seed] = text
    return failures


def _describe_progress(run: Run) -> str:
    """The last epoch of a run in another process, as text."""
    try:
        last = RunFolder(locate_run(*run)).history()[-1]
    except (IndexError, RunError):
        return "no epoch is finished yet"
    score = "" if last["score"] is None else f", score {last['score']:.4f} on validation"
    return f"stage {last['stage']}, epoch {last['epoch'] + 1}{score}"


def _run_one(out: Path, seed: int, options: RunOptions) -> None:
    folder = locate_run(out, seed)
    if (folder / "config.json").exists():
        runner.resume(folder, options)
    else:
        plan = read_plan(out)
        runner.run(plan["configs"][str(seed)], plan["source"], folder, options)


def summarise(out: Path) -> Table:
    """Mean and standard error of every score over the finished seeds."""
    metrics = [scores for seed in read_seeds(out) if (scores := read_metrics(out, seed)) is not None]
    parts = [part for part in (metrics[0] if metrics else {}) if part != "protocol"]
    count = f"{len(metrics)} seeds" if len(metrics) != 1 else "1 seed"
    table = Table(title=f"{out}: mean ± standard error over {count}", title_justify="left")
    table.add_column("score")
    for part in parts:
        table.add_column(part, justify="right")
    for name in metrics[0][parts[0]] if parts else {}:
        scores = [[run_scores.get(part, {}).get(name) for run_scores in metrics] for part in parts]
        if all(isinstance(value, (int, float)) for values in scores for value in values):
            table.add_row(name, *(estimate(values).text() for values in scores))
    return table


def _run_worker(out: str, seed: str, device: str, checkpoint_seconds: str) -> int:
    """Run one seed in its own process; returns the exit status."""
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    try:
        _run_one(Path(out), int(seed), RunOptions(device or None, True, float(checkpoint_seconds)))
    except SpenError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


def _stop_with_parent() -> None:
    """Stop this process, like Ctrl-C, when the pipe from its parent closes because the parent was killed."""
    os.read(0, 1)  # sys.stdin would hold a lock when the interpreter ends
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(_run_worker(*sys.argv[1:]))
