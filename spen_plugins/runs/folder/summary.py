"""The table at the end of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from spen_plugins.console import Console
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.scores.calibration import describe_bound

OWN = ("threshold", "mean_of", "refined")
"""Lines of the protocol on the run itself; other lines, such as definitions, are printed once for several runs."""


def print_scores(console: Console, folder: RunFolder) -> None:
    """Print the table at the end of a run: scores, calibration and protocol."""
    metrics = folder.metrics() or {}
    protocol = metrics.pop("protocol", {})
    table = Table(title=str(folder.path), title_justify="left")
    table.add_column("score")
    for part in metrics:
        table.add_column(part, justify="right")
    for name in next(iter(metrics.values()), {}):
        values = [scores.get(name) for scores in metrics.values()]
        if all(isinstance(value, (int, float)) for value in values):
            table.add_row(name, *(f"{value:.4f}" for value in values))
    console.print(table)
    for part, scores in metrics.items():
        if ranking := scores.get("ranking"):
            console.print(_write_ranking(part, ranking), soft_wrap=True)
        if nll := scores.get("nll"):
            console.print(_write_likelihoods(part, nll), soft_wrap=True)
    if calibration := folder.calibration():
        console.print(_write_calibration(calibration), soft_wrap=True)
        if bound := describe_bound(calibration):
            console.print(f"warning: {bound}", soft_wrap=True)
    for name, text in protocol.items():
        if text is not None:
            line = f"{name}: {_format(text)}"
            if name in OWN:
                console.print(line, style="dim", soft_wrap=True)
            else:
                console.print_once(line, style="dim")


def _format(value: Any) -> str:
    """A value of the protocol as text; the value is text, a number, or a table of these."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_format(item)}" for name, item in value.items())
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _write_likelihoods(part: str, nll: Mapping[str, float]) -> str:
    """A line with likelihoods, and after them the numbers that have another unit."""
    kinds = {"_ess": "effective samples", "_impossible": "share of examples with impossible gold"}
    kind_by_name = {name: kind for name in nll for suffix, kind in kinds.items() if name.endswith(suffix)}
    likelihoods = (f"{name} {value:.2f}" for name, value in nll.items() if name not in kind_by_name)
    others = "".join(f"; {kind}: {name} {nll[name]:.2f}" for name, kind in kind_by_name.items())
    return f"negative log-likelihood in nats, {part}: {', '.join(likelihoods)}{others}"


def _write_ranking(part: str, ranking: Mapping[str, Mapping[str, float]]) -> str:
    """A line with the scores of the k likeliest labels; each score is listed for all k."""
    names = next(iter(ranking.values()))
    scores = (f"{name} {' '.join(f'{row[name]:.4f}' for row in ranking.values())}" for name in names)
    return f"the {', '.join(ranking)} likeliest labels, {part}: {'; '.join(scores)}"


def _write_calibration(calibration: Mapping[str, Any]) -> str:
    errors = [
        f"{part} {calibration[part]['ece_uncalibrated']:.4f} -> {calibration[part]['ece']:.4f}"
        for part in ("validation", "test")
        if part in calibration
    ]
    temperature = f"temperature {calibration['temperature']:g} for the probabilities of {calibration['decisions']}"
    return f"{temperature}; expected calibration error: {', '.join(errors)}"
