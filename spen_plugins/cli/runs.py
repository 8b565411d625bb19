"""`spen predict`, `spen evaluate`, `spen score`, `spen calibrate`: commands for finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from spen_plugins.cli.common import guarded, write_lines

Run = Annotated[Path, typer.Argument(help="A run folder.", show_default=False)]
File = Annotated[Path, typer.Argument(help="A file in the format of the run's task.", show_default=False)]
Out = Annotated[Path | None, typer.Option(help="Output file (default: standard output).")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps.")]
Refine = Annotated[
    str | None,
    typer.Option(
        help="Lower the energy of the net's output: rerank (choose among the k best), gbi (gradient steps), or a "
        'table of such an inference net, \'{"type": "rerank", "k": 8}\'.'
    ),
]
Trajectory = Annotated[
    bool,
    typer.Option("--trajectory", help="Energy and scores after each step of gradient-based inference, one line each."),
]
Energy = Annotated[bool, typer.Option("--energy", help="Add the energy of each output; low is good.")]


@guarded
def predict(
    run: Run, file: File, out: Out = None, device: Device = "cpu", refine: Refine = None, energy: Energy = False
) -> None:
    """Predict the outputs of a file: one JSON value per line, in the file's order."""
    from spen_plugins.runs import predictor

    write_lines(predictor.load(run, device, _table(refine)).predict_file(file, energy), out)


@guarded
def evaluate(
    run: Run,
    file: File,
    out: Out = None,
    device: Device = "cpu",
    refine: Refine = None,
    trajectory: Trajectory = False,
) -> None:
    """Score predictions against the gold outputs in a file; JSON."""
    from spen_plugins.runs import predictor

    loaded = predictor.load(run, device, _table(refine))
    if trajectory:
        write_lines(loaded.trajectory_file(file), out)
    else:
        write_lines([loaded.evaluate_file(file)], out, indent=2)


def _table(refine: str | None) -> Any:
    from spen_plugins.config.evaluation import parse_value

    return None if refine is None else parse_value(refine)


@guarded
def score(run: Run, file: File, out: Out = None, device: Device = "cpu") -> None:
    """The energy of the outputs in a file, and of the run's own: one JSON value per line. Low is good."""
    from spen_plugins.runs import predictor

    write_lines(predictor.load(run, device).score_file(file), out)


@guarded
def calibrate(
    run: Run,
    file: Annotated[
        Path | None,
        typer.Argument(help="A file with gold (default: the run's validation data).", show_default=False),
    ] = None,
    device: Device = "cpu",
) -> None:
    """Fit the temperature of a run's reported probabilities, and write its calibration.json; JSON."""
    from spen_plugins.runs import predictor

    write_lines([predictor.load(run, device).calibrate(file)], None, indent=2)
