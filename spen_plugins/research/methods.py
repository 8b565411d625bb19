"""One experiment by several methods: a folder of seeds for each, beside `methods.json`; the validation part chooses.

`methods.json` holds the methods in their order and, once all have run, the one that was chosen.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from spen_plugins.config.experiment import check
from spen_plugins.console import Console
from spen_plugins.errors import ConfigError, Interrupted, RunError
from spen_plugins.files import is_free, make_folder, remove_partial, save_json
from spen_plugins.files.lock import locked
from spen_plugins.registry import Registry
from spen_plugins.research.bootstrap import estimate
from spen_plugins.research.compare import compare
from spen_plugins.research.groups import read_group
from spen_plugins.research.seeds import add_to_plan, has_begun, interrupted, planned, run_all, seeds_of, writable
from spen_plugins.research.tables import terminal
from spen_plugins.runs import runner
from spen_plugins.runs.folder import METHODS, methods_of


def run_methods(
    configs: Callable[[str, int], Mapping[str, Any]],
    methods: Sequence[str],
    seeds: Sequence[int],
    source: str,
    out: Path | None = None,
    device: str | None = None,
    quiet: bool = False,
    checkpoint_seconds: float = 60.0,
    jobs: int = 1,
) -> Path:
    """Train and evaluate a config by several methods with the same seeds, and choose one by the validation part.

    That of the highest validation score, a mean over seeds, is chosen; among equals the first. Finished runs are
    skipped, interrupted ones resumed.

    Args:
        configs: the evaluated config of a method and a seed.
        methods: the methods, each also the name of its folder.
        seeds: the seeds; all methods have these and those that the folder holds.
        out: the folder, new, empty, or one of these methods or some of them; by default a dated one below `runs/`.
        source, device, quiet, checkpoint_seconds, jobs: as in `run_seeds`.

    Returns:
        The folder. Its `methods.json` names the method that was chosen, and its run with the best validation score.

    Raises:
        ConfigError, DataError, PluginError: before anything is trained.
        RunError: runs failed; the others were run all the same, and one of the methods that are done was chosen.
    """
    out = out or runner.default_folder(source)
    if not methods_of(out) and not is_free(out):
        raise ConfigError(f"the folder {out} is not empty and holds no methods; nothing was overwritten")
    registry = Registry()
    for method in methods:
        check(configs(method, seeds[0]), f"{source}, method={method}", registry)
    try:
        with locked(out):
            try:
                _plan(out, configs, methods, seeds, source)
                _run_all(out, device, quiet, checkpoint_seconds, jobs)
            finally:
                if not has_begun(out):  # nothing began: a corrected config may use the folder
                    for method in methods:
                        shutil.rmtree(out / method, ignore_errors=True)
                    (out / METHODS).unlink(missing_ok=True)
    finally:
        with suppress(OSError):  # it holds runs
            out.rmdir()
    return out


def _plan(
    out: Path,
    configs: Callable[[str, int], Mapping[str, Any]],
    methods: Sequence[str],
    seeds: Sequence[int],
    source: str,
) -> None:
    """Write what is to be run, so that the folder alone tells what is left to do; nothing if it holds other runs."""
    before = methods_of(out).get("methods", [])
    if missing := [method for method in before if method not in methods]:
        raise ConfigError(
            f"{out} also holds runs of {', '.join(missing)}; name all of its methods, or take another --out"
        )
    every = sorted({*seeds, *(seed for method in before for seed in seeds_of(out / method))})
    plans = {method: planned(out / method, partial(configs, method), every) for method in methods}
    with writable(out):
        remove_partial(out)
        for method, plan in plans.items():
            make_folder(out / method)
            add_to_plan(out / method, plan, source)
        save_json({"methods": list(methods)}, out / METHODS)


def resume_methods(
    out: Path, device: str | None = None, quiet: bool = False, checkpoint_seconds: float = 60.0, jobs: int = 1
) -> Path:
    """Resume all unfinished runs of a folder; see `run_methods`."""
    with locked(out):
        _run_all(out, device, quiet, checkpoint_seconds, jobs)
    return out


def _run_all(out: Path, device: str | None, quiet: bool, checkpoint_seconds: float, jobs: int) -> None:
    methods, plans, failures = methods_of(out)["methods"], {}, {}
    try:
        with ExitStack() as locks:
            for folder in (out / method for method in methods):
                locks.enter_context(locked(folder))
                try:
                    plans[folder] = seeds_of(folder)
                except RunError as error:  # its plan is damaged
                    failures[folder] = str(error)
            failures |= run_all(plans, device, quiet, checkpoint_seconds, jobs)
    except Interrupted as error:
        raise interrupted(out) from error
    done = [method for method in methods if out / method not in failures]
    if done:
        _choose(out, done, Console(quiet=quiet))
    if failures:
        others = ", ".join(folder.name for folder in failures)
        said = f"chosen among {', '.join(done)}, without {others}." if done else "no method was chosen."
        raise RunError("\n".join([said, *(f"{folder.name}: {error}" for folder, error in failures.items())]))


def _choose(out: Path, done: Sequence[str], console: Console) -> None:
    """Choose one of a folder's methods by the validation part: print the scores, and write the choice.

    Raises:
        RunError: a run has no validation score.
    """
    groups = [read_group(method, out / method) for method in done]
    found = compare(groups, "validation")
    score = found.selection
    scores = {group.label: [run.metrics()["validation"].get(score) for run in group.runs] for group in groups}
    if lacking := [method for method, values in scores.items() if None in values]:
        raise RunError(f"a run of {', '.join(lacking)} has no {score} on the validation part; nothing is chosen")
    means = {method: estimate(values) for method, values in scores.items()}
    chosen = max(groups, key=lambda group: means[group.label].mean)  # the first of equals
    best = chosen.runs[scores[chosen.label].index(max(scores[chosen.label]))].path
    tested = all("test" in run.metrics() for group in groups for run in group.runs)
    table = compare(groups, "test" if tested else "validation", [score])
    console.print(terminal(table, console.width))
    for note in table.notes:
        console.print(f"note: {note}", soft_wrap=True)
    said = ", ".join(f"{method} {mean.shown(found.unit)}" for method, mean in means.items())
    console.print(f"{score} on the validation part: {said}", soft_wrap=True)
    console.print(f"chosen: {chosen.label}; its best run is {best}", soft_wrap=True)
    record = {
        "methods": methods_of(out)["methods"],
        "chosen": chosen.label,
        "run": str(best.relative_to(out)),
        "score": score,
        "validation": {method: mean.mean for method, mean in means.items()},
    }
    with writable(out):
        save_json(record, out / METHODS)
