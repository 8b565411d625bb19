"""The contrastive divergence with costs, and with rewards instead of gold, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

import spen_plugins as sp
from spen_implicit.divergence import ContrastiveDivergence
from spen_plugins.testing import ToyTags
from spen_plugins.testing.comparing import collate, pick_by_length
from spen_seal.margin import Margin
from spen_seal.regression import Regression
from tests.e2e.toys import energy_for, toy


def make_parts(kind: str, **fields: object):
    task, batch = toy(kind)
    loss = ContrastiveDivergence(ContrastiveDivergence.Config(**fields), task)
    logits = (2 * torch.randn(batch.gold.shape, dtype=torch.float64)).requires_grad_()
    return task, batch, loss, energy_for(task).at(batch.x), task.space.independent(logits, batch.x.mask)


@pytest.mark.parametrize("kind", ["labels", "tags"])
def test_gold_and_samples_by_hand(kind: str) -> None:
    _, batch, loss, energy, proposal = make_parts(kind, samples=4, outputs="discrete", cost="l1")
    torch.manual_seed(3)
    losses = loss(energy, batch, proposal)
    torch.manual_seed(3)
    samples = proposal.sample(4)
    expected = []
    for i in range(len(batch)):
        gold = -energy(batch.gold)[i, 0].item()
        others = [-energy(samples)[i, k].item() for k in range(4)]
        different = (samples[i] - batch.gold[i]).abs().flatten(1).sum(1)
        shares = [gold, *(other + cost.item() for other, cost in zip(others, different, strict=True))]
        expected.append(torch.tensor(shares, dtype=torch.float64).logsumexp(0) - gold)
    torch.testing.assert_close(losses, torch.stack(expected))


@pytest.mark.parametrize("kind", ["labels", "tags"])
def test_one_output_is_a_smooth_margin(kind: str) -> None:
    """softplus(Δ + E(y) − E(ȳ)) is close to the hinge (App. D)."""
    task, batch, loss, energy, proposal = make_parts(kind, outputs="soft")
    cost = 1 - task.space.score(proposal.mean, batch.gold, batch.x.mask)
    expected = F.softplus(cost + energy(batch.gold) - energy(proposal.mean))[:, 0]
    torch.testing.assert_close(loss(energy, batch, proposal), expected)
    hinge = Margin(Margin.Config(cost="score"), task)(energy, batch, proposal)
    assert (expected >= hinge).all() and (expected - hinge <= 0.6932).all()


@pytest.mark.parametrize("outputs", ["relaxed", "straight", "soft", "discrete"])
def test_gradients_reach_the_net_but_through_discrete_samples(outputs: str) -> None:
    _, batch, loss, energy, proposal = make_parts("tags", samples=3, outputs=outputs)
    [gradient] = torch.autograd.grad(
        loss(energy, batch, proposal).sum(), proposal.logits, allow_unused=True, materialize_grads=True
    )
    assert gradient.any() == (outputs != "discrete")
    y = loss._draw_outputs(proposal)
    assert y.shape[:2] == (len(batch), 1 if outputs == "soft" else 3)
    is_discrete = torch.equal(y, y.round())
    assert is_discrete == (outputs in ("straight", "discrete"))


def test_rows_without_gold_have_no_loss() -> None:
    _, batch, loss, energy, proposal = make_parts("tags")
    partly_labelled = replace(batch, labelled=torch.tensor([True, False, True]))
    losses = loss(energy, partly_labelled, proposal)
    assert losses[1] == 0 and losses[0] > 0
    unlabelled = replace(batch, gold=None, labelled=torch.zeros(3, dtype=torch.bool))
    assert not loss(energy, unlabelled, proposal).any()
    assert loss(energy, unlabelled, proposal).requires_grad


class Rewarded(ToyTags, sp.Rewards):
    """Tags whose reward is the share of tokens with the first tag; the search knows the output of reward 1."""

    searches = True

    def reward(self, x: sp.X, y: torch.Tensor) -> torch.Tensor:
        first = y[..., 0] * x.mask.unsqueeze(1)
        return first.sum(-1) / x.mask.sum(-1, keepdim=True)

    def search(self, x: sp.X, proposal: sp.Proposal) -> torch.Tensor | None:
        if not self.searches:
            return None
        return (torch.eye(proposal.logits.shape[-1])[0] * x.mask[..., None]).unsqueeze(1)


@pytest.mark.parametrize("searches", [True, False])
def test_rewards_stand_in_for_gold(searches: bool) -> None:
    """By hand: without gold, the candidate with the highest reward wins, and Δ is the reward that others lack."""
    task = Rewarded()
    task.searches = searches
    batch = collate(task, pick_by_length(task, 3))
    batch = replace(batch, labelled=torch.tensor([True, False, False]))
    loss = ContrastiveDivergence(ContrastiveDivergence.Config(samples=4, outputs="discrete"), task)
    energy = energy_for(task).at(batch.x)
    proposal = task.space.independent(torch.randn(batch.gold.shape, dtype=torch.float64), batch.x.mask)
    torch.manual_seed(3)
    losses = loss(energy, batch, proposal)
    torch.manual_seed(3)
    samples = proposal.sample(4)
    torch.manual_seed(3)
    torch.testing.assert_close(losses[0], loss(energy, replace(batch, labelled=torch.ones(3) > 0), proposal)[0])
    candidates = [samples, proposal.mode.to(samples)] + (
        [task.search(batch.x, proposal).to(samples)] if searches else []
    )
    candidates = torch.cat(candidates, 1)
    for i in (1, 2):
        rewards = task.reward(batch.x, candidates)[i]
        best = rewards.argmax()
        assert not searches or rewards[best] == 1
        scores = [-energy(candidates)[i, best].item()]
        scores += [-energy(samples)[i, k].item() + (rewards[best] - rewards[k]).item() for k in range(4)]
        expected = torch.tensor(scores, dtype=torch.float64).logsumexp(0) - scores[0]
        torch.testing.assert_close(losses[i], expected)
    unlabelled = replace(batch, gold=None, labelled=torch.zeros(3, dtype=torch.bool))
    torch.manual_seed(3)
    torch.testing.assert_close(loss(energy, unlabelled, proposal)[1:], losses[1:])


def test_the_value_of_an_output_without_gold_is_its_reward() -> None:
    """The regression loss by hand."""
    task = Rewarded()
    batch = collate(task, pick_by_length(task, 3))
    partly_labelled = replace(batch, labelled=torch.tensor([True, False, False]))
    loss = Regression(sp.Config(), task)
    energy = energy_for(task).at(batch.x)
    proposal = task.space.independent(torch.randn(batch.gold.shape, dtype=torch.float64), batch.x.mask)
    losses = loss(energy, partly_labelled, proposal)
    torch.testing.assert_close(losses[0], loss(energy, batch, proposal)[0])
    y = proposal.mean
    value, reward = torch.sigmoid(-energy(y))[:, 0], task.reward(batch.x, y)[:, 0]
    expected = -reward * value.log() - (1 - reward) * (1 - value).log()
    torch.testing.assert_close(losses[1:], expected[1:])
    unlabelled = replace(batch, gold=None, labelled=torch.zeros(3, dtype=torch.bool))
    torch.testing.assert_close(loss(energy, unlabelled, proposal), expected)
