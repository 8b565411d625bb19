"""Shared parts: an energy that is a table of numbers, a loop that writes into a folder."""

from __future__ import annotations

from pathlib import Path

import torch

import spen_plugins as sp
from spen_plugins.builtin.energies.basic import LinearChain
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.loop.loop import Loop
from tests.e2e.toys import make
from tests.loop.test_loop import make_loop


class Linear(sp.Energy):
    """E(y) = Σ c·y with free numbers c for each example, so that the best y is obvious."""

    def __init__(self, task: sp.Task, like: torch.Tensor) -> None:
        super().__init__(sp.Config(), task)
        self.c = torch.nn.Parameter(torch.randn(like.shape[0], *like.shape[2:], dtype=torch.float64))

    def forward(self, features: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (y * self.c.unsqueeze(1)).flatten(2).sum(-1)


def model_for(task: sp.Task, loss: sp.EnergyLoss, energy: sp.Energy | None = None) -> sp.Model:
    """An independent net, a linear chain and a loss."""
    return sp.Model(make(Independent, task), energy or make(LinearChain, task), loss)


def loop_for(model: sp.Model, task: sp.Task, trainer: sp.Trainer, folder: Path, **fields: object) -> Loop:
    """The loop over a trainer's stages, silent, on the CPU."""
    return make_loop(model, task, trainer.stages(model, task), folder, trainer.config, **fields)


def tagging_run(size: int, energy: dict, loss: str, /, **trainer: object) -> dict:
    """The table of a run with a cost net on the sample's parts of speech."""
    return {
        "task": {"type": "tagging", "corpus": "pos"},
        "features": {"type": "bilstm", "word_dim": size, "hidden": size, "layers": 1, "affix_dim": 0},
        "inference_net": {"type": "independent"},
        "energy": energy,
        "energy_loss": {"type": loss},
        "trainer": {"type": "infnet.joint", **trainer},
    }
