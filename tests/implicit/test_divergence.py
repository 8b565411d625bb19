"""The contrastive divergence with costs, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from spen_implicit.divergence import ContrastiveDivergence
from spen_seal.margin import Margin
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
    y = loss._outputs(proposal)
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
