"""The chain against enumeration of every tag sequence, and against allennlp-light's own."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import pytest
import torch

import spen_plugins as sp
from spen_plugins.builtin.nets.crf import Crf, CrfProposal
from spen_plugins.spaces.chain import Chain

TAGS = ["O", "B-X", "I-X"]
LENGTHS = [4, 2, 1, 3]
MASK = torch.arange(4) < torch.tensor(LENGTHS).unsqueeze(1)
K = len(TAGS)


def proposal(dtype=torch.double, scale=1.5, pad=0, logits=None, chain=None):
    torch.manual_seed(0)
    drawn = torch.randn(4, 1, 4, K, dtype=dtype) * scale
    parts = [torch.randn(*shape, dtype=dtype) for shape in [(K, K), (K,), (K,)]]
    mask = MASK
    if pad:
        drawn = torch.cat([drawn, torch.full((4, 1, pad, K), 7.0, dtype=dtype)], 2)
        mask = torch.cat([MASK, torch.zeros(4, pad, dtype=torch.bool)], 1)
    logits = drawn if logits is None else logits
    space = sp.TagSequence(TAGS, scheme="bio")
    return CrfProposal(space, logits, mask, chain=chain or Chain(*parts), constrained=False)


def paths(length):
    return list(product(range(K), repeat=length))


def energies(p, row):
    """Score of every path of one row."""
    e, chain = p.logits[row, 0], p.chain
    return torch.stack(
        [
            chain.start[path[0]]
            + chain.end[path[-1]]
            + sum(e[t, tag] for t, tag in enumerate(path))
            + sum(chain.transitions[a, b] for a, b in pairwise(path))
            for path in paths(LENGTHS[row])
        ]
    )


def one_hot(p, row, path):
    y = torch.zeros(4, 1, p.logits.shape[2], K, dtype=p.logits.dtype)
    for t, tag in enumerate(path):
        y[row, 0, t, tag] = 1
    return y


def test_log_prob_of_every_path():
    p = proposal()
    p.logits.requires_grad_()
    assert p.log_z.requires_grad and not p.detach().log_z.requires_grad
    for row in range(4):
        expected = energies(p, row).log_softmax(0)
        y = torch.cat([one_hot(p, row, path) for path in paths(LENGTHS[row])], 1)
        assert torch.allclose(p.log_prob(y)[row], expected)
        assert expected.exp().sum().item() == pytest.approx(1)


def test_marginals():
    p = proposal()
    for row in range(4):
        q = energies(p, row).softmax(0)
        expected = sum(q[i] * one_hot(p, row, path)[row] for i, path in enumerate(paths(LENGTHS[row])))
        assert torch.allclose(p.mean[row], expected)
    assert p.mean[~MASK.unsqueeze(1)].abs().sum() == 0


def test_marginals_of_neighbours():
    p = proposal()
    for row in range(4):
        q = energies(p, row).softmax(0)
        expected = torch.zeros(3, K, K, dtype=torch.double)
        for i, path in enumerate(paths(LENGTHS[row])):
            for t, (a, b) in enumerate(pairwise(path)):
                expected[t, a, b] += q[i]
        assert torch.allclose(p.pairs[row], expected)


def test_sample_frequencies():
    p = proposal(scale=0.7)
    torch.manual_seed(3)
    n = 20000
    drawn = p.sample(n)
    assert drawn.shape == (4, n, 4, K) and drawn[~MASK.unsqueeze(1).expand(4, n, 4)].sum() == 0
    for row in range(4):
        length = LENGTHS[row]
        code = (drawn[row, :, :length].argmax(-1) * K ** torch.arange(length - 1, -1, -1)).sum(-1)
        counts = torch.bincount(code, minlength=K**length)
        expected = energies(p, row).softmax(0) * n
        chi_square = ((counts - expected) ** 2 / expected).sum().item()
        assert chi_square < (K**length - 1) + 5 * (2 * K**length) ** 0.5


def test_padding_does_not_matter():
    short, long = proposal(), proposal(pad=3)
    assert torch.allclose(short.log_z, long.log_z)
    assert torch.allclose(short.mean, long.mean[:, :, :4]) and long.mean[:, :, 4:].abs().sum() == 0
    assert torch.equal(short.mode, long.mode[:, :, :4])
    y = short.sample(5)
    padded = torch.cat([y, torch.ones(4, 5, 3, K, dtype=torch.double)], 2)
    assert torch.allclose(short.log_prob(y), long.log_prob(padded))


def test_without_a_mask_every_token_counts():
    p = proposal()
    whole = CrfProposal(p.space, p.logits[:1], None, chain=p.chain)
    assert torch.allclose(whole.log_z, p.log_z[:1]) and torch.allclose(whole.mean, p.mean[:1])


def test_gradients():
    leaves = [t.clone().requires_grad_() for t in (proposal().logits, *proposal().chain)]
    y = torch.softmax(torch.randn(4, 3, 4, K, dtype=torch.double), -1)

    def made(logits, *chain):
        return proposal(logits=logits, chain=Chain(*chain))

    assert torch.autograd.gradcheck(lambda *a: made(*a).log_prob(y), leaves)
    assert torch.autograd.gradcheck(lambda *a: made(*a).mean, leaves)
    assert torch.autograd.gradgradcheck(lambda *a: made(*a).log_prob(y[:, :1]).sum(), leaves)


def test_relaxed_log_prob_is_affine_in_each_token():
    p = proposal()
    a, b = p.sample(3), p.sample(3)
    first = torch.zeros(4, 1, 4, 1, dtype=torch.double)
    first[:, :, 0] = 1
    mixed, b = 0.3 * first * a + 0.7 * first * b + (1 - first) * a, first * b + (1 - first) * a
    assert torch.allclose(p.log_prob(mixed), 0.3 * p.log_prob(a) + 0.7 * p.log_prob(b))


def test_relaxed_samples_carry_gradient_and_follow_the_marginals():
    p = proposal(scale=0.5)
    p.logits.requires_grad_()
    torch.manual_seed(0)
    y = p.rsample(4000, temperature=0.1)
    assert torch.allclose(y.detach().mean(1, keepdim=True), p.mean.detach(), atol=0.05)
    assert torch.autograd.grad(y[..., 1].sum(), p.logits)[0].abs().sum() > 0


def test_long_peaked_sequences_stay_finite():
    torch.manual_seed(0)
    logits = torch.randn(2, 1, 200, K) * 60
    chain = Chain(torch.randn(K, K) * 20, torch.zeros(K), torch.zeros(K))
    p = CrfProposal(sp.TagSequence(TAGS), logits.requires_grad_(), None, chain=chain)
    p.log_prob(p.mode).sum().backward()
    assert logits.grad.isfinite().all() and p.mean.isfinite().all()
    assert torch.allclose(p.mean.sum(-1), torch.ones(2, 1, 200), atol=1e-3)
    # A draw that is by far worse than the best path would be no draw from this distribution.
    assert (p.log_prob(p.sample(50)) > p.log_prob(replace(p, constrained=False).mode) - 60).all()


@pytest.mark.parametrize("scale", [10, 50, 100, 1000])
def test_scores_that_are_far_apart_are_exact(scale):
    """Float32 and its gradient against sums in log space in float64; scores up to ±`scale`."""
    torch.manual_seed(0)
    emissions, transitions = scale * (2 * torch.rand(8, 12, 6) - 1), scale * (2 * torch.rand(6, 6) - 1)
    mask = torch.arange(12) < torch.tensor([12, 1, 2, 5, 9, 12, 3, 11]).unsqueeze(1)
    found = []
    for dtype in (torch.float, torch.double):
        parts = [x.detach().to(dtype).requires_grad_() for x in (emissions, transitions)]
        chain = Chain(parts[1], parts[1][0], parts[1][1])
        if dtype == torch.float:
            z = CrfProposal(sp.TagSequence(list("abcdef")), parts[0].unsqueeze(1), mask, chain=chain).log_z
        else:
            alpha = chain.start + parts[0][:, 0]
            for t in range(1, 12):
                after = torch.logsumexp(alpha.unsqueeze(2) + chain.transitions, 1) + parts[0][:, t]
                alpha = torch.where(mask[:, t, None], after, alpha)
            z = torch.logsumexp(alpha + chain.end, 1)
        found.append([z.double(), *(g.double() for g in torch.autograd.grad(z.sum(), parts))])
    for ours, exact in zip(*found, strict=True):
        torch.testing.assert_close(ours, exact, rtol=1e-5, atol=1e-3)


def test_allennlp_agrees():
    from allennlp_light.modules.conditional_random_field import ConditionalRandomField

    p = proposal()
    other = ConditionalRandomField(K).double()
    with torch.no_grad():
        other.transitions.copy_(p.chain.transitions)
        other.start_transitions.copy_(p.chain.start)
        other.end_transitions.copy_(p.chain.end)
    gold = p.sample(1)
    expected = other(p.logits[:, 0], gold[:, 0].argmax(-1), MASK)
    assert torch.allclose(p.log_prob(gold).sum(), expected)
    tags = [path for path, _ in other.viterbi_tags(p.logits[:, 0], MASK)]
    assert [row[:n] for row, n in zip(p.mode[:, 0].argmax(-1).tolist(), LENGTHS, strict=True)] == tags


def test_labels_have_no_chain():
    from spen_plugins.testing.tasks import ToyLabels

    with pytest.raises(sp.ConfigError, match="tag sequences"):
        Crf(Crf.Config(), ToyLabels(), sp.FeatureNetwork(None, None))
