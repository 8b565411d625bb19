"""Parts that these tests share: small batches, and components in float64 over them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import spen_plugins as sp
from spen_plugins.errors import Interrupted
from spen_plugins.runs.train.runner import resume
from spen_plugins.testing import ToyFeatures, ToyLabels, ToyTags
from spen_plugins.testing.comparing import collate
from tests.loaded import QUIET


class Table(sp.Energy):
    """Any energy over the discrete outputs of a small label space: a free number for each example and label set."""

    def __init__(self, task, examples: int) -> None:
        super().__init__(sp.Config(), task)
        self.table = torch.nn.Parameter(torch.randn(examples, 2 ** len(task.space.labels), dtype=torch.float64))

    def forward(self, features, y):
        number = (y @ (2.0 ** torch.arange(y.shape[-1], dtype=y.dtype))).long()
        return self.table.gather(1, number)


def batch_of(task, n: int = 4) -> sp.Batch:
    return collate(task, task.part("train")[:n])


def toy(name: str, n: int = 4):
    """A toy task and a batch of its examples."""
    task = {"labels": ToyLabels, "tags": ToyTags}[name]()
    return task, batch_of(task, n)


def make(cls, task, **fields):
    """A component in float64, on toy features if it uses any, ready to evaluate."""
    features = ToyFeatures(task) if cls.uses_features else None
    return cls(cls.Config(**fields), task, features).double().eval()


def proposal_for(task, batch, scale: float = 1.0) -> sp.Proposal:
    """A net's output with a gradient to its logits."""
    logits = (torch.randn(len(batch), 1, *batch.gold.shape[2:], dtype=torch.float64) * scale).requires_grad_()
    return task.space.independent(logits, batch.x.mask)


def check_stopped_and_resumed(train: Callable[[Path], Path], reference: Path, folder: Path, stop_after: int) -> None:
    """A run stopped after some batches and resumed ends like the uninterrupted `reference`, to the bit."""
    batches = itertools.count(1)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr("spen_plugins.loop.processes.Requests.read", lambda _: [float(next(batches) == stop_after), 0.0])
        train(folder)
    resume(folder, QUIET)
    assert (folder / "history.jsonl").read_text() == (reference / "history.jsonl").read_text()
    weights, expected = sp.RunFolder(folder).weights(), sp.RunFolder(reference).weights()
    assert all(torch.equal(weights[name], expected[name]) for name in weights)
