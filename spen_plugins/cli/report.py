"""`spen report`: finished runs as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spen_plugins.cli.common import Against, Part, report_errors, writable_file
from spen_plugins.figures.options import Runs

Out = Annotated[
    Path | None,
    typer.Option(
        callback=writable_file,
        help="The .html file (default: report.html in the run's folder, in the folder of the seeds' or methods' "
        "folders, or in runs/ for several RUNs).",
        show_default=False,
    ),
]
Examples = Annotated[int, typer.Option(min=0, help="Number of worst examples to show.")]
PartOption = Annotated[
    Part | None,
    typer.Option(help="Part whose errors are shown (default: test if scored).", show_default=False),
]
Device = Annotated[str, typer.Option(help="Device of the models: cpu, cuda, cuda:1, mps.")]


@report_errors
def report(
    runs: Runs,
    out: Out = None,
    examples: Examples = 10,
    part: PartOption = None,
    against: Against = None,
    device: Device = "cpu",
) -> None:
    """Write one HTML page on finished runs: scores, curves, config, environment, worst examples, confusions."""
    from spen_plugins.report.report import default_path, write_report
    from spen_plugins.runs.many.groups import read_groups

    groups = read_groups(runs)
    path = out or default_path(groups)
    write_report(groups, path, examples, None if part is None else part.value, against or (), device)
    typer.echo(str(path))
