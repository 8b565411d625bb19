"""A run as a small folder that predicts as the run does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from spen_plugins.errors import ConfigError, RunError
from spen_plugins.features import FeatureNetwork
from spen_plugins.runs.folder import RunFolder

if TYPE_CHECKING:
    from spen_plugins.runs.predictor import Predictor

PREDICTING = ("seed", "task", "features", "inference_net")
"""Keys of a config that prediction without an energy needs."""


def save(predictor: Predictor, path: str | Path, energy: bool = True, half: bool = False) -> None:
    """Write config, facts, scores and weights, without history and training state.

    Args:
        predictor: of the run.
        path: an empty folder, or one to be made.
        energy: whether the energy is kept, or only what predicts.
        half: whether weights are written as 16-bit floats, which halves the folder and rounds the weights; a tensor
            with a number beyond 65504 stays as it is.

    Raises:
        ConfigError: there is something in the folder, it can't be made, or the run predicts with its energy and was
            to lose it.
        RunError: the disk says no.
    """
    model, experiment = predictor.model, predictor.experiment
    config, nets = experiment.table(), {"inference_net": predictor.own_net}
    if energy:
        kept = {"energy": model.energy, "energy_loss": model.energy_loss}
        nets |= {name: net for name, net in kept.items() if net is not None}
    elif predictor.own_net.uses_energy:
        raise ConfigError("energy=False: this run predicts with its energy; keep it")
    else:
        config = {key: config[key] for key in PREDICTING if key in config}
        config["trainer"] = {"type": "cross_entropy", "batch_size": experiment.trainer.config.batch_size}
    folder = RunFolder.create(Path(path), config, "an empty folder, or a name that is free")
    for name, value in {**predictor.records, "vocabulary.json": predictor.task.facts()}.items():
        folder.write(name, value)
    together = torch.nn.ModuleDict(nets)
    try:
        for part in together.modules():
            if isinstance(part, FeatureNetwork):
                part.save_assets(folder.assets)
    except OSError as error:
        raise RunError(f"{folder.assets} can't be written: {error.strerror or error}") from error
    folder.save_weights(together, torch.float16 if half else None)
