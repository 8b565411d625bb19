"""Folders of several runs: `seed-0`, `seed-1`, … next to `seeds.json`; or such a folder for each method, next to
`methods.json`.

`seeds.json` holds the evaluated config of every requested seed, and `methods.json` the methods in their order, so the
folder alone tells which runs are left to do.
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
from spen_plugins.settings.fields import shorten_value

PLAN = "seeds.json"
Configs = Callable[[str, int], Mapping[str, Any]]
"""The evaluated config of a method and a seed."""


def locate_run(out: Path, seed: int) -> Path:
    """The run folder of a seed."""
    return out / f"seed-{seed}"


def read_metrics(out: Path, seed: int) -> dict[str, Any] | None:
    """The scores of a seed's run; None if the run is not finished, or has not begun."""
    folder = locate_run(out, seed)
    return RunFolder.open(folder).metrics() if (folder / "config.json").exists() else None


def has_seeds(path: Path) -> bool:
    """True if a folder holds the runs of several seeds."""
    return (path / PLAN).exists()


def read_plan(out: Path) -> dict[str, Any]:
    """The table in a folder's `seeds.json`: the config's file, and the evaluated config of each seed."""
    return check_kinds(read_json(out / PLAN), out / PLAN)


def read_seeds(out: Path) -> list[int]:
    """The seeds in a folder's plan; empty for a new folder."""
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
    """Write the plan of each method, which extends the folder's plans; raises a ConfigError if it holds other runs."""
    old_methods = read_methods(out).get("methods", [])
    if missing := [method for method in old_methods if method not in methods]:
        raise ConfigError(
            f"{out} also holds runs of {', '.join(missing)}; name all of its methods, or use another --out"
        )
    all_seeds = sorted({*seeds, *(seed for method in old_methods for seed in read_seeds(out / method))})
    plans = {out / method: _extend_plan(out / method, partial(configs, method), all_seeds) for method in methods}
    with explain_unwritable(out):
        remove_partial(out)
        if any(methods):  # write this file first: a folder with plans but without it is rejected as another folder
            save_json({"methods": list(methods)}, out / METHODS)
        for folder, table in plans.items():
            make_folder(folder)
            save_json({"source": source, "configs": {str(seed): table[seed] for seed in sorted(table)}}, folder / PLAN)


def _extend_plan(
    out: Path, configs: Callable[[int], Mapping[str, Any]], seeds: Sequence[int]
) -> dict[int, dict[str, Any]]:
    """The configs by seed of a folder's plan, and of further seeds."""
    stored_configs = _read_configs(out)
    for seed, config in stored_configs.items():
        if (new_config := dict(configs(seed))) != config:
            difference = describe_difference(config, new_config)
            raise ConfigError(
                f"{out} holds seeds of another config (its {PLAN} differs for seed {seed}: {difference}). Use another "
                "--out"
            )
    return stored_configs | {seed: dict(configs(seed)) for seed in seeds}


def describe_difference(old: Any, new: Any, key: str = "") -> str:
    """The first dotted key in which two unequal configs differ, with both values: `trainer.epochs: 1, now 2`."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        first = next(name for name in [*old, *new] if old.get(name, ...) != new.get(name, ...))
        return describe_difference(old.get(first, ...), new.get(first, ...), f"{key}.{first}".removeprefix("."))
    old_text, new_text = ("none" if value is ... else shorten_value(value) for value in (old, new))
    return f"{key}: {old_text}, now {new_text}"


@contextmanager
def explain_unwritable(out: Path) -> Iterator[None]:
    """Raises a `ConfigError` in place of errors inside the context if a folder can't be written."""
    try:
        yield
    except (OSError, RunError) as error:
        raise ConfigError(f"the folder {out} can't be written: {error}") from error


@contextmanager
def begin(out: Path) -> Iterator[None]:
    """Locks a folder for new runs. If no run begins, the folder is removed, so that a corrected config may use it."""
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
    """Remove plans, and folders of runs that have not begun."""
    for folder in filter(is_free, [*out.glob("seed-*"), *out.glob("*/seed-*")]):
        shutil.rmtree(folder, ignore_errors=True)
    for file in (*out.glob(PLAN), *out.glob(f"*/{PLAN}"), *out.glob(METHODS)):
        file.unlink()
    for folder in out.iterdir():
        with suppress(OSError):
            folder.rmdir()


def make_interrupted(out: Path) -> Interrupted:
    """The error for a signal, which says how to resume the seeds or methods of a folder."""
    if not has_begun(out):
        return Interrupted("stopped before a run began; nothing was trained. Run the same command again")
    return Interrupted(f"stopped; all training so far is saved. Resume with: spen-run --resume {quote(str(out))}")


def check_same_data(runs: Iterable[Path]) -> None:
    """Raise a ConfigError if data files of runs have changed, because scores of new runs would not be comparable."""
    checksums: dict[str, str] = {}
    last_run = None
    for run in runs:
        checksums |= RunFolder(run).environment().get("data_sha256", {})
        last_run = run
    if files := changed_files(checksums):
        raise ConfigError(
            f"{', '.join(files)} changed since {last_run} was trained, so new scores can't be compared with its own. "
            "Use another --out"
        )
