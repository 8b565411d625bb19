"""Mixtures of distributions against sums over all outputs, in float64."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

import spen_plugins as sp
from spen_plugins.builtin.nets.crf import CrfProposal
from spen_plugins.spaces.chain import Chain
from spen_plugins.testing.spaces import check_draws

LABELS = sp.LabelSet(["a", "b", "c"])
TAGS = sp.TagSequence(["O", "B-x", "I-x"], "bio")
MASK = torch.tensor([[True, True, True], [True, True, False]])
SETS = torch.tensor(list(itertools.product([0.0, 1.0], repeat=3)), dtype=torch.float64)


def draw(*shape: int, seed: int = 0) -> Tensor:
    return 2 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def mix_labels(k: int = 3, weights: Tensor | None = None) -> sp.Mixture:
    parts = [LABELS.independent(draw(2, 1, 3, seed=i).requires_grad_()) for i in range(k)]
    return sp.Mixture.of(parts, draw(2, k, seed=9).requires_grad_() if weights is None else weights)


def mix_tags() -> sp.Mixture:
    """A CRF and independent tags."""
    chain = Chain(draw(3, 3, seed=5), draw(3, seed=6), draw(3, seed=7))
    first = CrfProposal(TAGS, draw(2, 1, 3, 3), MASK, chain=chain)
    return sp.Mixture.of([first, TAGS.independent(draw(2, 1, 3, 3, seed=1), MASK)], draw(2, seed=2))


def list_tags(length: int) -> Tensor:
    """All outputs of `length` tokens, `(output, 3, 3)`, zero on padding."""
    paths = torch.tensor(list(itertools.product(range(3), repeat=length)))
    y = torch.nn.functional.one_hot(paths, 3).double()
    return torch.nn.functional.pad(y, (0, 0, 0, 3 - length))


def test_probabilities_of_label_sets_are_weighted_sums_and_the_mean_is_over_all_sets() -> None:
    q = mix_labels()
    y = SETS.expand(2, -1, -1)
    component_p = torch.stack([part.log_prob(y).exp() for part in q.components], 2)
    weights = draw(2, 3, seed=9).softmax(-1)
    p = (component_p * weights[:, None]).sum(2)
    torch.testing.assert_close(q.log_prob(y).exp(), p)
    torch.testing.assert_close(p.sum(1), torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close(q.mean[:, 0], p @ SETS)
    torch.testing.assert_close(torch.sigmoid(q.logits), q.mean)
    assert torch.equal(q.mode, (q.mean > 0.5).double())


@pytest.mark.parametrize(("row", "length"), [(0, 3), (1, 2)])
def test_a_mixture_of_a_crf_and_independent_tags_by_enumeration(row: int, length: int) -> None:
    q, y = mix_tags(), list_tags(length)
    p = q.log_prob(y.expand(2, *y.shape))[row].exp()
    torch.testing.assert_close(p.sum(), torch.ones((), dtype=torch.float64))
    torch.testing.assert_close(q.mean[row, 0], torch.einsum("n,ntk->tk", p, y))
    pairs = torch.einsum("n,nta,ntb->tab", p, y[:, :-1], y[:, 1:])
    torch.testing.assert_close(q.pairs[row, : length - 1], pairs[: length - 1])


def test_the_mode_of_tags_is_the_best_allowed_path_by_the_mean() -> None:
    q, y = mix_tags(), list_tags(3)
    is_allowed = TAGS.independent(40 * y.unsqueeze(1)).mode[:, 0].eq(y).flatten(1).all(1)
    scores = (y * q.mean[0, 0].log()).sum((1, 2)).masked_fill(~is_allowed, -torch.inf)
    assert torch.equal(q.mode[0, 0], y[scores.argmax()])
    assert not q.mode[1, 0, 2].any()


def test_samples_follow_the_mixture_not_its_mean() -> None:
    """Two labels that are always equal: the mixture of both on and both off."""
    space = sp.LabelSet(["a", "b"])
    logits = torch.tensor([[[30.0, 30.0]]])
    q = sp.Mixture.of([space.independent(logits), space.independent(-logits)], torch.tensor([0.25, 0.75]).log())
    torch.manual_seed(0)
    y = q.sample(4000)
    assert torch.equal(y[..., 0], y[..., 1])
    assert abs(y.mean().item() - 0.25) < 0.04
    assert q.sample(1).shape == (1, 1, 2)
    for mixture in (mix_labels(), mix_tags()):
        check_draws(mixture, "Mixture")


def test_a_mixture_of_one_component_equals_that_component() -> None:
    component = LABELS.independent(draw(2, 1, 3))
    q = sp.Mixture.of([component])
    torch.testing.assert_close(q.mean, component.mean)
    torch.testing.assert_close(q.logits, component.logits)
    torch.testing.assert_close(q.log_prob(SETS.expand(2, -1, -1)), component.log_prob(SETS.expand(2, -1, -1)))


def test_logits_of_small_probabilities_are_exact_in_float32() -> None:
    parts = [LABELS.independent(torch.full((1, 1, 3), value)) for value in (-40.0, 50.0)]
    assert (sp.Mixture.of(parts).logits.abs() < 1e-6).all()
    rare_parts = [LABELS.independent(torch.full((1, 1, 3), -value)) for value in (40.0, 60.0)]
    torch.testing.assert_close(sp.Mixture.of(rare_parts).logits, torch.full((1, 1, 3), -40.0 - torch.tensor(2.0).log()))


def test_gradients_reach_components_and_weights() -> None:
    parts = [draw(2, 1, 3, seed=i).requires_grad_() for i in range(2)]
    weights, y = draw(2, 2, seed=8).requires_grad_(), torch.rand(2, 4, 3, dtype=torch.float64).requires_grad_()

    def compute(name: str, *tensors: Tensor) -> Tensor:
        a, b, w, y = tensors
        q = sp.Mixture.of([LABELS.independent(a), LABELS.independent(b)], w)
        return q.log_prob(y) if name == "log_prob" else getattr(q, name)

    for name in ("log_prob", "mean", "logits"):
        torch.autograd.gradcheck(lambda *tensors, name=name: compute(name, *tensors), (*parts, weights, y))
    torch.manual_seed(0)
    q = mix_labels()
    for y in (q.rsample(5), q.perturb(5, 1.0)):
        assert y.shape == (2, 5, 3) and y.requires_grad
    assert not q.sample(5).requires_grad and not q.mode.requires_grad


def test_detach_removes_gradients_and_keeps_the_mean() -> None:
    q = mix_labels()
    fixed = q.detach()
    assert not fixed.log_prob(SETS.expand(2, -1, -1)).requires_grad and not fixed.mean.requires_grad
    torch.testing.assert_close(fixed.mean, q.mean.detach())


def test_a_mixture_in_a_mixture_and_real_outputs() -> None:
    inner, independent = mix_labels(2, torch.zeros(2, dtype=torch.float64)), LABELS.independent(draw(2, 1, 3, seed=4))
    q = sp.Mixture.of([inner, independent], torch.tensor([2 / 3, 1 / 3], dtype=torch.float64).log())
    flat = sp.Mixture.of([*inner.components, independent])
    y = SETS.expand(2, -1, -1)
    torch.testing.assert_close(q.log_prob(y), flat.log_prob(y))
    torch.testing.assert_close(q.logits, flat.logits)
    grid = sp.RealGrid()
    real_parts = [grid.independent(draw(2, 1, 2, 2, seed=i)) for i in range(2)]
    q = sp.Mixture.of(real_parts)
    torch.testing.assert_close(q.mean, (real_parts[0].logits + real_parts[1].logits) / 2)
    torch.testing.assert_close(q.mode, q.mean)
