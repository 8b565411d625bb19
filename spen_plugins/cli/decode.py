"""`spen decode`: a run that decides on outputs in another way."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from spen_plugins.cli.common import report_errors
from spen_plugins.cli.runs import Device, Refine
from spen_plugins.errors import ConfigError
from spen_plugins.runs.options import RunOptions


class By(StrEnum):
    """`task.decode`."""

    threshold = "threshold"
    expected_f1 = "expected_f1"
    validation = "validation"


Run = Annotated[
    Path, typer.Argument(help="A finished run: of label sets, or with --refine of any task.", show_default=False)
]
New = Annotated[Path, typer.Argument(help="The new run folder.", show_default=False)]
ByOption = Annotated[By, typer.Option("--by", help="task.decode: how labels are decided.")]
Threshold = Annotated[str, typer.Option(help="task.threshold: a number, or validation.")]
Temperature = Annotated[str, typer.Option(help="task.decode_temperature of expected F1: a number, or validation.")]


@report_errors
def decode(
    run: Run,
    out: New,
    by: ByOption = By.validation,
    threshold: Threshold = "validation",
    temperature: Temperature = "validation",
    refine: Refine = None,
    device: Device = "cpu",
) -> None:
    """Decide on a run's outputs in another way, fitted to its validation part: a new run folder, with its scores."""
    from spen_plugins.config.evaluation import parse_value
    from spen_plugins.runs.train.decoding import decode as decoding
    from spen_plugins.runs.train.decoding import decode_by_energy

    if refine is not None:
        if (by, threshold, temperature) != (By.validation, "validation", "validation"):
            raise ConfigError("--refine lets the energy decide: omit --by, --threshold and --temperature")
        decode_by_energy(run, out, parse_value(refine), RunOptions(device))
        return
    for name, value, other in (("threshold", threshold, By.expected_f1), ("temperature", temperature, By.threshold)):
        if by is other and value != "validation":
            raise ConfigError(f"--by {by.value} has no {name}: omit --{name}, or take another --by")
    settings = {"decode": by.value, "threshold": parse_value(threshold), "decode_temperature": parse_value(temperature)}
    decoding(run, out, settings, RunOptions(device))
