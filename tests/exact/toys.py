"""Enumeration of all label sets, against which the structures are checked."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

import spen_plugins as sp
from spen_plugins.scores.expected_f1 import find_best_sets

POINTS = torch.linspace(0.01, 1, 11, dtype=torch.double)


def all_sets(labels: int) -> Tensor:
    """`(set, label)` float64, the set's number in binary."""
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=labels)), dtype=torch.double)


def space_of(labels: int, **facts) -> sp.LabelSet:
    return sp.LabelSet([f"label{i}" for i in range(labels)], **facts)


def check_against_enumeration(q: sp.Proposal, log_p: Tensor) -> None:
    """Checks a distribution against ln p of all label sets, `(batch, set)`, up to a constant; −∞ marks impossible
    sets."""
    labels = q.logits.shape[-1]
    y, log_p = all_sets(labels), log_p.detach().log_softmax(1)
    p = log_p.exp()
    torch.testing.assert_close(q.log_prob(y.expand(len(p), -1, -1)).detach(), log_p, rtol=0, atol=1e-9)
    torch.testing.assert_close(q.mean[:, 0].detach(), p @ y, rtol=0, atol=1e-10)
    check_powers(q, p)
    best, order = log_p.sort(1, descending=True)
    possible = int(log_p[0].isfinite().sum())
    torch.testing.assert_close(q.log_prob(q.mode)[:, 0].detach(), best[:, 0])
    chosen = find_best_sets(q, 0.0).double().unsqueeze(1)
    torch.testing.assert_close(q.log_prob(chosen)[:, 0].detach(), best[:, 0])
    for k in (1, 2, 5, possible // 2 + 1, possible + 2):
        sets, log_q = q.k_best(k)
        torch.testing.assert_close(log_q[:, :possible], best[:, : min(k, possible)], rtol=0, atol=1e-9)
        torch.testing.assert_close(sets[:, :possible], y[order][:, : min(k, possible)])
        assert (log_q[:, possible:] == -torch.inf).all()
        assert torch.equal(sets[:, possible:], sets[:, :1].expand_as(sets[:, possible:]))
    check_draws(q, p)


def check_powers(q: sp.Proposal, p: Tensor) -> None:
    """The joint law of labels and sizes: its generating function at more points than there are sizes."""
    y = all_sets(q.logits.shape[-1])
    powers = (p.unsqueeze(1) * POINTS.unsqueeze(1) ** y.sum(1)) @ y
    torch.testing.assert_close(q.label_powers(POINTS), powers, rtol=0, atol=1e-9)


def check_draws(q: sp.Proposal, p: Tensor, n: int = 20_000) -> None:
    """Pearson's χ² of samples against the probabilities of all sets, within five deviations."""
    torch.manual_seed(0)
    samples = q.sample(n).double()
    number = (samples @ 2.0 ** torch.arange(samples.shape[-1] - 1, -1, -1, dtype=torch.double)).long()
    for row, law in zip(number, p, strict=True):
        count = torch.bincount(row, minlength=len(law)).double()
        assert not count[law == 0].any()
        is_common = n * law >= 5  # the others are pooled
        expected = torch.cat([n * law[is_common], (n * law[~is_common].sum()).clamp(min=1e-9)[None]])
        observed = torch.cat([count[is_common], count[~is_common].sum()[None]])
        chi = ((observed - expected).square() / expected.clamp(min=1)).sum()
        assert chi < len(expected) + 5 * (2 * len(expected)) ** 0.5


def check_gradients(log_z: Tensor, logits: Tensor, mean: Tensor) -> None:
    """The gradient of ln Z in the scores is the mean."""
    [gradient] = torch.autograd.grad(log_z.sum(), logits, retain_graph=True)
    torch.testing.assert_close(gradient, mean.view_as(gradient), rtol=0, atol=1e-10)


def check_exact_energy(energy: sp.BoundEnergy, possible: Tensor | None = None) -> None:
    """Checks ln Z, marginals and modes of an energy against all sets, or against the `possible` ones."""
    y = all_sets(energy.energy.space.shape[0])
    y = y if possible is None else y[possible]
    scores = -energy(y.expand(energy.x.size, -1, -1))
    torch.testing.assert_close(energy.log_z(), torch.logsumexp(scores, 1))
    torch.testing.assert_close(energy.marginals()[:, 0], scores.softmax(1) @ y)
    torch.manual_seed(0)
    shift = torch.randn(energy.x.size, 3, y.shape[1], dtype=torch.double)
    best = (scores.unsqueeze(1) + shift @ y.t()).argmax(2)
    torch.testing.assert_close(energy.modes(shift), y[best])
