"""One experiment by several methods: a folder of seeds for each, beside `methods.json`; the validation part chooses.

`methods.json` holds the methods in their order and, once all have run, the one that was chosen. The choice follows the
one-standard-error rule (Breiman, Friedman, Olshen and Stone 1984, section 3.4.3; scikit-learn's example "Balance model
complexity and cross-validated score"), with training time in place of a tree's size.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from spen_plugins.config.experiment import check
from spen_plugins.console import Console
from spen_plugins.errors import ConfigError, Interrupted, RunError
from spen_plugins.files import is_free, make_folder, remove_partial, save_json
from spen_plugins.files.lock import locked
from spen_plugins.registry import Registry
from spen_plugins.research.compare import compare
from spen_plugins.research.seeds import add_to_plan, has_begun, interrupted, planned, run_all, seeds_of, writable
from spen_plugins.research.tables import terminal
from spen_plugins.runs import runner
from spen_plugins.runs.folder import METHODS, RunFolder, methods_of
from spen_plugins.runs.groups import read_group
from spen_plugins.runs.options import DEFAULTS, RunOptions
from spen_plugins.scores.bootstrap import estimate, resampled_scores, scale

CHEAPER = 2 / 3
"""The largest share of another method's training time that makes a method cheaper. The margin is for noise in times."""


def run_methods(
    configs: Callable[[str, int], Mapping[str, Any]],
    methods: Sequence[str],
    seeds: Sequence[int],
    source: str,
    out: Path | None = None,
    options: RunOptions = DEFAULTS,
) -> Path:
    """Train and evaluate a config by several methods with the same seeds, and choose one by the validation part.

    The choice is that of `choose`, by the mean validation scores over seeds. Finished runs are skipped, interrupted
    ones resumed.

    Args:
        configs: the evaluated config of a method and a seed.
        methods: the methods, each also the name of its folder.
        seeds: the seeds; all methods have these and those that the folder holds.
        out: the folder, new, empty, or one of these methods or some of them; by default a dated one below `runs/`.
        source, options: as of `run_seeds`.

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
                _run_all(out, options)
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


def resume_methods(out: Path, options: RunOptions = DEFAULTS) -> Path:
    """Resume all unfinished runs of a folder; see `run_methods`."""
    with locked(out):
        _run_all(out, options)
    return out


def _run_all(out: Path, options: RunOptions) -> None:
    methods, plans, failures = methods_of(out)["methods"], {}, {}
    try:
        with ExitStack() as locks:
            for folder in (out / method for method in methods):
                locks.enter_context(locked(folder))
                try:
                    plans[folder] = seeds_of(folder)
                except RunError as error:  # its plan is damaged
                    failures[folder] = str(error)
            failures |= run_all(plans, options)
    except Interrupted as error:
        raise interrupted(out) from error
    done = [method for method in methods if out / method not in failures]
    if done:
        _choose(out, done, Console(quiet=options.quiet))
    if failures:
        others = ", ".join(folder.name for folder in failures)
        said = f"chosen among {', '.join(done)}, without {others}." if done else "no method was chosen."
        raise RunError("\n".join([said, *(f"{folder.name}: {error}" for folder, error in failures.items())]))


def best_of(methods: Iterable[str], scores: Mapping[str, float], seconds: Mapping[str, float]) -> str:
    """The method that scores best; among equal scores, the one with less training time."""
    return max(methods, key=lambda method: (scores[method], -seconds[method]))


def choose(scores: Mapping[str, float], error: float, seconds: Mapping[str, float]) -> str:
    """The method to take: one within a standard error of the best, if it is cheaper.

    Of the methods within the standard error, the choice moves from the best to the best-scoring one that is cheaper by
    `CHEAPER`, and on from there, until none is. So scores decide between methods of about equal cost.

    Args:
        scores: by method, on the validation part.
        error: the standard error of the best score; 0 if unknown.
        seconds: training time by method; 0 if unknown, which is never cheaper.
    """
    chosen = best_of(scores, scores, seconds)
    near = [method for method in scores if scores[method] >= scores[chosen] - error]
    while cheaper := [method for method in near if 0 < seconds[method] <= CHEAPER * seconds[chosen]]:
        chosen = best_of(cheaper, scores, seconds)
    return chosen


def _error(runs: Sequence[RunFolder], scores: Sequence[float]) -> float | None:
    """Standard error of a method's mean score: over seeds, or with one over validation examples if it kept them."""
    ratios = runs[0].ratios("validation", beside=True) if len(runs) == 1 else None
    if ratios is None:
        return estimate(scores).error
    drawn = resampled_scores(*(ratios[name].numpy()[None] for name in ("numerator", "denominator")))
    return float(drawn.std(ddof=1))


def _reason(
    best: str, chosen: str, scores: Mapping[str, float], error: float | None, seconds: Mapping[str, float], factor: int
) -> str:
    """The chosen method and why, in a sentence; scores times `factor`."""
    winner, first = (f"{method} ({factor * scores[method]:.2f})" for method in (chosen, best))
    if error is None:
        unknown = "its standard error is unknown, as no scores of validation examples are kept; seeds=0..2 gives it"
        return f"{winner}, which scores best; {unknown}"
    within = f"within one standard error ({factor * error:.2f})"
    if chosen == best:
        return f"{winner}, which scores best; none {within} is cheaper"
    faster = f"{seconds[best] / seconds[chosen]:.1f} times faster to train"
    return f"{winner}, {within} of {first}, which scores best, and {faster}"


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
    seconds = {
        group.label: fmean(sum(time["seconds"] for time in run.times()) for run in group.runs) for group in groups
    }
    runs = {group.label: group.runs for group in groups}
    values = {method: estimated.mean for method, estimated in means.items()}
    best = best_of(values, values, seconds)
    error = _error(runs[best], scores[best])
    chosen = choose(values, error or 0, seconds)
    run = runs[chosen][scores[chosen].index(max(scores[chosen]))].path
    tested = all("test" in run.metrics() for group in groups for run in group.runs)
    table = compare(groups, "test" if tested else "validation", [score])
    console.print(terminal(table, console.width))
    for note in table.notes:
        console.print(f"note: {note}", soft_wrap=True)
    said = ", ".join(f"{method} {estimated.shown(found.unit)}" for method, estimated in means.items())
    console.print(f"{score} on the validation part: {said}", soft_wrap=True)
    reason = _reason(best, chosen, values, error, seconds, scale(found.unit))
    console.print(f"chosen: {reason}", soft_wrap=True)
    console.print(f"its best run is {run}", soft_wrap=True)
    record = {
        "methods": methods_of(out)["methods"],
        "chosen": chosen,
        "best": best,
        "reason": reason,
        "run": str(run.relative_to(out)),
        "score": score,
        "validation": values,
        "standard_error": error,
        "seconds": seconds,
    }
    with writable(out):
        save_json(record, out / METHODS)
