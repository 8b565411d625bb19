"""Costs of runs: time, parameters, and the energy's share of the net's gradient."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from spen_plugins.runs.folder.folder import RunFolder

ENERGY = ("inference_net.energy", "inference_net.test_time")
"""The energy's term for the net that predicts, in a record's `gradient_share`: with one net, and next to a cost net."""
SIZES = ("trained parameters", "inference parameters", "examples / s")
"""Titles of the last three of `Costs` (|T|, |I| and training speed of Tu et al. 2020, Table 2)."""


@dataclass(frozen=True)
class Costs:
    """Costs of one run, or means over seeds; None if unknown.

    Attributes:
        epochs: number of epochs.
        seconds: median duration of an epoch, training only.
        share: the energy's share of the gradient norms at the net, mean over epochs.
        trained: number of trained parameters.
        inference: number of them that prediction needs.
        speed: training examples per second. An epoch visits each example once, whatever the number of updates and nets
            per batch; the seconds are those of the median epoch in which the energy trains, if there is one.
    """

    epochs: float
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
    shares = [share for record in history for name, share in record.get("gradient_share", {}).items() if name in ENERGY]
    moving = {record["stage"] for record in history if "energy" in record.get("updates", {})}
    seconds = _median(record["seconds"] for record in times if not moving or record["stage"] in moving)
    counts, examples = environment.get("parameters", {}), environment.get("training_examples")
    return Costs(
        len(history),
        _median(record["seconds"] for record in times),
        _mean(shares),
        counts.get("trained"),
        counts.get("inference"),
        examples / seconds if examples and seconds else None,
    )


def average_costs(costs: Iterable[Costs]) -> Costs:
    """Means over the runs in which a value is known; at least one run."""
    values = zip(*(tuple(vars(one).values()) for one in costs), strict=True)
    return Costs(*map(_mean, values))


def _mean(values: Iterable[float | None]) -> float | None:
    """Mean of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None


def _median(values: Iterable[float]) -> float | None:
    known = list(values)
    return statistics.median(known) if known else None
