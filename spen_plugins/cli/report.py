"""`spen report`: finished runs as one page to read, keep and pass on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spen_plugins.cli.common import Against, Part, Runs, guarded

Out = Annotated[
    Path | None,
    typer.Option(
        help="The .html file. By default report.html in the run's folder, in the folder of the seeds' folders, or in "
        "runs/ where there are several RUNs.",
        show_default=False,
    ),
]
Examples = Annotated[int, typer.Option(min=0, help="How many of the worst examples to show.")]
PartOption = Annotated[
    Part | None,
    typer.Option(help="Whose errors are shown; test where the runs have one.", show_default=False),
]
Device = Annotated[str, typer.Option(help="Where the models run: cpu, cuda, cuda:1, mps.")]


@guarded
def report(
    runs: Runs,
    out: Out = None,
    examples: Examples = 10,
    part: PartOption = None,
    against: Against = None,
    device: Device = "cpu",
) -> None:
    """Write one HTML page on finished runs: scores, curves, config, environment, worst examples, confusions."""
    from spen_plugins.research.groups import read_groups
    from spen_plugins.research.report import default_path, write_report

    groups = read_groups(runs)
    path = out or default_path(groups)
    write_report(groups, path, examples, None if part is None else part.value, against or (), device)
    typer.echo(str(path))
