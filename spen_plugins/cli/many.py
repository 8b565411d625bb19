"""`spen sweep` and `spen together`: several runs, by one search or over one pretrained encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from spen_plugins.cli.run import Device, Every
from spen_plugins.errors import ConfigError
from spen_plugins.runs.options import RunOptions

Config = Annotated[Path, typer.Argument(metavar="CONFIG", show_default=False, help="A config, as for spen-run.")]
Space = Annotated[
    Path,
    typer.Argument(
        metavar="SPACE",
        show_default=False,
        help="A .yaml file: argument or dotted key -> {low, high, log, step, int} or a list of choices.",
    ),
]
Arguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME=VALUE", show_default=False, help="Arguments as for spen-run, the same in all trials."),
]
Trials = Annotated[
    int, typer.Option(min=1, show_default=False, help="Total number of trials, including those of earlier calls.")
]
Storage = Annotated[
    str | None,
    typer.Option(help="sqlite:///FILE, a journal (FILE.log), any optuna URL (default: an SQLite file in the folder)."),
]
Name = Annotated[
    str | None, typer.Option(metavar="STUDY", help="Name of the study in its storage (default: the folder's).")
]
Out = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Folder of the trials' runs (default: runs/sweep-CONFIG-SPACE).")
]
Prune = Annotated[
    Literal["median", "hyperband", "none"], typer.Option(help="Pruner that stops trials with low validation scores.")
]
Seed = Annotated[
    int, typer.Option(min=0, help="Seed of the search; the config's argument sets the seed of the trials.")
]
Folder = Annotated[
    Path, typer.Argument(metavar="OUT", show_default=False, help="The folder of the runs, new or empty.")
]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PART=CONFIG",
        show_default=False,
        help="One config per part, under a name of your choice (pos=tags), then arguments as for spen-run, for one "
        "part (pos.data=ewt) or for all (all.trainer.epochs=3).",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Resume the runs in OUT; omit the parts.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only the run folders.")]

ALL = "all"
"""Name that stands for all parts."""


def sweep(
    config: Config,
    space: Space,
    arguments: Arguments = None,
    *,
    trials: Trials,
    storage: Storage = None,
    name: Name = None,
    out: Out = None,
    pruner: Prune = "median",
    seed: Seed = 0,
    device: Device = None,
) -> None:
    """Search for hyperparameters by the validation score.

    The same command resumes a stopped or killed search; several processes share the work.

    Example: spen sweep labels space.yaml --trials 20
    """
    from spen_plugins.config.evaluation import parse_arguments

    fixed_arguments = parse_arguments(arguments or [])
    folder = out or Path("runs") / f"sweep-{config.stem}-{space.stem}"
    from spen_plugins.runs.many.sweep import Sweep
    from spen_plugins.runs.many.sweep import sweep as run_sweep

    run_sweep(
        Sweep(config, space, fixed_arguments, trials, folder, storage, name, pruner, seed, device),
        typer.echo,
    )


def together(
    out: Folder,
    words: Words = None,
    resume: Resume = False,
    device: Device = None,
    quiet: Quiet = False,
    checkpoint_every: Every = 600.0,
) -> None:
    """Train the nets of several tasks over one shared pretrained encoder; writes one run folder per part.

    Example: spen together runs/both pos=tags ner=names all.encoder=minilm all.method=cross_entropy
    """
    if resume and words:
        raise ConfigError(f"--resume reads the parts from {out}; omit {' '.join(words)}")
    configs = {} if resume else evaluate_parts(words or [])
    from spen_plugins.runs.many import together as joint_runs

    options = RunOptions(device, quiet, checkpoint_every)
    folders = joint_runs.resume(out, options) if resume else joint_runs.run(configs, out, options)
    if quiet:
        typer.echo("\n".join(map(str, folders)))


def evaluate_parts(words: Sequence[str]) -> dict[str, tuple[dict[str, Any], str]]:
    """Each part's evaluated config and its file."""
    from spen_plugins.config.evaluation import evaluate, parse_arguments

    values = parse_arguments(words)
    sources = {name: value for name, value in values.items() if "." not in name}
    arguments: dict[str, dict[str, str]] = {part: {} for part in (ALL, *sources)}
    for name, value in values.items():
        part, dot, key = name.partition(".")
        if part not in arguments:
            raise ConfigError(f"{name}={value}: unknown part {part!r}; expected one of {', '.join((*sources, ALL))}")
        if dot:
            arguments[part][key] = value
    return {part: (evaluate(source, arguments[ALL] | arguments[part]), source) for part, source in sources.items()}
