"""`spen configs`: the configs that ship with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spen_plugins.cli.common import app as make_app
from spen_plugins.cli.common import columns, report_errors
from spen_plugins.config import shipped

app = make_app("List the configs that ship with the package, or copy one to change it.")

Name = Annotated[str, typer.Argument(show_default=False, help="Name of a shipped config, as listed by `spen configs`.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", show_default=False, help="Target folder; created if missing.")]


@app.callback(invoke_without_command=True)
@report_errors
def configs(context: typer.Context) -> None:
    """List the configs that ship with the package. `spen-run NAME` trains one; with --arguments it explains it."""
    if context.invoked_subcommand is None:
        typer.echo("\n".join(columns([[name, text] for name, text in shipped.summaries().items()])))


@app.command()
@report_errors
def copy(name: Name, folder: Folder) -> None:
    """Copy a shipped config and the libraries it imports to a folder, to change it there."""
    for path in shipped.copy(name, folder):
        typer.echo(str(path))
