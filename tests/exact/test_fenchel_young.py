"""The perturbed Fenchel-Young loss, and exact searches for outputs of least energy, by enumeration."""

from __future__ import annotations

import itertools
from unittest.mock import patch

import pytest
import torch

import spen_plugins as sp
from spen_exact.fenchel_young import FenchelYoung
from spen_plugins.builtin.energies.basic import LinearChain, Local
from spen_plugins.testing import ToyLabels, ToyTags
from spen_plugins.testing.comparing import collate
from spen_seal.labels import Labels
from tests.seal.toys import batch_of, make, proposal_for


def list_outputs(task: sp.Task, batch: sp.Batch) -> torch.Tensor:
    """All outputs of each example, `(batch, output, *variables)`; where sentences are shorter, some repeat."""
    if isinstance(task.space, sp.LabelSet):
        sets = itertools.product([0.0, 1.0], repeat=len(task.space.labels))
        return torch.tensor(list(sets), dtype=torch.float64).expand(len(batch), -1, -1)
    tags = itertools.product(range(len(task.space.tags)), repeat=batch.gold.shape[2])
    return task.space.one_hot(torch.tensor(list(tags)).expand(len(batch), -1, -1), batch.x.mask).double()


@pytest.fixture(params=[(ToyLabels, Local), (ToyTags, Local), (ToyTags, LinearChain)], ids=lambda p: p[1].__name__)
def case(request):
    """A task, a batch of two examples, an energy on it, and all outputs with their energies."""
    torch.manual_seed(0)
    toy, energy = request.param
    task = toy()
    batch = collate(task, sorted(task.part("train"), key=task.length)[:2])
    bound = make(energy, task).at(batch.x)
    outputs = list_outputs(task, batch)
    return task, batch, bound, outputs, bound(outputs)


def test_modes_have_the_least_shifted_energy(case):
    _, batch, bound, outputs, energies = case
    shift = torch.randn(2, 3, *batch.gold.shape[2:], dtype=torch.float64)
    modes = bound.modes(shift)
    lowest = (energies.unsqueeze(1) - torch.einsum("bs...,bo...->bso...", shift, outputs).flatten(3).sum(-1)).amin(2)
    torch.testing.assert_close(bound(modes) - (shift * modes).flatten(2).sum(-1), lowest)
    assert not modes.requires_grad and set(modes.unique().tolist()) <= {0.0, 1.0}


def test_the_loss_is_the_largest_shifted_score_above_that_of_gold(case):
    task, batch, bound, outputs, energies = case
    loss = make(FenchelYoung, task, samples=3, std=0.5)
    noise = torch.randn(2, 3, *batch.gold.shape[2:], dtype=torch.float64)
    with patch("torch.randn", lambda *_, **__: noise):
        losses = loss(bound, batch, proposal_for(task, batch))
    scores = 0.5 * torch.einsum("bs...,bo...->bso...", noise, outputs).flatten(3).sum(-1) - energies.unsqueeze(1)
    torch.testing.assert_close(losses, scores.amax(2).mean(1) + bound(batch.gold)[:, 0])
    assert FenchelYoung.Config().std == 1


def test_energies_without_an_exact_search_are_rejected():
    task = ToyLabels()
    batch = batch_of(task)
    with pytest.raises(sp.ConfigError, match="Labels has no exact search for the output of lowest energy"):
        make(FenchelYoung, task)(make(Labels, task, hidden=3).at(batch.x), batch, proposal_for(task, batch))
