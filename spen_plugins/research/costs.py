"""What runs cost: time, parameters, and how much of the net's gradient is the energy's."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from spen_plugins.runs.folder import RunFolder

ENERGY = ("inference_net.energy", "inference_net.test_time")
"""The energy's term for the net that predicts, in a record's `gradient_share`: with one net, and beside a cost net."""
SIZES = ("trained parameters", "inference parameters", "examples / s")
"""Titles of the last three of `Costs` (|T|, |I| and training speed of Tu et al. 2020, Table 2)."""


@dataclass(frozen=True)
class Costs:
    """One run's, or the mean over seeds; None where nothing is known, as of runs of an earlier version.

    Attributes:
        epochs: run.
        seconds: the median epoch's, of training alone.
        share: the energy's in the gradient norms at the net, the mean over epochs.
        trained: parameters that training changes.
        inference: of them those that prediction needs.
        speed: training examples a second. An epoch visits each of them once, however many updates of however many nets
            a batch is good for; the seconds are those of the median epoch in which the energy trains, if one does.
    """

    epochs: float
    seconds: float | None
    share: float | None
    trained: float | None
    inference: float | None
    speed: float | None

    @property
    def sizes(self) -> tuple[float | None, ...]:
        """Under `SIZES`."""
        return self.trained, self.inference, self.speed


def costs_of(run: RunFolder) -> Costs:
    """A run's costs, from its environment, history and times."""
    history, times, environment = run.history(), run.times(), run.environment()
    shares = [share for record in history for name, share in record.get("gradient_share", {}).items() if name in ENERGY]
    moving = {record["stage"] for record in history if "energy" in record.get("updates", {})}
    seconds = median(record["seconds"] for record in times if not moving or record["stage"] in moving)
    counts, examples = environment.get("parameters", {}), environment.get("training_examples")
    return Costs(
        len(history),
        median(record["seconds"] for record in times),
        mean(shares),
        counts.get("trained"),
        counts.get("inference"),
        examples / seconds if examples and seconds else None,
    )


def mean_costs(costs: Iterable[Costs]) -> Costs:
    """The mean of each over those runs that know it; at least one run."""
    values = zip(*(tuple(vars(one).values()) for one in costs), strict=True)
    return Costs(*map(mean, values))


def mean(values: Iterable[float | None]) -> float | None:
    """Of those that are known."""
    found = [value for value in values if value is not None]
    return statistics.mean(found) if found else None


def median(values: Iterable[float]) -> float | None:
    found = list(values)
    return statistics.median(found) if found else None
