"""Energies that are convex in y."""

from __future__ import annotations

import pytest
import torch

from spen_e2e.convex import non_negative
from spen_e2e.images import DeepPrior, FieldOfExperts
from tests.e2e.toys import images, make


@pytest.mark.parametrize("cls", [DeepPrior, FieldOfExperts])
def test_convex_along_segments(cls) -> None:
    """E((1 − s) a + s b) ≤ (1 − s) E(a) + s E(b), wherever the parameters are."""
    task, batch = images()
    fields = {"icnn": True} if cls is DeepPrior else {}
    energy = make(cls, task, filters=4, size=3, weight=5.0, **fields).double()
    bound, s = energy.at(batch.x), torch.linspace(0, 1, 9, dtype=torch.float64)
    for _ in range(20):
        for value in energy.parameters():
            value.data.normal_()
        a, b = torch.randn(2, 2, 1, 6, 7, dtype=torch.float64) * 3
        between = bound(a + s.view(-1, 1, 1) * (b - a))
        ends = bound(a) + s * (bound(b) - bound(a))
        assert (between <= ends + 1e-9 * ends.abs()).all()


def test_without_the_restriction_it_is_not() -> None:
    task, batch = images()
    energy = make(DeepPrior, task, filters=4, size=3, weight=50.0).double()
    bound, worst = energy.at(batch.x), 0.0
    for _ in range(20):
        for value in energy.parameters():
            value.data.normal_()
        energy.log_weight.data.fill_(4.0)
        a, b = torch.randn(2, 2, 1, 6, 7, dtype=torch.float64)
        worst = max(worst, float((bound((a + b) / 2) - (bound(a) + bound(b)) / 2).detach().max()))
    assert worst > 0


def test_weights_of_any_sign_are_trained() -> None:
    layer = non_negative(torch.nn.Linear(3, 2))
    raw = layer.parametrizations.weight.original
    assert (raw < 0).any() and torch.equal(layer.weight, raw.abs())
    [gradient] = torch.autograd.grad(layer(torch.ones(3)).sum(), raw)
    assert torch.equal(gradient, raw.sign())
    assert set(dict(layer.named_parameters())) == {"bias", "parametrizations.weight.original"}


def test_the_restricted_prior_begins_where_softplus_bends() -> None:
    """Or the energy would be a line in what the first convolution finds, and nothing else could be learned."""
    task, batch = images(sizes=((20, 20),))
    found = []
    energy = make(DeepPrior, task, icnn=True)
    energy.second.register_forward_hook(lambda layer, given, value: found.append(value))
    energy.double().at(batch.x)(batch.gold)
    assert found[0][:, :, 8:12, 8:12].abs().mean() < 2  # away from borders, where fewer values are summed
