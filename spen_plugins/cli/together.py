"""`spen together`: train nets of several tasks over one pretrained encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from spen_plugins.cli.common import report_errors
from spen_plugins.errors import ConfigError
from spen_plugins.runs.options import RunOptions

Folder = Annotated[
    Path, typer.Argument(metavar="OUT", show_default=False, help="The folder of the runs, new or empty.")
]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PART=CONFIG",
        show_default=False,
        help="A config for each part, named by you (pos=tags), then arguments as for spen-run, of one part "
        "(pos.data=ewt) or of all (all.trainer.epochs=3).",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with what is in OUT; takes no parts.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps (default: the best available).")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print the run folders only.")]
Every = Annotated[float, typer.Option("--checkpoint-every", min=0, metavar="SECONDS", help="Between two checkpoints.")]

ALL = "all"
"""In place of a part's name: all of them."""


@report_errors
def together(
    out: Folder,
    words: Words = None,
    resume: Resume = False,
    device: Device = None,
    quiet: Quiet = False,
    checkpoint_every: Every = 600.0,
) -> None:
    """Train nets of several tasks together, which share one pretrained encoder; a run folder a part."""
    if resume and words:
        raise ConfigError(f"--resume takes the parts from {out}; omit {' '.join(words)}")
    configs = {} if resume else evaluate_parts(words or [])
    from spen_plugins.runs.many import together as work

    options = RunOptions(device, quiet, checkpoint_every)
    folders = work.resume(out, options) if resume else work.run(configs, out, options)
    if quiet:
        typer.echo("\n".join(map(str, folders)))


def evaluate_parts(words: Sequence[str]) -> dict[str, tuple[dict[str, Any], str]]:
    """Each part's evaluated config and its file."""
    from spen_plugins.config.evaluation import evaluate, parse_arguments

    named = parse_arguments(words)
    sources = {name: value for name, value in named.items() if "." not in name}
    arguments: dict[str, dict[str, str]] = {part: {} for part in (ALL, *sources)}
    for name, value in named.items():
        part, dot, key = name.partition(".")
        if part not in arguments:
            raise ConfigError(
                f"{name}={value}: there is no part {part!r}; the parts are {', '.join(sources) or 'none'}, and {ALL}"
            )
        if dot:
            arguments[part][key] = value
    return {part: (evaluate(source, arguments[ALL] | arguments[part]), source) for part, source in sources.items()}
