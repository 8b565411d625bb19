"""Export of a run as a small folder for prediction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from spen_plugins.errors import ConfigError, RunError
from spen_plugins.files import save_json
from spen_plugins.runs.folder import encoders
from spen_plugins.runs.folder.folder import RunFolder

if TYPE_CHECKING:
    from spen_plugins.config.experiment import Experiment
    from spen_plugins.runs.predict.predictor import Predictor

PREDICTING = ("seed", "task", "features", "inference_net")
"""Config keys needed for prediction without an energy."""


def save(predictor: Predictor, path: str | Path, energy: bool = True, half: bool = False, apart: bool = False) -> None:
    """Write config, facts, scores and weights, without history and training state.

    Args:
        predictor: the run's predictor.
        path: an empty or new folder.
        energy: if true, the energy is kept; otherwise only the parts that predict.
        half: if true, weights are written as 16-bit floats, which halves the folder and rounds the weights; a tensor
            with a number beyond 65504 is not converted.
        apart: if true, pretrained encoders are stored in the folder `../../encoders` and their tokenisers in
            `../../assets`, once for several runs with equal ones; with `half`, embeddings have 8 bits.

    Raises:
        ConfigError: the folder is not empty or can't be created, or `energy` is false and the run predicts with its
            energy.
        RunError: the disk is full or read-only, for example.
    """
    model, experiment = predictor.model, predictor.experiment
    config, nets = experiment.table(), {"inference_net": predictor.own_net}
    if energy:
        energy_nets = {"energy": model.energy, "energy_loss": model.energy_loss}
        nets |= {name: net for name, net in energy_nets.items() if net is not None}
    elif predictor.own_net.uses_energy:
        raise ConfigError("energy=False: this run predicts with its energy; expected energy=True")
    else:
        config = {key: config[key] for key in PREDICTING if key in config}
        config["trainer"] = make_untrained(experiment)
    folder = RunFolder.create(Path(path), config, "an empty or new folder")
    for name, value in predictor.records.items():
        folder.write(name, value)
    # On one line: a line for each word would double the file.
    save_json(predictor.task.facts(), folder.path / "vocabulary.json", indent=None)
    modules = torch.nn.ModuleDict(nets)
    try:
        encoders.save_assets(modules, folder.path)
        if apart:
            encoders.share_assets(folder.path)
    except OSError as error:
        raise RunError(f"{folder.assets} can't be written: {error.strerror or error}") from error
    folder.save_weights(modules, torch.float16 if half else None, apart)


def make_untrained(experiment: Experiment) -> dict[str, Any]:
    """The trainer's table for a run that is not trained again; it holds the batch sizes."""
    sizes = experiment.trainer.config.model_dump(include={"batch_size", "evaluation_batch_size"}, exclude_none=True)
    return {"type": "cross_entropy", **sizes}
