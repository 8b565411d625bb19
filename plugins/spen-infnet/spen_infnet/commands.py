"""Commands of `spen`: `cost-net`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spen_plugins import RunFolder

Run = Annotated[Path, typer.Argument(metavar="RUN", show_default=False, help="A run folder.")]
File = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="A file with gold in the task's format (default: the validation part).",
    ),
]
Top = Annotated[int, typer.Option(min=0, help="Number of differences to show.")]


def cost_net(run: Run, file: File = None, top: Top = 10) -> None:
    """Compare a run's cost-augmented net, which sees gold, with its test-time net; prints markdown.

    Example: spen cost-net runs/joint
    """
    from spen_infnet.cost_net_report import compare_nets, write_markdown

    typer.echo(write_markdown(compare_nets(RunFolder.open(run), file), top), nl=False)
