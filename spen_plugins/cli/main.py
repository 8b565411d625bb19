"""`spen`: commands for plugins, runs and data."""

from __future__ import annotations

from spen_plugins.cli.commands import Commands
from spen_plugins.cli.common import Version, make_app, run_program

app = make_app(group=Commands, completion=True)


@app.callback(no_args_is_help=True)
def spen(version: Version = False) -> None:
    """Structured prediction energy networks: use finished runs, compare them, prepare data.

    `spen-run` trains.
    """


def main() -> None:
    """Entry point of `spen`."""
    run_program(app)


if __name__ == "__main__":
    main()
