"""`spen predict`, `spen evaluate`, `spen score`: what finished runs are for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spen_plugins.cli.common import guarded, write_lines

Run = Annotated[Path, typer.Argument(help="A run folder.", show_default=False)]
File = Annotated[Path, typer.Argument(help="A file in the format of the run's task.", show_default=False)]
Out = Annotated[Path | None, typer.Option(help="Where to write; the standard output by default.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps.")]


@guarded
def predict(run: Run, file: File, out: Out = None, device: Device = "cpu") -> None:
    """Predict the outputs of a file: one JSON value a line, in the file's order."""
    from spen_plugins import predictor

    write_lines(predictor.load(run, device).predict_file(file), out)


@guarded
def evaluate(run: Run, file: File, out: Out = None, device: Device = "cpu") -> None:
    """Score predictions against the gold outputs in a file; JSON."""
    from spen_plugins import predictor

    write_lines([predictor.load(run, device).evaluate_file(file)], out, indent=2)


@guarded
def score(run: Run, file: File, out: Out = None, device: Device = "cpu") -> None:
    """The energy of the outputs in a file, and of the run's own: one JSON value a line. Low is good."""
    from spen_plugins import predictor

    write_lines(predictor.load(run, device).score_file(file), out)
