"""Shared by these tests: small batches of every kind of output, and nets and energies in float64 over them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

import spen_plugins as sp
from spen_e2e.images import DeepPrior, Input
from spen_e2e.unrolled import Unrolled
from spen_plugins.builtin.energies.basic import LinearChain
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.errors import Interrupted
from spen_plugins.loop.loop import Loop
from spen_plugins.testing import ToyFeatures, ToyLabels, ToyTags
from spen_plugins.testing.comparing import collate, pick_by_length
from spen_seal.labels import Labels

KINDS = ("labels", "tags", "images")


class Curved(sp.Energy):
    """A small net on y of the tags of each token, whose curvature is not constant."""

    def __init__(self, task: sp.Task) -> None:
        super().__init__(sp.Config(), task)
        self.inner = nn.Linear(task.space.shape[-1], 3)
        self.outer = nn.Linear(3, 1, bias=False)

    def forward(self, features: Tensor | None, y: Tensor) -> Tensor:
        values = self.outer(nn.functional.softplus(3 * self.inner(y)))[..., 0]
        return (values if features is None else values * features.unsqueeze(1)).sum(-1)


class Both(sp.Energy):
    """The sum of two energies."""

    def __init__(self, task: sp.Task, *terms: sp.Energy) -> None:
        super().__init__(sp.Config(), task)
        self.terms = nn.ModuleList(terms)

    def encode(self, x: sp.X) -> list:
        return [term.encode(x) for term in self.terms]

    def forward(self, features: list, y: Tensor) -> Tensor:
        return sum(term(encoded, y) for term, encoded in zip(self.terms, features, strict=True))


class Bad(sp.Energy):
    """Attention, whose kernel has no second derivative."""

    def forward(self, features: Tensor | None, y: Tensor) -> Tensor:
        q = y.flatten(2).unsqueeze(-1)
        return nn.functional.scaled_dot_product_attention(q, q, q).flatten(2).sum(-1)


def images(sizes: tuple[tuple[int, int], ...] = ((6, 7), (5, 4)), batch_size: int = 2) -> tuple[sp.Task, sp.Batch]:
    """A task of images, as far as a net needs it, and a batch of images of two sizes, in float64."""
    task = SimpleNamespace(space=sp.RealGrid(std=0.5), inputs=sp.ImageInputs())
    rows, columns = (max(size) for size in zip(*sizes, strict=True))
    mask = torch.zeros(batch_size, rows, columns, dtype=torch.bool)
    for i in range(batch_size):
        height, width = sizes[i % len(sizes)]
        mask[i, :height, :width] = True
    gold = torch.rand(batch_size, 1, rows, columns, dtype=torch.float64) * mask.unsqueeze(1)
    image = (gold[:, 0] + 0.1 * torch.randn(batch_size, rows, columns, dtype=torch.float64)) * mask
    x = sp.X({"image": image}, mask, batch_size)
    return task, sp.Batch(x, torch.arange(batch_size), gold, torch.ones(batch_size, dtype=torch.bool))


def toy(kind: str, n: int = 3) -> tuple[sp.Task, sp.Batch]:
    """A toy task and a batch of its examples."""
    if kind == "images":
        return images(batch_size=n)
    task = {"labels": ToyLabels, "tags": ToyTags}[kind]()
    return task, collate(task, pick_by_length(task, n))


def make(cls: type, task: sp.Task, **fields: object) -> nn.Module:
    """A component on toy features, if it uses any."""
    return cls(cls.Config(**fields), task, ToyFeatures(task) if cls.uses_features else None)


def energy_for(task: sp.Task) -> sp.Energy:
    """A global energy of the task's outputs with parameters large enough to matter."""
    if isinstance(task.space, sp.LabelSet):
        energy = make(Labels, task, hidden=5)
    elif isinstance(task.space, sp.TagSequence):
        energy = Both(task, make(LinearChain, task), Curved(task))
    else:
        return make(DeepPrior, task, filters=2, size=3, weight=0.5).double().eval()
    for value in energy.parameters():
        value.data.mul_(2)
    return energy.double().eval()


def net_for(task: sp.Task, **fields: object) -> Unrolled:
    """The unrolled net over the net at the start that fits the task."""
    start = make(Independent if task.space.discrete else Input, task)
    fields = {"steps": 3, "lr": 0.5, **fields}
    return Unrolled(Unrolled.Config(**fields), task, net=start).double().eval()


def check_slope(loss: Callable[[], Tensor], parameters: Sequence[nn.Parameter]) -> None:
    """The gradient in all parameters at once, along two random directions, against central differences."""
    gradients = torch.autograd.grad(loss(), parameters, materialize_grads=True)
    for _ in range(2):
        directions = [torch.randn_like(p) for p in parameters]
        values = []
        for sign in (1, -1):
            originals = [p.data for p in parameters]
            for p, direction in zip(parameters, directions, strict=True):
                p.data = p.data + sign * 1e-6 * direction
            values.append(float(loss().detach()))
            for p, original in zip(parameters, originals, strict=True):
                p.data = original
        slope = sum(float((g * direction).sum()) for g, direction in zip(gradients, directions, strict=True))
        assert slope == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-5, abs=1e-6)


def resumes_exactly(loop_in: Callable[..., Loop], folder: Path, stages: Sequence[str], stops: Sequence[int]) -> None:
    """A run stopped after some batches and resumed ends with the same history and weights as an uninterrupted run."""
    reference = loop_in(folder / "whole")
    reference.run()
    assert [record["stage"] for record in reference.folder.history()] == list(stages)
    for stop_after in stops:
        count = itertools.count(1)
        stopped = folder / f"stopped-{stop_after}"
        with pytest.raises(Interrupted):
            loop_in(stopped, stop=lambda c=count, n=stop_after: next(c) == n).run()
        resumed = loop_in(stopped)
        resumed.run(resume=True)
        assert resumed.folder.history() == reference.folder.history()
        for name, value in reference.model.state_dict().items():
            assert torch.equal(value, resumed.model.state_dict()[name]), name
