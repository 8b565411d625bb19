"""Distributions with cached sums: the gradient mode of the first access doesn't matter."""

from __future__ import annotations

import pytest
import torch

import spen_plugins as sp
from spen_exact.coherent import CoherentLabels
from spen_exact.counted import CountedLabels
from spen_exact.segments import SegmentsNet
from spen_plugins.spaces.star import Star, StarLabels
from spen_plugins.testing import ToyTags
from tests.exact.toys import POINTS
from tests.seal.toys import batch_of, make

LABELS = sp.LabelSet(list("abcd"), [None, 0, 0, 1])
GOLD = torch.tensor([[[1, 1, 0, 1]], [[1, 0, 1, 0]]], dtype=torch.float64)
SCORES = {
    "star": lambda: (make_leaf(2, 1, 4), make_leaf(2, 2, 4)),
    "counts": lambda: (make_leaf(2, 1, 4), make_leaf(2, 4)),
    "hierarchy": lambda: (make_leaf(2, 1, 4),),
}
LAWS = {
    "star": lambda s, w: StarLabels(LABELS, s, pairs=w, hubs=torch.tensor([1, 0])),
    "counts": lambda s, c: CountedLabels(LABELS, s, counts=c),
    "hierarchy": lambda s: CoherentLabels(LABELS, s),
}
ACCESSES = {
    "sample": lambda q: q.sample(2),
    "log_prob": lambda q: q.log_prob(GOLD),
    "mode": lambda q: q.mode,
    "mean": lambda q: q.mean,
    "rsample": lambda q: q.rsample(2),
    "label_powers": lambda q: q.label_powers(POINTS),
}


def make_leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("name", LAWS)
def test_gradients_after_an_access_without_them(name: str, access: str) -> None:
    torch.manual_seed(0)
    scores = SCORES[name]()

    def gradients(q: sp.Proposal) -> list[torch.Tensor]:
        torch.manual_seed(1)
        loss = q.log_prob(GOLD).sum() + (q.mean * torch.arange(4)).sum() + q.rsample(2).square().sum()
        return torch.autograd.grad(loss, scores)

    expected = gradients(LAWS[name](*scores))
    accessed = LAWS[name](*scores)
    with torch.no_grad():
        ACCESSES[access](accessed)
    for gradient, expected_gradient in zip(gradients(accessed), expected, strict=True):
        torch.testing.assert_close(gradient, expected_gradient)


@pytest.mark.parametrize("name", ["star", "counts"])
def test_potentials_alone_have_the_gradient_of_the_log_partition_function(name: str) -> None:
    torch.manual_seed(0)
    scores, potentials = SCORES[name]()
    [expected] = torch.autograd.grad(LAWS[name](scores, potentials).log_prob(GOLD).sum(), potentials)
    proposal = LAWS[name](scores.detach(), potentials)
    [gradient] = torch.autograd.grad(proposal.log_prob(GOLD).sum(), potentials)
    torch.testing.assert_close(gradient, expected)


def test_scores_of_a_star_have_gradients_after_an_access_without_them() -> None:
    star = Star(make_leaf(2, 4), pairs := make_leaf(2, 2, 4), torch.tensor([1, 0]))
    with torch.no_grad():
        star.score(GOLD)
    [gradient] = torch.autograd.grad(star.score(GOLD).sum(), pairs)
    assert gradient.abs().sum() > 0


def test_segments_have_temperatures_and_rows() -> None:
    task = ToyTags()
    batch = batch_of(task, 3)
    proposal = make(SegmentsNet, task)(batch.x).detach()
    y = proposal.mode
    tempered = proposal.tempered(2.0)
    score = proposal.log_prob(y) + proposal.log_z.unsqueeze(1)
    torch.testing.assert_close(tempered.log_prob(y) + tempered.log_z.unsqueeze(1), score / 2)
    rows = proposal.map_rows(lambda values: values[1:])
    torch.testing.assert_close(rows.mean, proposal.mean[1:])
    torch.testing.assert_close(rows.log_prob(y[1:]), proposal.log_prob(y)[1:])
