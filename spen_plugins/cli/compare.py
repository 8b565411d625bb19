"""`spen compare`: groups of runs in one table."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from spen_plugins.cli.common import guarded
from spen_plugins.errors import ConfigError


class Part(StrEnum):
    """Whose scores are compared."""

    test = "test"
    validation = "validation"


class Format(StrEnum):
    """What the table is written in."""

    table = "table"
    markdown = "markdown"
    csv = "csv"
    latex = "latex"


SUFFIXES = {".md": Format.markdown, ".csv": Format.csv, ".tex": Format.latex}

Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        show_default=False,
        help="A run folder, or a folder of them (one per seed); label=folder gives it a name.",
    ),
]
PartOption = Annotated[Part, typer.Option(help="Whose scores.")]
Scores = Annotated[str | None, typer.Option(metavar="A,B", help="Which scores; all by default.")]
Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        "--baseline",
        metavar="LABEL",
        help="The baseline of paired differences, the first RUN by default; may be given more than once.",
    ),
]
FormatOption = Annotated[
    Format | None,
    typer.Option(
        "--format", "-f", help="By default what --out's suffix says (.md, .csv, .tex), a table on a terminal."
    ),
]
Out = Annotated[Path | None, typer.Option(help="Where to write; the standard output by default.")]


@guarded
def compare(
    runs: Runs,
    part: PartOption = Part.test,
    scores: Scores = None,
    against: Against = None,
    form: FormatOption = None,
    out: Out = None,
) -> None:
    """Compare runs: scores over seeds, differences to baselines with a paired bootstrap over test examples, costs."""
    if form is None:
        form = Format.table if out is None and sys.stdout.isatty() else Format.markdown
        if out is not None and out.suffix not in SUFFIXES:
            raise ConfigError(f"--out {out}: found suffix {out.suffix!r}; expected .md, .csv or .tex, or a --format")
        form = SUFFIXES[out.suffix] if out is not None else form
    from spen_plugins.research import tables
    from spen_plugins.research.compare import compare as comparing
    from spen_plugins.research.groups import read_groups

    wanted = [name for name in (scores or "").split(",") if name]
    comparison = comparing(read_groups(runs), part.value, wanted, against or ())
    for note in comparison.notes:
        typer.secho(f"note: {note}", err=True, fg=typer.colors.YELLOW)
    if form is not Format.table:
        write = {Format.markdown: tables.markdown, Format.csv: tables.comma_separated, Format.latex: tables.latex}
        _write(write[form](comparison), out)
    elif out is None:
        from rich.console import Console

        Console().print(tables.terminal(comparison))
    else:
        _write(_rendered(tables.terminal(comparison)), out)


def _rendered(table: object) -> str:
    """A rich table as plain text."""
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def _write(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=False)
        return
    from spen_plugins.loop.state import writing

    with writing(out) as temporary:
        temporary.write_text(text, encoding="utf-8")
