"""`spen sweep`: search for hyperparameters."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from spen_plugins.cli.common import report_errors


class Pruner(StrEnum):
    """Pruner of trials with low scores."""

    median = "median"
    hyperband = "hyperband"
    none = "none"


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
Trials = Annotated[int, typer.Option(min=1, show_default=False, help="Number of trials, including earlier calls.")]
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
Prune = Annotated[Pruner, typer.Option(help="Pruner of trials with low validation scores.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the search; a trial's own is the config's argument.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps (default: the best available).")]


@report_errors
def sweep(
    config: Config,
    space: Space,
    arguments: Arguments = None,
    *,
    trials: Trials,
    storage: Storage = None,
    name: Name = None,
    out: Out = None,
    pruner: Prune = Pruner.median,
    seed: Seed = 0,
    device: Device = None,
) -> None:
    """Search for hyperparameters by the validation score.

    The same command resumes a stopped or killed search; several processes share the work.
    """
    from spen_plugins.config.evaluation import parse_arguments

    fixed = parse_arguments(arguments or [])
    folder = out or Path("runs") / f"sweep-{config.stem}-{space.stem}"
    from spen_plugins.runs.many.sweep import Sweep
    from spen_plugins.runs.many.sweep import sweep as run

    run(
        Sweep(config, space, fixed, trials, folder, storage, name, pruner.value, seed, device),
        typer.echo,
    )
