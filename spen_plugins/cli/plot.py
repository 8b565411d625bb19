"""The core's figures of finished runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from spen_plugins.errors import ConfigError
from spen_plugins.figures.options import Out, Run, Runs, group_of, groups_of, save_figure

Seeds = Annotated[
    str, typer.Argument(metavar="RUN", show_default=False, help="A run folder, or a folder with one run per seed.")
]
Alone = Annotated[
    list[str] | None,
    typer.Argument(metavar="ENERGY_ALONE", show_default=False, help="Runs of energies trained alone."),
]
Labels = Annotated[
    list[str],
    typer.Option(metavar="I,K", show_default=False, help="Two labels, by name or number; may be given several times."),
]
Others = Annotated[str, typer.Option(help="The value of all other labels, 0 to 1, or 'gold': the example's.")]
Example = Annotated[int, typer.Option(min=0, help="Validation example, for plots that need one.")]
ScoreOnly = Annotated[bool, typer.Option("--score-only", help="Only the validation score, without losses and norms.")]
Score = Annotated[str | None, typer.Option(help="Score to plot (default: the selection score).")]
Shown = Annotated[
    int, typer.Option("--labels", min=2, help="Number of labels or tags, the most frequent of the training part.")
]
Examples = Annotated[int, typer.Option(min=1, help="Number of validation examples, the first ones.")]
Images = Annotated[int, typer.Option(min=1, help="Number of images, the first ones of the test part.")]
Trajectories = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="Output of `spen evaluate --trajectory --out FILE`; label=file names one.",
    ),
]


class At(StrEnum):
    """Outputs at which an energy is differentiated."""

    output = "output"
    gold = "gold"


Where = Annotated[At, typer.Option(help="Where the energy is differentiated: at the net's relaxed output, or at gold.")]


def training(runs: Runs, score_only: ScoreOnly = False, out: Out = None) -> None:
    """Validation score, losses and gradient norms over epochs."""
    from spen_plugins.research.training_plots import training_figure

    groups = groups_of(runs)
    save_figure(training_figure(groups, score_only), groups[0], "training", out)


def gradients(run: Run, labels: Labels, others: Others = "0", example: Example = 0, out: Out = None) -> None:
    """The energy's gradient for label k as a function of label i, next to cross entropy's."""
    from spen_plugins.research.label_plots import couplings, gradients_figure

    group = group_of(run)
    save_figure(
        gradients_figure(couplings(group.runs[0], group.label, labels, others, example)), group, "gradients", out
    )


def hessian(run: Run, labels: Shown = 40, at: Where = At.output, examples: Examples = 50, out: Out = None) -> None:
    """What the energy has learned about pairs: −∂²E/∂y∂y of labels or neighbouring tags, next to counts."""
    from spen_plugins.research.hessian import learned_pairs
    from spen_plugins.research.hessian_plots import hessian_figure

    group = group_of(run)
    found = learned_pairs(group.runs[0], group.label, labels, at.value, examples)
    typer.echo(found.summary())
    save_figure(hessian_figure(found), group, "hessian", out)


def gbi(run: Seeds, alone: Alone = None, out: Out = None) -> None:
    """Scores of gradient-based inference while the energy trains; needs runs with trainer.probe."""
    from spen_plugins.research.gbi_plots import gbi_figure

    group, *others = groups_of([run, *(alone or [])])
    save_figure(gbi_figure(group, others), group, "gbi", out)


def game(runs: Runs, out: Out = None) -> None:
    """Losses after the nets' steps and gradient norms in joint training; needs runs of infnet.joint."""
    from spen_plugins.research.game_plots import game_figure

    groups = groups_of(runs)
    save_figure(game_figure(groups), groups[0], "game", out)


def denoise(runs: Runs, images: Images = 3, out: Out = None) -> None:
    """Test images: clean, noisy and denoised by each run, with their PSNR."""
    from spen_plugins.research.image_plots import denoised, denoising_figure

    groups = groups_of(runs)
    save_figure(denoising_figure(denoised(groups, images)), groups[0], "denoise", out)


def masks(runs: Runs, images: Images = 4, out: Out = None) -> None:
    """Test images: image, gold mask, and the mask predicted by each run, with its IoU."""
    from spen_plugins.research.mask_plots import masked, masks_figure

    groups = groups_of(runs)
    save_figure(masks_figure(masked(groups, images)), groups[0], "masks", out)


def trajectory(files: Trajectories, score: Score = None, out: Out = None) -> None:
    """Energy and score after each step of gradient-based inference."""
    from spen_plugins.figures.kit import save
    from spen_plugins.research.gbi_plots import read_trajectory, trajectory_figure

    named = dict(map(_labelled, files))
    if len(named) < len(files):
        raise ConfigError("two files have the same label; give each its own: label=file")
    figure = trajectory_figure({label: read_trajectory(path) for label, path in named.items()}, score)
    for path in save(figure, out or next(iter(named.values())).with_suffix("")):
        typer.echo(str(path))


def _labelled(word: str) -> tuple[str, Path]:
    """Label and file of an argument; the label defaults to the file's name."""
    label, _, rest = ("", "", word) if Path(word).is_file() else word.rpartition("=")
    path = Path(rest)
    if not path.is_file():
        raise ConfigError(
            f"there is no file {path}; expected what spen evaluate RUN FILE --trajectory --out FILE wrote"
        )
    return label or path.stem, path
