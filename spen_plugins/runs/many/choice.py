"""The method that the validation part chooses among several.

The choice follows the one-standard-error rule (Breiman, Friedman, Olshen and Stone 1984, section 3.4.3; scikit-learn's
example "Balance model complexity and cross-validated score"), with training time in place of a tree's size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from spen_plugins.errors import RunError
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.folder.selection import find_selection, find_unit
from spen_plugins.scores.bootstrap import estimate, resampled_scores, scale

CHEAPER = 2 / 3
"""The largest share of another method's training time that makes a method cheaper. The margin is for noise in times."""


class Choice(NamedTuple):
    """The method that was chosen: as JSON values, for the folder of the methods, and in words."""

    record: dict[str, Any]
    lines: list[str]


def choose_among(runs: Mapping[str, Sequence[RunFolder]], out: Path) -> Choice:
    """Choose a method by the mean scores of its finished runs on the validation part."""
    score, unit = find_selection(runs, Registry()), find_unit(runs)
    scores = {
        method: [(run.metrics() or {}).get("validation", {}).get(score) for run in runs[method]] for method in runs
    }
    if lacking := [method for method, values in scores.items() if None in values]:
        raise RunError(f"a run of {', '.join(lacking)} has no {score} on the validation part; nothing is chosen")
    means = {method: estimate(values) for method, values in scores.items()}
    values = {method: estimated.mean for method, estimated in means.items()}
    seconds = {method: fmean(sum(time["seconds"] for time in run.times()) for run in runs[method]) for method in runs}
    best = find_best(values, values, seconds)
    error = _estimate_error(runs[best], scores[best])
    chosen = choose(values, error or 0, seconds)
    reason = _write_reason(best, chosen, values, error, seconds, scale(unit))
    run = runs[chosen][scores[chosen].index(max(scores[chosen]))].path
    record = {
        "chosen": chosen,
        "best": best,
        "reason": reason,
        "run": str(run.relative_to(out)),
        "score": score,
        "validation": values,
        "standard_error": error,
        "seconds": seconds,
    }
    shown = ", ".join(f"{method} {estimated.shown(unit)}" for method, estimated in means.items())
    lines = [f"{score} on the validation part: {shown}", f"chosen: {reason}", f"its best run is {run}"]
    return Choice(record, lines)


def find_best(methods: Iterable[str], scores: Mapping[str, float], seconds: Mapping[str, float]) -> str:
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
    chosen = find_best(scores, scores, seconds)
    near = [method for method in scores if scores[method] >= scores[chosen] - error]
    while cheaper := [method for method in near if 0 < seconds[method] <= CHEAPER * seconds[chosen]]:
        chosen = find_best(cheaper, scores, seconds)
    return chosen


def _estimate_error(runs: Sequence[RunFolder], scores: Sequence[float]) -> float | None:
    """Standard error of a method's mean score: over seeds, or with one over validation examples if it kept them."""
    ratios = runs[0].ratios("validation", beside=True) if len(runs) == 1 else None
    if ratios is None:
        return estimate(scores).error
    drawn = resampled_scores(*(ratios[name].numpy()[None] for name in ("numerator", "denominator")))
    return float(drawn.std(ddof=1))


def _write_reason(
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
