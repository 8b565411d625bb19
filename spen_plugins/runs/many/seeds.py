"""One experiment with several seeds, by one or several methods; the validation part chooses the method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from spen_plugins.config.experiment import parse_experiment
from spen_plugins.console import Console
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.files import is_free, save_json
from spen_plugins.files.lock import check_unused, locked
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.folder import METHODS, RunFolder, read_methods
from spen_plugins.runs.many.groups import find_selection, find_unit
from spen_plugins.runs.many.jobs import run_all
from spen_plugins.runs.many.means import keep_mean
from spen_plugins.runs.many.plans import (
    Configs,
    begin,
    explain_unwritable,
    locate_run,
    plan,
    read_metrics,
    read_seeds,
)
from spen_plugins.runs.options import DEFAULTS, RunOptions
from spen_plugins.runs.train import runner
from spen_plugins.scores.bootstrap import estimate, resampled_scores, scale

CHEAPER = 2 / 3
"""A method is cheaper than another if it takes at most this share of its training time; the margin is for noise."""


class Choice(NamedTuple):
    """The chosen method: as JSON values for the folder of the methods, and as lines for the user."""

    record: dict[str, Any]
    lines: list[str]


def choose_among(runs: Mapping[str, Sequence[RunFolder]], out: Path) -> Choice:
    """Choose a method by the mean scores of its finished runs on the validation part."""
    (score, _), unit = find_selection(runs, Registry()), find_unit(runs)
    scores = {
        method: [(run.metrics() or {}).get("validation", {}).get(score) for run in runs[method]] for method in runs
    }
    if incomplete_methods := [method for method, values in scores.items() if None in values]:
        raise RunError(
            f"no method was chosen: a run of {', '.join(incomplete_methods)} has no {score} on the validation part"
        )
    estimates = {method: estimate(values) for method, values in scores.items()}
    values = {method: score_estimate.mean for method, score_estimate in estimates.items()}
    seconds = {method: fmean(sum(time["seconds"] for time in run.times()) for run in runs[method]) for method in runs}
    best = find_best(values, values, seconds)
    error = _estimate_error(runs[best], scores[best])
    chosen = choose(values, error or 0, seconds)
    reason = _write_reason(best, chosen, values, error, seconds, scale(unit))
    best_run = runs[chosen][scores[chosen].index(max(scores[chosen]))].path
    record = {
        "chosen": chosen,
        "best": best,
        "reason": reason,
        "run": str(best_run.relative_to(out)),
        "score": score,
        "validation": values,
        "standard_error": error,
        "seconds": seconds,
    }
    score_text = ", ".join(f"{method} {score_estimate.format(unit)}" for method, score_estimate in estimates.items())
    lines = [f"{score} on the validation part: {score_text}", f"chosen: {reason}", f"its best run is {best_run}"]
    return Choice(record, lines)


def find_best(methods: Iterable[str], scores: Mapping[str, float], seconds: Mapping[str, float]) -> str:
    """The method that scores best; among equal scores, the fastest to train."""
    return max(methods, key=lambda method: (scores[method], -seconds[method]))


def choose(scores: Mapping[str, float], error: float, seconds: Mapping[str, float]) -> str:
    """The method to use: a cheaper one within a standard error of the best, if there is one (Breiman, Friedman, Olshen
    and Stone 1984, section 3.4.3, with training time in place of a tree's size).

    Among the methods within the standard error, the choice moves from the best method to the best-scoring method that
    is cheaper by `CHEAPER`, and on from there, until none is. So scores decide between methods of about equal cost.

    Args:
        scores: scores on the validation part by method.
        error: the standard error of the best score; 0 if unknown.
        seconds: training time by method; 0 if unknown, which is never cheaper.
    """
    chosen = find_best(scores, scores, seconds)
    close_methods = [method for method in scores if scores[method] >= scores[chosen] - error]
    while cheaper_methods := [method for method in close_methods if 0 < seconds[method] <= CHEAPER * seconds[chosen]]:
        chosen = find_best(cheaper_methods, scores, seconds)
    return chosen


def _estimate_error(runs: Sequence[RunFolder], scores: Sequence[float]) -> float | None:
    """Standard error of a method's mean score over seeds; with one seed, over validation examples if it stored them."""
    ratios = runs[0].ratios("validation", beside=True) if len(runs) == 1 else None
    if ratios is None:
        return estimate(scores).error
    resamples = resampled_scores(*(ratios[name].numpy()[None] for name in ("numerator", "denominator")))
    return float(resamples.std(ddof=1))


def _write_reason(
    best: str, chosen: str, scores: Mapping[str, float], error: float | None, seconds: Mapping[str, float], factor: int
) -> str:
    """A sentence on the chosen method and the reason; scores are multiplied by `factor`."""
    chosen_text, best_text = (f"{method} ({factor * scores[method]:.2f})" for method in (chosen, best))
    if error is None:
        reason = "its standard error is unknown, as no scores of validation examples are kept; seeds=0..2 gives it"
        return f"{chosen_text}, which scores best; {reason}"
    margin = f"within one standard error ({factor * error:.2f})"
    if chosen == best:
        return f"{chosen_text}, which scores best; none {margin} is cheaper"
    speedup = f"{seconds[best] / seconds[chosen]:.1f} times faster to train"
    return f"{chosen_text}, {margin} of {best_text}, which scores best, and {speedup}"


@dataclass(frozen=True)
class Outcome:
    """The result of runs by several methods."""

    folder: Path
    finished_methods: list[str]
    choice: Choice | None
    failures: dict[str, str]

    def check(self) -> None:
        """Raise a RunError if a method failed."""
        if self.failures:
            head = f"chosen among {', '.join(self.finished_methods)}; failed: {', '.join(self.failures)}."
            lines = [f"{method}: {error}" for method, error in self.failures.items()]
            raise RunError("\n".join([head if self.finished_methods else "no method was chosen.", *lines]))


def run_many(
    configs: Configs,
    methods: Sequence[str],
    seeds: Sequence[int],
    source: str,
    out: Path | None = None,
    options: RunOptions = DEFAULTS,
) -> Outcome:
    """Train and evaluate a config with the same seeds by each method, and choose one by the validation part.

    Finished runs are skipped, and interrupted runs resumed. All methods also run the seeds that the folder already has.
    `choose` picks the method by the mean validation scores over seeds, and `methods.json` names it. With several seeds
    the folder predicts with the mean of the runs that validation chooses, unless `options.best` is true.

    Args:
        methods: the methods; `[""]` for the config's own: nothing is chosen, and `out` holds the runs themselves.
        out: the folder, new, empty, or one of this config; by default a dated one below `runs/`.
    """
    out = out or runner.choose_folder(source)
    if not is_free(out):
        check_unused(out)
    if out.is_file():
        raise ConfigError(f"{out} is a file; nothing was overwritten. Use another --out")
    if not any(methods):
        read_seeds(out)  # raises an error for a folder with other content
    elif not read_methods(out) and not is_free(out):
        raise ConfigError(
            f"the folder {out} is not empty and has no methods; nothing was overwritten. Use another --out"
        )
    registry = Registry()
    for method in filter(None, methods):
        parse_experiment(configs(method, seeds[0]), f"{source}, method={method}", registry)
    with begin(out):
        plan(out, configs, methods, seeds, source)
        _print_earlier_seeds(out, methods, seeds, options)
        return _run(out, options, seeds)


def _print_earlier_seeds(out: Path, methods: Sequence[str], seeds: Sequence[int], options: RunOptions) -> None:
    """Print the seeds of earlier commands that also count: with methods all of them, otherwise the finished ones."""
    folder = out / methods[0]
    stored_seeds = [seed for seed in read_seeds(folder) if any(methods) or read_metrics(folder, seed) is not None]
    if earlier_seeds := [str(seed) for seed in stored_seeds if seed not in seeds]:
        Console(quiet=options.quiet).print(f"note: also counts seed {', '.join(earlier_seeds)}, of an earlier command")


def resume_many(out: Path, options: RunOptions = DEFAULTS) -> Outcome:
    """Resume all unfinished runs of a folder; see `run_many`."""
    with locked(out):
        return _run(out, options)


def _run(out: Path, options: RunOptions, seeds: Sequence[int] | None = None) -> Outcome:
    """Run the unfinished runs, and write the choice among the finished methods."""
    methods, plans, failures = read_methods(out).get("methods"), {}, {}
    if methods is None:
        for message in run_all(out, {out: read_seeds(out) if seeds is None else seeds}, options).values():
            raise RunError(message)
        return Outcome(out, [], None, {})
    with ExitStack() as locks:
        for folder in (out / method for method in methods):
            locks.enter_context(locked(folder))
            try:
                plans[folder] = read_seeds(folder)
            except RunError as error:  # its plan is damaged
                failures[folder] = str(error)
        failures |= run_all(out, plans, options)
    finished_methods = [method for method in methods if out / method not in failures]
    choice = None
    if finished_methods:
        runs = {
            name: [RunFolder(locate_run(out / name, seed)) for seed in plans[out / name]] for name in finished_methods
        }
        choice = choose_among(runs, out)
        if not options.best and any(len(seeds) > 1 for seeds in runs.values()):
            mean, lines = keep_mean(out, runs, choice.record["run"], find_unit(runs), options)
            choice = Choice({**choice.record, "mean": mean}, [*choice.lines, *lines])
        with explain_unwritable(out):
            save_json({"methods": methods, **choice.record}, out / METHODS)
    return Outcome(out, finished_methods, choice, {folder.name: error for folder, error in failures.items()})
