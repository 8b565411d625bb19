"""Folders of several runs: `seed-0`, `seed-1`, … beside `seeds.json`; or a folder of these for each method beside
`methods.json`.

`seeds.json` holds the evaluated config of every requested seed, and `methods.json` the methods in their order, so that
the folder alone tells what is left to do.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from spen_plugins.errors import ConfigError, Interrupted, RunError
from spen_plugins.files import is_free, make_folder, read_json, remove_partial, save_json
from spen_plugins.files.lock import locked
from spen_plugins.runs.folder.environment import changed_files
from spen_plugins.runs.folder.folder import METHODS, RunFolder, read_methods
from spen_plugins.runs.folder.kinds import check_kinds

PLAN = "seeds.json"
Configs = Callable[[str, int], Mapping[str, Any]]
"""The evaluated config of a method and a seed."""


def locate_run(out: Path, seed: int) -> Path:
    """The run folder of a seed."""
    return out / f"seed-{seed}"


def read_metrics(out: Path, seed: int) -> dict[str, Any] | None:
    """The scores of a seed's run; None if it is not done, or not begun."""
    folder = locate_run(out, seed)
    return RunFolder.open(folder).metrics() if (folder / "config.json").exists() else None


def has_seeds(path: Path) -> bool:
    """True if a folder holds the runs of several seeds."""
    return (path / PLAN).exists()


def read_plan(out: Path) -> dict[str, Any]:
    """The table in a folder's `seeds.json`: the config's file, and the evaluated config of each seed."""
    return check_kinds(read_json(out / PLAN), out / PLAN)


def read_seeds(out: Path) -> list[int]:
    """The seeds in a folder's plan; none of a new folder."""
    return list(_read_configs(out))


def _read_configs(out: Path) -> dict[int, dict[str, Any]]:
    """The configs by seed in a folder; empty for a new folder."""
    if not has_seeds(out):
        if not is_free(out):
            raise ConfigError(
                f"the folder {out} is not empty and has no seeds; nothing was overwritten. Use another --out"
            )
        return {}
    return {int(seed): config for seed, config in read_plan(out)["configs"].items()}


def plan(out: Path, configs: Configs, methods: Sequence[str], seeds: Sequence[int], source: str) -> None:
    """Write what is to be run by each method, beside what the folder holds already; nothing if it holds other runs."""
    before = read_methods(out).get("methods", [])
    if missing := [method for method in before if method not in methods]:
        raise ConfigError(
            f"{out} also holds runs of {', '.join(missing)}; name all of its methods, or use another --out"
        )
    every = sorted({*seeds, *(seed for method in before for seed in read_seeds(out / method))})
    plans = {out / method: _extend_plan(out / method, partial(configs, method), every) for method in methods}
    with explain_unwritable(out):
        remove_partial(out)
        if any(methods):  # first: plans without it are taken for a folder of something else
            save_json({"methods": list(methods)}, out / METHODS)
        for folder, table in plans.items():
            make_folder(folder)
            save_json({"source": source, "configs": {str(seed): table[seed] for seed in sorted(table)}}, folder / PLAN)


def _extend_plan(
    out: Path, configs: Callable[[int], Mapping[str, Any]], seeds: Sequence[int]
) -> dict[int, dict[str, Any]]:
    """The configs by seed of a folder's plan and of more seeds."""
    plan = _read_configs(out)
    for seed, config in plan.items():
        if dict(configs(seed)) != config:
            raise ConfigError(
                f"{out} holds seeds of another config (its {PLAN} differs for seed {seed}). Use another --out"
            )
    return plan | {seed: dict(configs(seed)) for seed in seeds}


@contextmanager
def explain_unwritable(out: Path) -> Iterator[None]:
    """A `ConfigError` in place of what is raised inside where a folder can't be written."""
    try:
        yield
    except (OSError, RunError) as error:
        raise ConfigError(f"the folder {out} can't be written: {error}") from error


@contextmanager
def begin(out: Path) -> Iterator[None]:
    """Lock a folder for new runs. If none begins, nothing is left of it: a corrected config may use it."""
    try:
        with locked(out):
            try:
                yield
            finally:
                if not has_begun(out):
                    _clear(out)
    finally:
        with suppress(OSError):  # it holds runs
            out.rmdir()


def has_begun(out: Path) -> bool:
    """True if a run in a folder of seeds, or of methods, has begun."""
    return any(out.glob("seed-*/config.json")) or any(out.glob("*/seed-*/config.json"))


def _clear(out: Path) -> None:
    """Remove the plans, and the folders of runs that have not begun."""
    for folder in filter(is_free, [*out.glob("seed-*"), *out.glob("*/seed-*")]):
        shutil.rmtree(folder, ignore_errors=True)
    for file in (*out.glob(PLAN), *out.glob(f"*/{PLAN}"), *out.glob(METHODS)):
        file.unlink()
    for folder in out.iterdir():
        with suppress(OSError):
            folder.rmdir()


def make_interrupted(out: Path) -> Interrupted:
    """The error of a signal: how to go on with the seeds or methods of a folder."""
    if not has_begun(out):
        return Interrupted("stopped before a run began; nothing was trained. Run the same command again")
    return Interrupted(f"stopped; all training so far is saved. Resume with: spen-run --resume {quote(str(out))}")


def check_same_data(runs: Iterable[Path]) -> None:
    """Raise a ConfigError if data files of runs have changed, so that scores of more runs would not be comparable."""
    sums: dict[str, str] = {}
    last = None
    for run in runs:
        sums |= RunFolder(run).environment().get("data_sha256", {})
        last = run
    if changed := changed_files(sums):
        raise ConfigError(
            f"{', '.join(changed)} changed since {last} was trained, so new scores can't be compared with its own. "
            "Use another --out"
        )
