"""Distributions with cached sums: neither the gradient mode of the first access nor autocast matters."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import spen_plugins as sp
from spen_decoders.chain import LabelChain
from tests.decoders.test_labels_as_words import make_chain
from tests.decoders.test_sequences import proposed
from tests.exact.test_grad_modes import ACCESSES
from tests.exact.toys import space_of


def make_sequences() -> tuple[sp.Proposal, list[Tensor]]:
    q, _, net = proposed(3)
    return q, list(net.writer.parameters())


def make_chain_and_scores() -> tuple[sp.Proposal, list[Tensor]]:
    q = make_chain(3, batch=4)
    return q, [q.logits, q.transitions]


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("make", [make_sequences, make_chain_and_scores])
def test_gradients_after_an_access_without_them(make, access: str) -> None:
    gold = torch.tensor([[[1, 1, 0]], [[0, 0, 0]], [[1, 0, 1]], [[0, 1, 0]]], dtype=torch.double)

    def gradients(q: sp.Proposal, scores: list[Tensor]) -> tuple[Tensor, ...]:
        torch.manual_seed(1)
        loss = q.log_prob(gold).sum() + (q.mean * torch.arange(3)).sum() + q.rsample(2).square().sum()
        return torch.autograd.grad(loss, scores)

    expected = gradients(*make())
    q, scores = make()
    with torch.no_grad():
        accesses = {**ACCESSES, "log_prob": lambda q: q.log_prob(gold)}
        accesses[access](q)
    for gradient, expected_gradient in zip(gradients(q, scores), expected, strict=True):
        torch.testing.assert_close(gradient, expected_gradient)


def test_autocast_does_not_change_the_probabilities_of_a_chain() -> None:
    torch.manual_seed(0)
    fields = {"transitions": 2 * torch.randn(2, 2), "order": torch.randperm(100)}
    logits, y = torch.randn(3, 1, 100), (torch.rand(3, 4, 100) > 0.5).float()
    q = LabelChain(space_of(100), logits, **fields)
    mean, log_q = q.mean, q.log_prob(y)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        q = LabelChain(space_of(100), logits, **fields)
        torch.testing.assert_close(q.mean, mean)
        torch.testing.assert_close(q.log_prob(y), log_q)
