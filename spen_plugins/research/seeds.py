"""One experiment with several seeds: a folder of run folders, `seed-0`, `seed-1`, … beside `seeds.json`.

`seeds.json` holds the evaluated config of every requested seed, so that the folder alone tells what is left to do.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Any, TypeAlias

from rich.table import Table

from spen_plugins.console import Console
from spen_plugins.errors import ConfigError, Interrupted, RunError, SpenError
from spen_plugins.files import is_free, read_json, remove_partial, save_json
from spen_plugins.files.lock import locked
from spen_plugins.research.side_by_side import side_by_side
from spen_plugins.runs import records, runner
from spen_plugins.runs.devices import launched
from spen_plugins.runs.environment import changed_files
from spen_plugins.runs.folder import RunFolder
from spen_plugins.runs.options import DEFAULTS, RunOptions
from spen_plugins.scores.bootstrap import estimate

PLAN = "seeds.json"
Run: TypeAlias = tuple[Path, int]
"""A folder of seeds, and a seed."""


def run_seeds(
    configs: Callable[[int], Mapping[str, Any]],
    seeds: Sequence[int],
    source: str,
    out: Path | None = None,
    options: RunOptions = DEFAULTS,
) -> Path:
    """Train and evaluate a config with several seeds; finished ones are skipped, interrupted ones resumed.

    Args:
        configs: the evaluated config of a seed.
        seeds: the seeds to run; the folder may hold others.
        source: the config's file.
        out: the folder, new, empty, or one of this config; by default a dated one below `runs/`.
        options: as of `runner.run`, and the number of runs at once.

    Returns:
        The folder.

    Raises:
        ConfigError, DataError, PluginError: before anything is trained.
        RunError: a seed failed; the others were run all the same.
    """
    out = out or runner.default_folder(source)
    _plan(out)  # nothing is written to a folder of something else
    try:
        with locked(out):
            add_to_plan(out, planned(out, configs, seeds), source)
            try:
                _run(out, seeds, options)
            finally:
                if not has_begun(out):  # nothing began: a corrected config may use the folder
                    for folder in filter(is_free, out.glob("seed-*")):
                        shutil.rmtree(folder, ignore_errors=True)
                    (out / PLAN).unlink(missing_ok=True)
    finally:
        with suppress(OSError):  # it holds runs
            out.rmdir()
    return out


def planned(out: Path, configs: Callable[[int], Mapping[str, Any]], seeds: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The configs by seed of a folder's plan and of more seeds.

    Raises:
        ConfigError: those in the plan are others, or the folder holds something else.
    """
    plan = _plan(out)
    for seed, config in plan.items():
        if dict(configs(seed)) != config:
            raise ConfigError(
                f"{out} holds seeds of another config (its {PLAN} differs for seed {seed}). Take another --out"
            )
    return plan | {seed: dict(configs(seed)) for seed in seeds}


def seeds_of(out: Path) -> list[int]:
    """The seeds in a folder's plan; none of a new folder."""
    return list(_plan(out))


def add_to_plan(out: Path, plan: Mapping[int, Mapping[str, Any]], source: str) -> None:
    """Write a folder's plan.

    Raises:
        ConfigError: it can't be written.
    """
    with writable(out):
        remove_partial(out)
        save_json({"source": source, "configs": {str(seed): plan[seed] for seed in sorted(plan)}}, out / PLAN)


@contextmanager
def writable(out: Path) -> Iterator[None]:
    """A `ConfigError` in place of what is raised inside where a folder can't be written."""
    try:
        yield
    except (OSError, RunError) as error:
        raise ConfigError(f"the folder {out} can't be written: {error}") from error


def resume_seeds(out: Path, options: RunOptions = DEFAULTS) -> Path:
    """Resume all unfinished seeds of a folder; see `run_seeds`."""
    with locked(out):
        _run(out, seeds_of(out), options)
    return out


def is_parent(path: Path) -> bool:
    """True if a folder holds the runs of several seeds."""
    return (path / PLAN).exists()


def _plan(out: Path) -> dict[int, dict[str, Any]]:
    """The configs by seed in a folder; empty for a new folder."""
    if not is_parent(out):
        if not is_free(out):
            raise ConfigError(f"the folder {out} is not empty and holds no seeds; nothing was overwritten")
        return {}
    return {int(seed): config for seed, config in _read(out)["configs"].items()}


def _read(out: Path) -> dict[str, Any]:
    return records.checked(records.Plan, read_json(out / PLAN), out / PLAN)


def _run(out: Path, seeds: Sequence[int], options: RunOptions) -> None:
    for said in run_all({out: seeds}, options).values():
        raise RunError(said)


def run_all(plans: Mapping[Path, Sequence[int]], options: RunOptions) -> dict[Path, str]:
    """Run what is not done of the seeds of planned folders.

    Args:
        plans: folders, in order, and their seeds.
        options: as of `run_seeds`.

    Returns:
        What failed, by folder; the others were run all the same.

    Raises:
        ConfigError: a run couldn't start, or the data of finished ones have changed.
        Interrupted: on a signal; what was trained is saved.
    """
    if launched() > 1:
        raise ConfigError("several seeds in several processes: give one seed=… here, or --jobs without torchrun")
    console = Console(quiet=options.quiet)
    waiting: dict[Path, list[int]] = {}
    failures: dict[Path, str] = {}
    for out, seeds in plans.items():
        try:
            waiting[out] = [seed for seed in dict.fromkeys(seeds) if _metrics(_folder(out, seed)) is None]
        except RunError as error:  # a folder is damaged
            failures[out] = str(error)
            continue
        if done := [str(seed) for seed in seeds if seed not in waiting[out]]:
            console.print(f"{_label(out, plans)}done already: seed {', '.join(done)}")
    if any(waiting.values()):
        check_same_data(_folder(out, seed) for out in waiting for seed in plans[out] if seed not in waiting[out])
    failed: dict[Path, dict[int, str]] = {}
    if options.jobs > 1:
        runs = [(out, seed) for out, left in waiting.items() for seed in left]
        failed = _at_once(runs, options, console)
    for out, left in waiting.items():
        if options.jobs == 1:
            failed[out] = _in_turn(out, left, options)
        console.print(summary(out))
        if failed.get(out):
            failures[out] = _failed(failed[out], len(left))
    return failures


def check_same_data(runs: Iterable[Path]) -> None:
    """Raise a ConfigError if data files of runs have changed, so that scores of more runs would not be comparable."""
    sums: dict[str, str] = {}
    last = None
    for run in runs:
        sums |= RunFolder(run).environment().get("data_sha256", {})
        last = run
    if changed := changed_files(sums):
        raise ConfigError(
            f"{', '.join(changed)} changed since {last} was trained, and scores on other data can't be compared with "
            "its own. Take another --out"
        )


def _label(out: Path, folders: Collection[Path]) -> str:
    """What tells a folder from others in a message."""
    return f"{out.name}: " if len(folders) > 1 else ""


def _failed(failures: Mapping[int, str], runs: int) -> str:
    texts = "\n".join(f"seed {seed}: {text}" for seed, text in failures.items())
    others = "; the others went on" if runs > len(failures) else ""
    return f"{len(failures)} of {runs} runs failed{others}.\n{texts}"


def _in_turn(out: Path, seeds: Sequence[int], options: RunOptions) -> dict[int, str]:
    """Run seeds one after another in this process; returns the messages of failed ones."""
    failures = {}
    for seed in seeds:
        try:
            _run_one(out, seed, options)
        except Interrupted as error:
            raise interrupted(out) from error
        except RunError as error:
            failures[seed] = str(error)
    return failures


def _at_once(runs: Sequence[Run], options: RunOptions, console: Console) -> dict[Path, dict[int, str]]:
    """As `_in_turn`, seeds of several folders in `jobs` processes at once."""
    folders = {out for out, _ in runs}

    def say(run: Run, text: str) -> None:
        between = " " if text == "done" else ": "
        console.print(f"{_label(run[0], folders)}seed {run[1]}{between}{text}")

    last = [options.device or "", str(options.checkpoint_seconds)]
    lines = {run: [sys.executable, "-m", __name__, *map(str, run), *last] for run in runs}
    failures: dict[Path, dict[int, str]] = {}
    try:
        for (out, seed), text in side_by_side(lines, options.jobs, say, _progress).items():
            failures.setdefault(out, {})[seed] = text
    except Interrupted as error:
        raise interrupted(runs[0][0]) from error
    return failures


def _progress(run: Run) -> str:
    """The last epoch of a run that goes on in another process."""
    try:
        last = RunFolder(_folder(*run)).history()[-1]
    except (IndexError, RunError):
        return "no epoch is done yet"
    score = "" if last["score"] is None else f", score {last['score']:.4f} on validation"
    return f"stage {last['stage']}, epoch {last['epoch'] + 1}{score}"


def _run_one(out: Path, seed: int, options: RunOptions) -> None:
    folder = _folder(out, seed)
    if (folder / "config.json").exists():
        runner.resume(folder, options)
    else:
        plan = _read(out)
        runner.run(plan["configs"][str(seed)], plan["source"], folder, options)


def _metrics(folder: Path) -> dict[str, Any] | None:
    """The scores of a seed's run; None if it is not done, or not begun."""
    return RunFolder.open(folder).metrics() if (folder / "config.json").exists() else None


def summary(out: Path) -> Table:
    """Mean and standard error of every score over the finished seeds."""
    found = [_metrics(_folder(out, seed)) for seed in _plan(out)]
    metrics = [one for one in found if one is not None]
    parts = [part for part in (metrics[0] if metrics else {}) if part != "protocol"]
    count = f"{len(metrics)} seeds" if len(metrics) != 1 else "1 seed"
    table = Table(title=f"{out}: mean ± standard error over {count}", title_justify="left")
    table.add_column("score")
    for part in parts:
        table.add_column(part, justify="right")
    for name in metrics[0][parts[0]] if parts else {}:
        scores = [[one.get(part, {}).get(name) for one in metrics] for part in parts]
        if all(isinstance(value, (int, float)) for values in scores for value in values):
            table.add_row(name, *(estimate(values).text() for values in scores))
    return table


def _folder(out: Path, seed: int) -> Path:
    return out / f"seed-{seed}"


def has_begun(out: Path) -> bool:
    """True if a run in a folder of seeds, or of methods, has begun."""
    return any(out.glob("seed-*/config.json")) or any(out.glob("*/seed-*/config.json"))


def interrupted(out: Path) -> Interrupted:
    """The error of a signal: how to go on with the seeds or methods of a folder."""
    if not has_begun(out):
        return Interrupted("stopped before a run began; nothing was trained. Give the same command again")
    return Interrupted(f"stopped; what was trained is saved. Go on with: spen-run --resume {quote(str(out))}")


def _worker(out: str, seed: str, device: str, checkpoint_seconds: str) -> int:
    """Run one seed in a process of its own; returns the exit status."""
    try:
        _run_one(Path(out), int(seed), RunOptions(device or None, True, float(checkpoint_seconds)))
    except SpenError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(_worker(*sys.argv[1:]))
