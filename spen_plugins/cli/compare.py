"""`spen compare` and `spen report`: groups of runs in one table, or on one page."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spen_plugins.cli.common import Against, Out, writable_file
from spen_plugins.errors import ConfigError, visible
from spen_plugins.figures.options import Runs

if TYPE_CHECKING:
    from spen_plugins.report.compare import Comparison


Form = Literal["table", "markdown", "csv", "latex"]
Part = Literal["test", "validation"]
SUFFIXES: dict[str, Form] = {".md": "markdown", ".csv": "csv", ".tex": "latex"}

PartOption = Annotated[Part, typer.Option(help="Part whose scores are shown.")]
Scores = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Scores to show, such as macro_f1,ranking.5.ndcg (default: all but nested ones).",
    ),
]
Costs = Annotated[
    bool, typer.Option("--costs", help="Also show trained parameters, inference parameters and training speed.")
]
Intervals = Annotated[
    bool, typer.Option("--intervals", help="In LaTeX, add a column with the difference to each baseline.")
]
FormatOption = Annotated[
    Form | None,
    typer.Option(
        "--format",
        "-f",
        help="Format (default: by the suffix of --out: .md, .csv, .tex; else a table on the terminal).",
    ),
]
Page = Annotated[
    Path | None,
    typer.Option(
        callback=writable_file,
        help="The .html file (default: report.html in the run folder, in the folder of seeds or methods, or in runs/ "
        "for several RUNs).",
        show_default=False,
    ),
]
Examples = Annotated[int, typer.Option(min=0, help="Number of worst examples to show.")]
ErrorsOf = Annotated[
    Part | None,
    typer.Option(help="Part whose errors are shown (default: test if scored).", show_default=False),
]
Device = Annotated[str, typer.Option(help="Device of the models: cpu, cuda, cuda:1, mps.")]


def compare(
    runs: Runs,
    part: PartOption = "test",
    scores: Scores = None,
    against: Against = None,
    costs: Costs = False,
    intervals: Intervals = False,
    form: FormatOption = None,
    out: Out = None,
) -> None:
    """Compare runs: scores over seeds, differences to baselines by a paired bootstrap over test examples, costs.

    Example: spen compare runs/cross_entropy runs/nce
    """
    if form is None:
        form = "table" if out is None and sys.stdout.isatty() else "markdown"
        if out is not None and out.suffix not in SUFFIXES:
            raise ConfigError(f"--out {out}: found suffix {out.suffix!r}; expected .md, .csv or .tex, or a --format")
        form = SUFFIXES[out.suffix] if out is not None else form
    from spen_plugins.report import tables
    from spen_plugins.report.compare import compare as compare_groups
    from spen_plugins.runs.many.groups import read_groups

    names = [name.strip() for name in (scores or "").split(",") if name.strip()]
    comparison = compare_groups(read_groups(runs), part, names, against or (), sizes=costs)
    if out is not None or form in ("table", "csv"):  # other formats contain the notes
        for note in comparison.notes:
            typer.secho(f"note: {visible(note)}", err=True, fg=typer.colors.YELLOW)
    if form == "table":
        text = _render(comparison, out is not None)
    elif form == "latex":
        text = tables.latex(comparison, intervals)
    else:
        text = (tables.markdown if form == "markdown" else tables.comma_separated)(comparison)
    if out is None:
        typer.echo(text, nl=False)
        return
    from spen_plugins.files import save_text

    save_text(text, out)


def _render(comparison: Comparison, is_file: bool) -> str:
    """The table as text, as wide as the terminal; plain for a file or pipe."""
    from spen_plugins.console import Console
    from spen_plugins.report.tables import terminal

    console = Console(file=io.StringIO()) if is_file else Console()
    with console.capture() as capture:
        console.print(terminal(comparison, console.width))
    return capture.get()


def report(
    runs: Runs,
    out: Page = None,
    examples: Examples = 10,
    part: ErrorsOf = None,
    against: Against = None,
    device: Device = "cpu",
) -> None:
    """Write one HTML page about finished runs: scores, curves, config, environment, worst examples, confusions.

    Example: spen report runs/nce --out report.html
    """
    from spen_plugins.report.report import default_path, write_report
    from spen_plugins.runs.many.groups import read_groups

    groups = read_groups(runs)
    path = out or default_path(groups)
    write_report(groups, path, examples, part, against or (), device)
    typer.echo(str(path))
