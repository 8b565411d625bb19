"""SEAL's and the core's energies against their equations written out."""

from __future__ import annotations

import itertools

import pytest
import torch

from spen_plugins.builtin.energies.basic import LinearChain, Local
from spen_plugins.errors import ConfigError
from spen_plugins.testing import ToyFeatures, ToyLabels, ToyTags
from spen_seal.labels import Labels
from spen_seal.self_attention import SelfAttention, positions
from tests.seal.toys import make, toy


def test_local_energy_is_a_sum_of_scores():
    task, batch = toy("tags")
    energy = make(Local, task)
    y = task.space.relax(torch.randn(4, 3, *batch.gold.shape[2:], dtype=torch.float64), batch.x.mask)
    scores = energy.local(energy.features(batch.x))
    for b, s in itertools.product(range(4), range(3)):
        expected = -sum((y[b, s, t] * scores[b, t]).sum() for t in range(int(batch.x.mask[b].sum())))
        torch.testing.assert_close(energy.at(batch.x)(y)[b, s], expected)


def test_label_energy_is_eq_2():
    task, batch = toy("labels")
    energy = make(Labels, task, hidden=3)
    y = torch.rand(4, 5, 4, dtype=torch.float64)
    features = energy.features(batch.x)
    for b, s in itertools.product(range(4), range(5)):
        local = sum(y[b, s, i] * (energy.local.weight[i] @ features[b]) for i in range(4))
        measured = torch.log1p(torch.exp(energy.measure.weight @ y[b, s] + energy.measure.bias))
        torch.testing.assert_close(energy.at(batch.x)(y)[b, s], -local - energy.v @ measured)


def test_label_energy_starts_with_the_released_spread():
    energy = Labels(Labels.Config(hidden=20_000), ToyLabels(), ToyFeatures(ToyLabels()))
    assert energy.v.std().item() == pytest.approx((2 / 20_000) ** 0.5, rel=0.03)


def test_linear_chain_is_a_walk_over_tokens():
    task, batch = toy("tags")
    energy = make(LinearChain, task)
    with torch.no_grad():
        for parameter in (energy.pairs, energy.start, energy.end):
            parameter.normal_()
    gold = batch.gold[:, 0].argmax(-1)
    scores = energy.local(energy.features(batch.x))
    for b in range(4):
        length = int(batch.x.mask[b].sum())
        tags = gold[b, :length].tolist()
        expected = energy.start[tags[0]] + energy.end[tags[-1]]
        expected = expected + sum(scores[b, t, tag] for t, tag in enumerate(tags))
        expected = expected + sum(energy.pairs[a, b] for a, b in itertools.pairwise(tags))
        torch.testing.assert_close(energy.at(batch.x)(batch.gold)[b, 0], -expected)


@pytest.mark.parametrize("heads", [1, 2])
def test_self_attention_is_attention_through_queries_keys_and_values(heads):
    """The energy multiplies the weights first; here, the vectors are computed one by one."""
    task, batch = toy("tags", 3)
    energy = make(SelfAttention, task, dim=6, heads=heads, local=False)
    y = task.space.relax(torch.randn(3, 2, *batch.gold.shape[2:], dtype=torch.float64), batch.x.mask)
    energies, size = energy.at(batch.x)(y), 6 // heads
    table = positions(y.shape[2], y.shape[3], y)
    for b, s in itertools.product(range(3), range(2)):
        length = int(batch.x.mask[b].sum())
        query, key, value = (
            (y[b, s, :length] + table[:length]).matmul(energy.attend.weight.T).add(energy.attend.bias).chunk(3, -1)
        )
        out = []
        for h in range(heads):
            part = slice(h * size, (h + 1) * size)
            weights = torch.softmax(query[:, part] @ key[:, part].T / size**0.5, -1)
            out.append(weights @ value[:, part])
        projected = energy.back(torch.cat(out, -1))
        torch.testing.assert_close(energies[b, s], -projected.max(-1).values.sum())


def test_attention_dropout_keeps_the_expectation():
    task, batch = toy("tags", 2)
    energy = make(SelfAttention, task, dim=4, dropout=0.5, local=False)
    y = task.space.relax(torch.randn(2, 1, *batch.gold.shape[2:], dtype=torch.float64), batch.x.mask)
    expected = energy.compute_attention(y, batch.x.mask)
    energy.train()
    mean = torch.stack([energy.compute_attention(y, batch.x.mask) for _ in range(1500)]).mean(0)
    torch.testing.assert_close(mean, expected, atol=0.05, rtol=0)


def test_positions_are_sines_and_cosines_of_growing_wavelength():
    table = positions(7, 5, torch.zeros((), dtype=torch.float64))
    t = torch.arange(7, dtype=torch.float64)
    torch.testing.assert_close(table[:, 0], t.sin())
    torch.testing.assert_close(table[:, 1], (t / 10_000).sin())
    torch.testing.assert_close(table[:, 2], t.cos())
    assert not table[:, 4].any()
    assert positions(3, 1, table).shape == (3, 1)


@pytest.mark.parametrize(("cls", "task"), [(Labels, ToyTags), (SelfAttention, ToyLabels), (LinearChain, ToyLabels)])
def test_the_wrong_kind_of_output_is_rejected(cls, task):
    with pytest.raises(ConfigError, match=r"core\.local"):
        make(cls, task())


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match=r"heads \(3\) must divide dim \(4\)"):
        SelfAttention.Config(dim=4, heads=3)
