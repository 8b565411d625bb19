"""`spen compare`: groups of runs in one table."""

from __future__ import annotations

import io
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from spen_plugins.cli.common import Against, Out, Part, report_errors
from spen_plugins.errors import ConfigError, visible
from spen_plugins.figures.options import Runs

if TYPE_CHECKING:
    from spen_plugins.report.compare import Comparison


class Format(StrEnum):
    """Format of the table."""

    table = "table"
    markdown = "markdown"
    csv = "csv"
    latex = "latex"


SUFFIXES = {".md": Format.markdown, ".csv": Format.csv, ".tex": Format.latex}

PartOption = Annotated[Part, typer.Option(help="Whose scores.")]
Scores = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Scores to show, such as macro_f1,ranking.5.ndcg (default: all but those in tables).",
    ),
]
Costs = Annotated[
    bool, typer.Option("--costs", help="Also show trained parameters, inference parameters and training speed.")
]
Intervals = Annotated[
    bool, typer.Option("--intervals", help="In LaTeX, also a column with the difference to each baseline.")
]
FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format", "-f", help="Default: by the suffix of --out (.md, .csv, .tex), or a table on the terminal."
    ),
]


@report_errors
def compare(
    runs: Runs,
    part: PartOption = Part.test,
    scores: Scores = None,
    against: Against = None,
    costs: Costs = False,
    intervals: Intervals = False,
    form: FormatOption = None,
    out: Out = None,
) -> None:
    """Compare runs: scores over seeds, differences to baselines with a paired bootstrap over test examples, costs."""
    if form is None:
        form = Format.table if out is None and sys.stdout.isatty() else Format.markdown
        if out is not None and out.suffix not in SUFFIXES:
            raise ConfigError(f"--out {out}: found suffix {out.suffix!r}; expected .md, .csv or .tex, or a --format")
        form = SUFFIXES[out.suffix] if out is not None else form
    from spen_plugins.report import tables
    from spen_plugins.report.compare import compare as comparing
    from spen_plugins.runs.many.groups import read_groups

    wanted = [name.strip() for name in (scores or "").split(",") if name.strip()]
    comparison = comparing(read_groups(runs), part.value, wanted, against or (), sizes=costs)
    if out is not None or form in (Format.table, Format.csv):  # others have the notes in their text
        for note in comparison.notes:
            typer.secho(f"note: {visible(note)}", err=True, fg=typer.colors.YELLOW)
    if form is Format.table:
        text = _render(comparison, out is not None)
    elif form is Format.latex:
        text = tables.latex(comparison, intervals)
    else:
        text = (tables.markdown if form is Format.markdown else tables.comma_separated)(comparison)
    if out is None:
        typer.echo(text, nl=False)
        return
    from spen_plugins.files import save_text

    save_text(text, out)


def _render(comparison: Comparison, is_file: bool) -> str:
    """The table as text, drawn as wide as the terminal, or plain in a file or pipe."""
    from spen_plugins.console import Console
    from spen_plugins.report.tables import terminal

    console = Console(file=io.StringIO()) if is_file else Console()
    with console.capture() as captured:
        console.print(terminal(comparison, console.width))
    return captured.get()
