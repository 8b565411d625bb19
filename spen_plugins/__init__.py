"""Structured prediction energy networks: train and use energies that score whole outputs.

    import spen_plugins as sp

    sp.load("runs/mine").predict([...])

Names are imported at first use, so importing this package costs neither torch nor transformers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pluggy

__version__ = "0.1.0"

hookimpl = pluggy.HookimplMarker("spen_plugins")
"""Marks a plugin's hook implementations."""

_WHERE = {
    "Config": "config.config",
    "SparseLabels": "spaces",
    "LabelSet": "spaces",
    "OutputSpace": "spaces",
    "Proposal": "spaces",
    "TagSequence": "spaces",
    "Batch": "batch",
    "X": "batch",
    "Metric": "task",
    "Task": "task",
    "TextInputs": "task",
    "VectorInputs": "task",
    "WordInputs": "task",
    "BoundEnergy": "energy",
    "Energy": "energy",
    "CostNet": "inference_net",
    "InferenceNet": "inference_net",
    "EnergyLoss": "energy_loss",
    "Terms": "energy_loss",
    "FeatureNetwork": "features",
    "Model": "model",
    "Phase": "trainer",
    "PlateauConfig": "player",
    "Player": "player",
    "Schedule": "player",
    "Stage": "trainer",
    "Trainer": "trainer",
    "TrainerConfig": "trainer",
    "Registry": "registry",
    "load": "runs.predictor",
}

__all__ = ["__version__", "hookimpl", *sorted(_WHERE)]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'spen_plugins' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"spen_plugins.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:
    from spen_plugins.batch import Batch, X
    from spen_plugins.config.config import Config
    from spen_plugins.energy import BoundEnergy, Energy
    from spen_plugins.energy_loss import EnergyLoss, Terms
    from spen_plugins.features import FeatureNetwork
    from spen_plugins.inference_net import CostNet, InferenceNet
    from spen_plugins.model import Model
    from spen_plugins.player import PlateauConfig, Player, Schedule
    from spen_plugins.registry import Registry
    from spen_plugins.runs.predictor import load
    from spen_plugins.spaces import LabelSet, OutputSpace, Proposal, SparseLabels, TagSequence
    from spen_plugins.task import Metric, Task, TextInputs, VectorInputs, WordInputs
    from spen_plugins.trainer import Phase, Stage, Trainer, TrainerConfig
