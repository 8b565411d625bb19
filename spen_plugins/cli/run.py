"""`spen-run`: train and evaluate one config."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spen_plugins.cli.common import app as make_app
from spen_plugins.cli.common import columns, guarded, show_version
from spen_plugins.errors import ConfigError

app = make_app("Train and evaluate the experiment a config describes.")

Config = Annotated[
    Path | None, typer.Argument(metavar="CONFIG", show_default=False, help="A .jsonnet, .json or .yaml config.")
]
Arguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME=VALUE]...",
        show_default=False,
        help="The config's own arguments (data=ewt), or keys of the evaluated config (trainer.epochs=3). "
        "A value that is JSON is taken as such, any other as a string.",
    ),
]
Out = Annotated[Path | None, typer.Option(help="The run folder; new or empty. A dated one below runs/ by default.")]
Resume = Annotated[Path | None, typer.Option(help="Go on with the run in this folder, without a config.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; the best there is by default.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no table; print the run folder only.")]
Every = Annotated[
    float,
    typer.Option("--checkpoint-every", min=0, metavar="SECONDS", help="At least so long between two checkpoints."),
]
Listing = Annotated[
    bool, typer.Option("--arguments", help="List the config's arguments with their defaults, and stop.")
]
Version = Annotated[bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version.")]


@app.command()
@guarded
def run(
    config: Config = None,
    arguments: Arguments = None,
    out: Out = None,
    resume: Resume = None,
    device: Device = None,
    quiet: Quiet = False,
    checkpoint_every: Every = 60.0,
    listing: Listing = False,
    version: Version = False,
) -> None:
    """Train and evaluate the experiment a config describes.

    Exit status: 0 done, 1 the run failed, 2 the config, the data or a plugin is wrong.
    """
    if resume is not None:
        if config is not None or out is not None:
            raise ConfigError(
                f"--resume {resume} takes its config and its folder from the run; leave CONFIG and --out out"
            )
        from spen_plugins import runner

        folder = runner.resume(resume, device, quiet, checkpoint_every)
    elif config is None:
        raise ConfigError("which config? As in: spen-run configs/srl_seal.jsonnet; spen-run --help says more")
    elif listing:
        _list_arguments(config)
        return
    else:
        from spen_plugins.config import evaluate, parse_arguments

        evaluated = evaluate(config, parse_arguments(arguments or []))
        # Imported now: a mistake in the config is said before torch is loaded.
        from spen_plugins import runner

        folder = runner.run(evaluated, str(config), out, device, quiet, checkpoint_every)
    if quiet:
        typer.echo(str(folder))


def _list_arguments(config: Path) -> None:
    from spen_plugins.config import parameters

    known = parameters(config)
    if not known:
        typer.echo(f"{config} takes no arguments; its keys can be set by dotted names (trainer.epochs=3)")
    rows = [[p.name, "required" if p.default is None else p.default, p.doc] for p in known]
    typer.echo("\n".join(columns(rows)))


def main() -> None:
    """Entry point of `spen-run`."""
    app()


if __name__ == "__main__":
    main()
