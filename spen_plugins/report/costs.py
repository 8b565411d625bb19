"""Costs of runs: epochs, times and sizes."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from spen_plugins.runs.folder.folder import RunFolder

ENERGY = ("inference_net.energy", "inference_net.test_time")
"""Names of the energy's term for the predicting net in a record's `gradient_share`: with one net, or a cost net too."""
SIZES = ("trained parameters", "inference parameters", "examples / s")
"""Titles of the last three fields of `Costs` (|T|, |I| and training speed of Tu et al. 2020, Table 2)."""


@dataclass(frozen=True)
class Costs:
    """Costs of one run, or means over seeds; None if unknown.

    Attributes:
        epochs: number of epochs; like times, unknown for a mean of runs, which is not trained.
        seconds: median duration of an epoch, training only.
        share: the energy's share of the gradient norms at the net, mean over epochs.
        trained: number of trained parameters.
        inference: number of parameters that prediction needs.
        speed: training examples per second. An epoch visits each example once, whatever the number of updates and nets
            per batch; the seconds are those of the median epoch in which the energy trains, if there is one.
    """

    epochs: float | None
    seconds: float | None
    share: float | None
    trained: float | None
    inference: float | None
    speed: float | None

    @property
    def sizes(self) -> tuple[float | None, ...]:
        """Values in the order of `SIZES`."""
        return self.trained, self.inference, self.speed


def read_costs(run: RunFolder) -> Costs:
    """A run's costs, from its environment, history and times."""
    history, times, environment = run.history(), run.times(), run.environment()
    is_mean = bool(environment.get("mean"))  # its times are those of several runs, one after another
    shares = [share for record in history for name, share in record.get("gradient_share", {}).items() if name in ENERGY]
    stages = {record["stage"] for record in history if "energy" in record.get("updates", {})}
    seconds = _compute_median(record["seconds"] for record in times if not stages or record["stage"] in stages)
    counts, examples = environment.get("parameters", {}), environment.get("training_examples")
    return Costs(
        None if is_mean else len(history),
        None if is_mean else _compute_median(record["seconds"] for record in times),
        _compute_mean(shares),
        counts.get("trained"),
        counts.get("inference"),
        examples / seconds if examples and seconds and not is_mean else None,
    )


def average_costs(costs: Iterable[Costs]) -> Costs:
    """Mean of each value over the runs in which it is known; requires at least one run."""
    values = zip(*(tuple(vars(run_costs).values()) for run_costs in costs), strict=True)
    return Costs(*map(_compute_mean, values))


def _compute_mean(values: Iterable[float | None]) -> float | None:
    """Mean of the known values; None if there are none."""
    numbers = [value for value in values if value is not None]
    return statistics.mean(numbers) if numbers else None


def _compute_median(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return statistics.median(numbers) if numbers else None
