"""`spen decode`: finished runs with another decoder, or their mean, as a new run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from spen_plugins.cli.common import say_all
from spen_plugins.cli.runs import Device, Refine, showing_progress
from spen_plugins.errors import ConfigError
from spen_plugins.runs.options import RunOptions

Finished = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN...",
        help="A finished run of label sets or spans; of any task with --refine. With --mean: several runs, or "
        "folders of runs, of any task.",
        show_default=False,
    ),
]
New = Annotated[Path, typer.Argument(help="The new run folder.", show_default=False)]
By = Annotated[
    Literal["threshold", "viterbi", "expected_f1", "validation"],
    typer.Option(
        "--by",
        help="task.decode: threshold for labels, viterbi for spans; expected_f1; validation (the better of the two).",
    ),
]
Threshold = Annotated[str, typer.Option(help="task.threshold: a number, or validation.")]
Temperature = Annotated[
    str,
    typer.Option(
        help="task.decode_temperature of label sets' expected F1: a number, 0 for the most probable set, or validation."
    ),
]
Selection = Annotated[
    str | None,
    typer.Option(
        help="task.selection of label sets, the score that chooses the decoder: example_f1, micro_f1, macro_f1 or "
        "accuracy (whole sets). Default: the run's.",
        show_default=False,
    ),
]
Nonempty = Annotated[
    bool | None,
    typer.Option(
        "--nonempty/--may-be-empty",
        help="task.nonempty of label sets: predict the most probable label in place of none. Default: the run's.",
        show_default=False,
    ),
]
AsMean = Annotated[
    bool, typer.Option("--mean", help="Average the probabilities of all runs, as methods=… or seeds=… wrote them.")
]
Choose = Annotated[
    bool,
    typer.Option(
        "--choose", help="With --mean: average only the runs whose mean scores best on validation (chosen greedily)."
    ),
]


def decode(
    runs: Finished,
    out: New,
    by: By = "validation",
    threshold: Threshold = "validation",
    temperature: Temperature = "validation",
    selection: Selection = None,
    nonempty: Nonempty = None,
    refine: Refine = None,
    mean: AsMean = False,
    choose: Choose = False,
    device: Device = "cpu",
) -> None:
    """Re-decode a finished run, or the mean of several, into a new run folder with its scores.

    The decoder is fitted to the validation part.

    Example: spen decode runs/a runs/b runs/mean --mean
    """
    from spen_plugins.config.evaluation import parse_value
    from spen_plugins.runs.train.decoding import decode as decode_run
    from spen_plugins.runs.train.decoding import decode_by_energy

    if choose and not mean:
        raise ConfigError("--choose requires --mean; add --mean, or omit --choose")
    if refine is not None and mean:
        raise ConfigError("--refine decides by an energy, which a mean of runs lacks; omit --refine or --mean")
    if len(runs) > 1 and not mean:
        raise ConfigError(f"found {len(runs)} runs and OUT; expected one run, or --mean for the mean of all")
    run = runs[0]
    if refine is not None:
        if (by, threshold, temperature, selection, nonempty) != ("validation", "validation", "validation", None, None):
            raise ConfigError(
                "--refine decides by the energy; omit --by, --threshold, --temperature, --selection and --nonempty"
            )
        with showing_progress():
            decode_by_energy(run, out, parse_value(refine), RunOptions(device))
        return
    settings = {"decode": by, "threshold": parse_value(threshold), "decode_temperature": parse_value(temperature)}
    overrides = {"selection": selection, "nonempty": nonempty}
    settings |= {name: value for name, value in overrides.items() if value is not None}
    if mean:
        from spen_plugins.runs.many.means import average_folders

        with showing_progress():
            say_all(average_folders(runs, out, settings, choose, RunOptions(device)))
    else:
        with showing_progress():
            decode_run(run, out, settings, RunOptions(device))
