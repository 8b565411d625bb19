"""The contrastive divergence with costs, and rewards in the place of gold, by hand."""

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


def parts(kind: str, **fields: object):
    task, batch = toy(kind)
    loss = ContrastiveDivergence(ContrastiveDivergence.Config(**fields), task)
    logits = (2 * torch.randn(batch.gold.shape, dtype=torch.float64)).requires_grad_()
    return task, batch, loss, energy_for(task).at(batch.x), task.space.independent(logits, batch.x.mask)


@pytest.mark.parametrize("kind", ["labels", "tags"])
def test_gold_and_samples_by_hand(kind: str) -> None:
    _, batch, loss, energy, proposal = parts(kind, samples=4, outputs="discrete", cost="l1")
    torch.manual_seed(3)
    found = loss(energy, batch, proposal)
    torch.manual_seed(3)
    samples = proposal.sample(4)
    right = []
    for i in range(len(batch)):
        gold = -energy(batch.gold)[i, 0].item()
        others = [-energy(samples)[i, k].item() for k in range(4)]
        different = (samples[i] - batch.gold[i]).abs().flatten(1).sum(1)
        shares = [gold, *(other + cost.item() for other, cost in zip(others, different, strict=True))]
        right.append(torch.tensor(shares, dtype=torch.float64).logsumexp(0) - gold)
    torch.testing.assert_close(found, torch.stack(right))


@pytest.mark.parametrize("kind", ["labels", "tags"])
def test_one_output_is_the_margin_made_smooth(kind: str) -> None:
    """softplus(Δ + E(y) − E(ȳ)), and not far from the hinge (App. D)."""
    task, batch, loss, energy, proposal = parts(kind, outputs="soft")
    cost = 1 - task.space.score(proposal.mean, batch.gold, batch.x.mask)
    right = F.softplus(cost + energy(batch.gold) - energy(proposal.mean))[:, 0]
    torch.testing.assert_close(loss(energy, batch, proposal), right)
    hinge = Margin(Margin.Config(cost="score"), task)(energy, batch, proposal)
    assert (right >= hinge).all() and (right - hinge <= 0.6932).all()


@pytest.mark.parametrize("outputs", ["relaxed", "straight", "soft", "discrete"])
def test_gradients_reach_the_net_but_through_discrete_samples(outputs: str) -> None:
    _, batch, loss, energy, proposal = parts("tags", samples=3, outputs=outputs)
    [found] = torch.autograd.grad(
        loss(energy, batch, proposal).sum(), proposal.logits, allow_unused=True, materialize_grads=True
    )
    assert found.any() == (outputs != "discrete")
    y = loss._draw_outputs(proposal)
    assert y.shape[:2] == (len(batch), 1 if outputs == "soft" else 3)
    whole = torch.equal(y, y.round())
    assert whole == (outputs in ("straight", "discrete"))


def test_rows_without_gold_have_no_loss() -> None:
    _, batch, loss, energy, proposal = parts("tags")
    some = replace(batch, labelled=torch.tensor([True, False, True]))
    found = loss(energy, some, proposal)
    assert found[1] == 0 and found[0] > 0
    nothing = replace(batch, gold=None, labelled=torch.zeros(3, dtype=torch.bool))
    assert not loss(energy, nothing, proposal).any()
    assert loss(energy, nothing, proposal).requires_grad


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
    """By hand: the winner of a row without gold is the candidate of highest reward, Δ what the others lack."""
    task = Rewarded()
    task.searches = searches
    batch = collate(task, pick_by_length(task, 3))
    batch = replace(batch, labelled=torch.tensor([True, False, False]))
    loss = ContrastiveDivergence(ContrastiveDivergence.Config(samples=4, outputs="discrete"), task)
    energy = energy_for(task).at(batch.x)
    proposal = task.space.independent(torch.randn(batch.gold.shape, dtype=torch.float64), batch.x.mask)
    torch.manual_seed(3)
    found = loss(energy, batch, proposal)
    torch.manual_seed(3)
    samples = proposal.sample(4)
    torch.manual_seed(3)
    torch.testing.assert_close(found[0], loss(energy, replace(batch, labelled=torch.ones(3) > 0), proposal)[0])
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
        right = torch.tensor(scores, dtype=torch.float64).logsumexp(0) - scores[0]
        torch.testing.assert_close(found[i], right)
    nothing = replace(batch, gold=None, labelled=torch.zeros(3, dtype=torch.bool))
    torch.manual_seed(3)
    torch.testing.assert_close(loss(energy, nothing, proposal)[1:], found[1:])


def test_the_value_of_an_output_without_gold_is_its_reward() -> None:
    """By hand, of the regression loss."""
    task = Rewarded()
    batch = collate(task, pick_by_length(task, 3))
    some = replace(batch, labelled=torch.tensor([True, False, False]))
    loss = Regression(sp.Config(), task)
    energy = energy_for(task).at(batch.x)
    proposal = task.space.independent(torch.randn(batch.gold.shape, dtype=torch.float64), batch.x.mask)
    found = loss(energy, some, proposal)
    torch.testing.assert_close(found[0], loss(energy, batch, proposal)[0])
    y = proposal.mean
    value, reward = torch.sigmoid(-energy(y))[:, 0], task.reward(batch.x, y)[:, 0]
    right = -reward * value.log() - (1 - reward) * (1 - value).log()
    torch.testing.assert_close(found[1:], right[1:])
    nothing = replace(batch, gold=None, labelled=torch.zeros(3, dtype=torch.bool))
    torch.testing.assert_close(loss(energy, nothing, proposal), right)
