"""`spen`: what one does with plugins, runs and data besides training."""

from __future__ import annotations

from typing import Annotated

import typer

from spen_plugins.cli import configs, data, plot, plugins, runs
from spen_plugins.cli.common import app as make_app
from spen_plugins.cli.common import show_version
from spen_plugins.cli.compare import compare
from spen_plugins.cli.package import package
from spen_plugins.cli.report import report
from spen_plugins.cli.sweep import sweep

app = make_app("Structured prediction energy networks: plugins, finished runs, data. `spen-run` trains.")

Version = Annotated[bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version.")]


@app.callback(no_args_is_help=True)
def spen(version: Version = False) -> None:
    """Structured prediction energy networks: plugins, finished runs, data. `spen-run` trains."""


app.command()(runs.predict)
app.command()(runs.evaluate)
app.command()(runs.score)
app.command()(runs.calibrate)
app.command("plugins")(plugins.list_plugins)
app.command()(plugins.describe)
app.command()(compare)
app.command()(sweep)
app.command()(report)
app.command()(package)
app.add_typer(plot.app, name="plot")
app.add_typer(data.app, name="data")
app.add_typer(configs.app, name="configs")


def main() -> None:
    """Entry point of `spen`."""
    app()


if __name__ == "__main__":
    main()
