"""SEAL's energy losses against closed forms and the papers' equations."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import partial

import pytest
import torch

import spen_plugins as sp
from spen_plugins.builtin.energies.basic import LinearChain
from spen_plugins.testing import ToyLabels
from spen_seal.contrast import Contrast, Nce, Ranking, ranking_loss
from spen_seal.labels import Labels
from spen_seal.margin import CompoundMargin, Margin
from spen_seal.regression import Regression, SampledRegression
from tests.seal.toys import Table, batch_of, make, proposal_for, toy

LOSSES = [
    (Margin, {}),
    (Margin, {"cost": "l1"}),
    (CompoundMargin, {}),
    (Regression, {}),
    (SampledRegression, {"samples": 3}),
    (SampledRegression, {"samples": 3, "sample": "discrete"}),
    (Nce, {"samples": 3}),
    (Nce, {"samples": 3, "sample": "continuous"}),
    (Ranking, {"samples": 3}),
]


def make_energy(task) -> sp.Energy:
    return make(Labels, task, hidden=3) if isinstance(task.space, sp.LabelSet) else make(LinearChain, task)


def sum_net_terms(loss, *args) -> torch.Tensor:
    """The net's loss, `(batch,)`."""
    return sum(loss.net_terms(*args).values())


def list_label_sets(n: int) -> torch.Tensor:
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=n)), dtype=torch.float64)


# NCE


def expected_nce(energy, noise, gold: int, k: int) -> float:
    """E over k draws from `noise` of −ln softmax(−E − ln P_N) at gold, by enumeration of all draws."""
    scores, total = -energy - noise.log(), 0.0
    for draw in itertools.product(range(len(noise)), repeat=k):
        probability = math.prod(noise[i].item() for i in draw)
        total += probability * (scores[[gold, *draw]].logsumexp(0) - scores[gold]).item()
    return total


@pytest.mark.parametrize("k", [1, 3])
def test_nce_on_two_labels_has_its_closed_form(k):
    task = ToyLabels(labels=2)
    batch = batch_of(task, 3)
    energy, proposal = Table(task, 3), proposal_for(task, batch)
    loss = make(Nce, task, samples=k)
    with torch.no_grad():
        losses = torch.stack([loss(energy.at(batch.x), batch, proposal) for _ in range(6000)])
    sets = torch.tensor([[0, 0], [1, 0], [0, 1], [1, 1]], dtype=torch.float64)  # in the table's order
    noise = proposal.log_prob(sets.expand(3, 4, 2)).exp().detach()
    for row in range(3):
        gold = int(batch.gold[row, 0] @ torch.tensor([1.0, 2.0], dtype=torch.float64))
        expected = expected_nce(energy.table[row].detach(), noise[row], gold, k)
        error = losses[:, row].std().item() / 6000**0.5
        assert losses[:, row].mean().item() == pytest.approx(expected, abs=4 * error)


def test_nce_is_lowest_at_the_energy_of_the_data():
    """Ma & Collins 2018: where noise is known, −E = ln p(y | x) minimises the expected loss over data from p."""
    noise = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    data = torch.tensor([0.4, 0.1, 0.25, 0.25], dtype=torch.float64)

    def expected(energy):
        return sum(data[y].item() * expected_nce(energy, noise, y, 2) for y in range(4))

    best = expected(-data.log())
    for _ in range(30):
        assert expected(-data.log() + 0.3 * torch.randn(4, dtype=torch.float64)) > best
    assert expected(-data.log() + 5.0) == pytest.approx(best)  # a constant is free


def test_ranking_ignores_the_noise():
    task = ToyLabels(labels=2)
    batch = batch_of(task, 3)
    energy, proposal = Table(task, 3), proposal_for(task, batch)
    samples = torch.tensor([[[1.0, 0.0], [1.0, 1.0]]] * 3, dtype=torch.float64)
    proposal = with_samples(task.space, proposal.logits, samples=samples)
    e = torch.cat([energy.at(batch.x)(batch.gold), energy.at(batch.x)(samples)], 1)
    expected = -torch.log(torch.exp(-e[:, 0]) / torch.exp(-e).sum(1))
    torch.testing.assert_close(make(Ranking, task, samples=2)(energy.at(batch.x), batch, proposal), expected)
    noise = torch.cat([proposal.log_prob(batch.gold), proposal.log_prob(samples)], 1)
    s = -e - noise
    expected = -torch.log(torch.exp(s[:, 0]) / torch.exp(s).sum(1))
    torch.testing.assert_close(make(Nce, task, samples=2)(energy.at(batch.x), batch, proposal), expected)


def with_samples(space, logits, samples, mask=None):
    """The space's own distribution with fixed samples; `asked` lists the numbers requested, call by call."""

    class Drawn(type(space.independent(logits, mask))):
        sparse, asked = False, []

        def sample(self, n):
            self.asked.append(n)
            return samples

    return Drawn(space, logits, mask)


@pytest.mark.parametrize(("redraw", "times"), [("step", 3), ("round", 1)])
def test_samples_are_redrawn_or_kept_with_the_proposal(redraw, times):
    task = ToyLabels(labels=2)
    batch = batch_of(task, 2)
    proposal = with_samples(task.space, proposal_for(task, batch).logits, torch.ones(2, 2, 2, dtype=torch.float64))
    loss, energy = make(Nce, task, samples=2, redraw=redraw), Table(task, 2)
    for _ in range(3):
        loss(energy.at(batch.x), batch, proposal)
    assert proposal.asked == [2] * times


def test_contrast_has_no_gradient_to_the_noise():
    task, batch = toy("labels")
    proposal = proposal_for(task, batch)
    value = make(Nce, task)(make_energy(task).at(batch.x), batch, proposal)
    (gradient,) = torch.autograd.grad(value.sum(), proposal.logits, allow_unused=True)
    assert gradient is None


def test_ranking_loss_where_shares_vanish():
    scores = torch.tensor([[-500.0, 0.0, -90.0], [0.0, -1e4, -70.0], [1.0, 1.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(ranking_loss(scores), -scores.log_softmax(1)[:, 0], atol=1e-20, rtol=1e-15)
    single = scores.float().requires_grad_()
    ranking_loss(single).sum().backward()
    shares = single.grad.abs()
    assert not ((shares > 0) & (shares < torch.finfo(torch.float32).tiny)).any()  # no denormal numbers


# Margin


def test_margin_is_eq_6_and_zero_only_without_violation():
    task, batch = toy("labels")
    energy, loss = make_energy(task), make(Margin, task)
    for _ in range(20):
        proposal = proposal_for(task, batch, scale=3.0)
        e_hat, e_gold = (energy.at(batch.x)(y)[:, 0] for y in (proposal.mean, batch.gold))
        cost = (proposal.mean - batch.gold).abs().mean((1, 2))
        losses = loss(energy.at(batch.x), batch, proposal)
        torch.testing.assert_close(losses, torch.clamp(cost - e_hat + e_gold, min=0))
        assert ((losses > 0) == (e_hat < e_gold + cost)).all()
        torch.testing.assert_close(sum_net_terms(loss, energy.at(batch.x), batch, proposal), e_hat)


def test_margin_cost_is_a_mean_or_a_sum_over_tokens():
    task, batch = toy("tags")
    energy, proposal = make_energy(task), proposal_for(task, batch)
    lengths = batch.x.mask.sum(1)
    e_hat, e_gold = (energy.at(batch.x)(y)[:, 0] for y in (proposal.mean, batch.gold))
    cost = torch.stack([(proposal.mean - batch.gold)[b, 0, :n].abs().sum() for b, n in enumerate(lengths)])
    for name, expected in (("l1", cost), ("mean_l1", cost / lengths)):
        losses = make(Margin, task, cost=name)(energy.at(batch.x), batch, proposal)
        torch.testing.assert_close(losses, torch.relu(expected - e_hat + e_gold))


@pytest.mark.parametrize("space", ["labels", "tags"])
def test_compound_margin_truncates_for_the_energy_only(space):
    task, batch = toy(space)
    energy, proposal = make_energy(task), proposal_for(task, batch)
    loss = make(CompoundMargin, task, perceptron_weight=0.3, cost="l1")
    f = loss.cost_net(batch, proposal).mean
    e_f, e_a, e_gold = (energy.at(batch.x)(y)[:, 0] for y in (f, proposal.mean, batch.gold))
    cost = task.space.cost(f, batch.gold, batch.x.mask)[:, 0]
    expected = torch.relu(cost - e_f + e_gold) + 0.3 * torch.relu(e_gold - e_a)
    torch.testing.assert_close(loss(energy.at(batch.x), batch, proposal), expected)
    expected = -(cost - e_f) + 0.3 * e_a
    torch.testing.assert_close(sum_net_terms(loss, energy.at(batch.x), batch, proposal), expected)


def test_cost_net_stops_the_gradient_before_the_net():
    task, batch = toy("labels")
    proposal = proposal_for(task, batch)
    loss = make(CompoundMargin, task, perceptron_weight=0.0)
    value = sum_net_terms(loss, make_energy(task).at(batch.x), batch, proposal).sum()
    gradients = torch.autograd.grad(value, [proposal.logits, *loss.parameters()], allow_unused=True)
    assert not gradients[0].any()
    assert all(g is not None and g.any() for g in gradients[1:])


# Regression


def test_regression_is_cross_entropy_with_the_soft_score():
    task, batch = toy("labels")
    energy, proposal, loss = make_energy(task), proposal_for(task, batch), make(Regression, task)
    value = torch.sigmoid(-energy.at(batch.x)(proposal.mean)[:, 0])
    s = task.space.score(proposal.mean, batch.gold)[:, 0]
    expected = -s * value.log() - (1 - s) * (1 - value).log()
    torch.testing.assert_close(loss(energy.at(batch.x), batch, proposal), expected)
    torch.testing.assert_close(sum_net_terms(loss, energy.at(batch.x), batch, proposal), -value)


def test_sampled_regression_sums_over_the_output_and_samples():
    task, batch = toy("labels")
    energy, proposal = make_energy(task), proposal_for(task, batch)
    single = make(Regression, task)(energy.at(batch.x), batch, proposal)
    torch.testing.assert_close(make(SampledRegression, task, samples=1)(energy.at(batch.x), batch, proposal), single)
    approximate = make(SampledRegression, task, samples=5, std=1e-9)(energy.at(batch.x), batch, proposal)
    torch.testing.assert_close(approximate, 5 * single, atol=1e-6, rtol=0)


# All of them


@pytest.mark.parametrize("space", ["labels", "tags"])
@pytest.mark.parametrize(("cls", "fields"), LOSSES)
def test_gradients(cls, fields, space):
    task, batch = toy(space, 2)
    energy, loss = make_energy(task), make(cls, task, **fields)
    logits = proposal_for(task, batch).logits
    parameters = [*energy.parameters(), *loss.parameters()]

    def value(function):
        def call(logits, *_):
            torch.manual_seed(3)  # the same samples at every call
            return function(energy.at(batch.x), batch, task.space.independent(logits, batch.x.mask))

        return call

    # Samples are data, so a loss that draws is checked in the energy's parameters alone.
    draws = isinstance(loss, Contrast | SampledRegression)
    inputs = (logits.detach() if draws else logits, *parameters)
    if isinstance(loss, CompoundMargin):  # its cost net stops the gradient to the logits on purpose
        inputs = (logits.detach(), *parameters)
    assert torch.autograd.gradcheck(value(loss), inputs, fast_mode=True)
    assert torch.autograd.gradcheck(value(partial(sum_net_terms, loss)), inputs, fast_mode=True)


@pytest.mark.parametrize(
    ("cls", "fields"),
    [c for c in LOSSES if not (c[0] is SampledRegression or c[1].get("sample") == "continuous")] + [LOSSES[5]],
)
def test_padding_changes_no_loss(cls, fields):
    """The same examples with three more columns of padding."""
    task, batch = toy("tags")
    energy, loss, proposal = make_energy(task), make(cls, task, **fields), proposal_for(task, batch)

    def pad(value, axis):
        shape = list(value.shape)
        shape[axis] = 3
        return torch.cat([value, value.new_zeros(shape)], axis)

    x = batch.x
    longer_x = sp.X({name: pad(value, 1) for name, value in x.inputs.items()}, pad(x.mask, 1), x.size)
    longer = replace(batch, x=longer_x, gold=pad(batch.gold, 2))
    noisy = pad(proposal.logits, 2)
    noisy = noisy + torch.randn_like(noisy) * ~longer_x.mask[:, None, :, None]
    samples = task.space.independent(proposal.logits, x.mask).sample(3 - isinstance(loss, SampledRegression))
    short, long = (
        with_samples(task.space, proposal.logits, samples, x.mask),
        with_samples(task.space, noisy, pad(samples, 2), longer_x.mask),
    )
    for function in (loss, partial(sum_net_terms, loss)):
        torch.testing.assert_close(function(energy.at(longer_x), longer, long), function(energy.at(x), batch, short))


@pytest.mark.parametrize("space", ["labels", "tags"])
@pytest.mark.parametrize(("cls", "fields"), LOSSES)
def test_rows_without_gold_do_not_train_the_energy(cls, fields, space):
    task, batch = toy(space)
    labelled = torch.tensor([True, False, True, False])
    batch = replace(batch, labelled=labelled, gold=batch.gold * labelled.view(-1, *[1] * (batch.gold.dim() - 1)))
    energy, loss, proposal = make_energy(task), make(cls, task, **fields), proposal_for(task, batch)
    values = loss(energy.at(batch.x), batch, proposal)
    assert not values[~labelled].any()
    gradients = torch.autograd.grad(values[~labelled].sum(), list(energy.parameters()), allow_unused=True)
    assert not any(g is not None and g.any() for g in gradients)
    net_losses = sum_net_terms(loss, energy.at(batch.x), batch, proposal)
    assert net_losses[~labelled].all(), "the energy still teaches the net there"
