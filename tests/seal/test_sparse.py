"""Samples as bags against the dense tensors they represent: energies, losses, gradients, and supported components."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

import spen_plugins as sp
from spen_plugins.builtin.energies.basic import LinearChain, Local
from spen_plugins.errors import ConfigError
from spen_plugins.nn import MANY_LABELS, LazyScores
from spen_plugins.spaces import IndependentLabels
from spen_plugins.testing import ToyFeatures, ToyLabels
from spen_seal import contrast
from spen_seal.contrast import Nce, Ranking
from spen_seal.labels import Labels
from tests.seal.toys import Table, batch_of, make, proposal_for, toy

ENERGIES = [(Local, {}), (Labels, {"hidden": 3})]


@pytest.fixture(params=["few", "many"])
def labels(request, monkeypatch) -> int:
    """Seven labels, once treated as very many: rows of b_i on demand, and M stored label by label."""
    if request.param == "many":
        for module in ("spen_plugins.nn.local", "spen_seal.labels"):
            monkeypatch.setattr(f"{module}.MANY_LABELS", 1)
    return 7


class FixedSamples(IndependentLabels):
    """A proposal with fixed samples, as bags or dense."""

    bags: sp.SparseLabels

    sparse = True

    def sample(self, n):
        return self.bags.dense(self.logits.dtype)

    def sample_sparse(self, n):
        return self.bags


def make_fixed_proposal(task, batch, n: int) -> sp.Proposal:
    logits = proposal_for(task, batch).logits
    proposal = FixedSamples(task.space, logits)
    object.__setattr__(proposal, "bags", task.space.independent(logits).sample_sparse(n))
    return proposal


@pytest.mark.parametrize(("cls", "fields"), ENERGIES)
def test_energy_of_bags_is_that_of_the_dense_outputs(cls, fields, labels):
    task = ToyLabels(labels=labels)
    batch = batch_of(task, 3)
    energy = make(cls, task, **fields)
    dense = task.space.independent(proposal_for(task, batch).logits).sample(5)
    dense[0, 1], dense[1, 2] = 0, 1
    bags = sp.SparseLabels.from_dense(dense)
    values, expected = energy.at(batch.x)(bags), energy.at(batch.x)(dense)
    torch.testing.assert_close(values, expected)
    parameters = list(energy.parameters())
    weights = torch.randn_like(expected)
    for a, b in zip(
        torch.autograd.grad((values * weights).sum(), parameters),
        torch.autograd.grad((expected * weights).sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(("cls", "fields"), ENERGIES)
def test_gradients_of_bags(cls, fields, labels):
    task = ToyLabels(labels=labels)
    batch = batch_of(task, 2)
    energy = make(cls, task, **fields)
    bags = task.space.independent(proposal_for(task, batch).logits).sample_sparse(3)
    parameters = list(energy.parameters())

    def value(*_):
        return energy.at(batch.x)(bags)

    assert torch.autograd.gradcheck(value, parameters, fast_mode=True)
    assert torch.autograd.gradgradcheck(value, parameters, fast_mode=True)


@pytest.mark.parametrize("cls", [Nce, Ranking])
def test_losses_and_their_gradients_match_the_dense_path(cls, labels):
    task = ToyLabels(labels=labels)
    batch = batch_of(task, 3)
    energy, proposal = make(Labels, task, hidden=4), make_fixed_proposal(task, batch, 6)
    parameters = list(energy.parameters())
    values, gradients = [], []
    for form in ("dense", "sparse"):
        value = make(cls, task, samples=6, sampling=form)(energy.at(batch.x), batch, proposal)
        values.append(value)
        gradients.append(torch.autograd.grad(value.sum(), parameters))
    torch.testing.assert_close(values[1], values[0])
    for name, a, b in zip(dict(energy.named_parameters()), *gradients, strict=True):
        torch.testing.assert_close(b, a, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("labels", [1, 2])
def test_small_sparse_losses_have_the_mean_of_dense_ones(batch_size, labels):
    task = ToyLabels(labels=labels)
    batch = batch_of(task, batch_size)
    energy, proposal = make(Labels, task, hidden=2), proposal_for(task, batch)
    with torch.no_grad():
        dense, sparse = (
            torch.stack(
                [make(Nce, task, samples=2, sampling=form)(energy.at(batch.x), batch, proposal) for _ in range(800)]
            )
            for form in ("dense", "sparse")
        )
    error = ((dense.var(0) + sparse.var(0)) / 800).sqrt() + 1e-12
    assert ((dense.mean(0) - sparse.mean(0)).abs() < 4 * error).all()


def test_candidates_are_gold_and_then_samples():
    task, batch = toy("labels")
    proposal = make_fixed_proposal(task, batch, 3)
    bags = contrast.draw_sparse_candidates(batch.gold, proposal, 3)
    assert torch.equal(bags.dense(), torch.cat([batch.gold.float(), proposal.bags.dense()], 1))


def test_auto_is_sparse_only_where_it_pays():
    def is_sparse(labels: int, logit: float, n: int, energy=None) -> bool:
        task = ToyLabels(labels=labels)
        batch = batch_of(task, 2)
        energy = energy or make(Local, task)
        return contrast.use_sparse(
            "auto", energy.at(batch.x), task.space.independent(torch.full((2, 1, labels), logit)), n
        )

    assert is_sparse(1000, -5.0, 20)
    assert not is_sparse(159, -5.0, 20)  # the papers' small data sets keep their random numbers
    assert not is_sparse(1000, -5.0, 2)
    assert not is_sparse(1000, 0.0, 20)  # an untrained net predicts half of all labels
    assert not is_sparse(1000, -5.0, 20, energy=Dense(sp.Config(), ToyLabels(labels=1000)))


def test_auto_on_few_labels_draws_like_dense():
    task, batch = toy("labels")
    energy, proposal = make(Labels, task, hidden=3), proposal_for(task, batch)
    values = []
    for form in ("auto", "dense"):
        torch.manual_seed(5)
        values.append(make(Nce, task, sampling=form)(energy.at(batch.x), batch, proposal))
    assert torch.equal(*values)


class Dense(sp.Energy):
    """An energy of dense tensors only."""

    def __init__(self, config, task):
        super().__init__(config, task)
        self.scores = torch.nn.Parameter(torch.randn(len(task.space.labels)))

    def forward(self, features, y):
        return -(y * self.scores).sum(-1)


def test_an_energy_without_bags_receives_dense_outputs():
    task, batch = toy("labels")
    energy = Dense(sp.Config(), task).double()
    bags = task.space.independent(proposal_for(task, batch).logits).sample_sparse(3)
    torch.testing.assert_close(energy.at(batch.x)(bags), energy.at(batch.x)(bags.dense(torch.float64)))


def test_sparse_reports_its_requirements():
    task, batch = toy("labels")
    loss = make(Nce, task, sampling="sparse")
    with pytest.raises(ConfigError, match=r"Table has dense outputs only.*seal\.labels, core\.local"):
        loss(Table(task, 4).at(batch.x), batch, proposal_for(task, batch))
    tags, sentences = toy("tags")
    with pytest.raises(ConfigError, match="IndependentTags has dense outputs only"):
        make(Nce, tags, sampling="sparse")(
            make(LinearChain, tags).at(sentences.x), sentences, proposal_for(tags, sentences)
        )
    with pytest.raises(ValidationError, match='"sparse" requires sample "discrete"'):
        Nce.Config(sampling="sparse", sample="continuous")


def test_a_net_with_its_own_samples_gives_no_bags():
    class Own(IndependentLabels):
        sparse = False

    task, batch = toy("labels")
    logits = proposal_for(task, batch).logits
    assert task.space.independent(logits).sparse
    with pytest.raises(ConfigError, match="Own has dense outputs only"):
        contrast.use_sparse("sparse", make(Local, task).at(batch.x), Own(task.space, logits), 1)


def test_bags_of_another_shape_are_rejected():
    task, batch = toy("labels")
    energy = make(Labels, task, hidden=3)
    bags = sp.SparseLabels.from_dense(torch.ones(3, 2, 4))
    with pytest.raises(ValueError, match=r"\(3, 2, 4\)"):
        energy.at(batch.x)(bags)


def test_dropout_and_half_precision_act_as_on_dense_outputs():
    task = ToyLabels(labels=40)
    x = batch_of(task, 3).x
    x = sp.X({"vector": x.inputs["vector"].float()}, None, 3)

    class Dropped(ToyFeatures):
        def forward(self, x):
            return torch.nn.functional.dropout(super().forward(x), 0.5, self.training)

    energy = Labels(Labels.Config(hidden=8), task, Dropped(task))
    dense = (torch.rand(3, 5, 40) < 0.1).float()
    bound = energy.at(x)  # encodes once, so drops once
    torch.testing.assert_close(bound(sp.SparseLabels.from_dense(dense)), bound(dense))
    with torch.autocast("cpu", torch.bfloat16):
        bound = energy.at(x)
        values, expected = bound(sp.SparseLabels.from_dense(dense)), bound(dense)
    assert values.dtype == torch.float32
    torch.testing.assert_close(values, expected, atol=0.05, rtol=0.02)


def test_many_labels_train_and_load_like_few():
    """With M stored label by label, values, optimiser steps and stored states are the same."""
    task = ToyLabels(labels=MANY_LABELS)
    energy = Labels(Labels.Config(hidden=3), task, ToyFeatures(task)).double()
    assert energy.measure.weight.t().is_contiguous()
    copy = Labels(Labels.Config(hidden=3), task, ToyFeatures(task)).double()
    copy.measure.weight = torch.nn.Parameter(
        torch.empty(3, MANY_LABELS, dtype=torch.float64)
    )  # as an older run stores it
    copy.load_state_dict(energy.state_dict())
    batch = batch_of(task, 2)
    assert isinstance(energy.encode(batch.x), LazyScores)
    bags = task.space.independent(proposal_for(task, batch).logits - 4).sample_sparse(3)
    for y in (bags, bags.dense(torch.float64)):
        for model in (energy, copy):
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
            model.at(batch.x)(y).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.testing.assert_close(energy.measure.weight, copy.measure.weight)
        torch.testing.assert_close(energy.local.weight, copy.local.weight)
    energy.load_state_dict(copy.state_dict())
    assert energy.measure.weight.t().is_contiguous()
