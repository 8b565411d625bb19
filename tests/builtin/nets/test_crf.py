"""The chain against enumeration of all tag sequences, and against allennlp-light."""

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


def make_proposal(dtype=torch.double, scale=1.5, pad=0, logits=None, chain=None):
    torch.manual_seed(0)
    emissions = torch.randn(4, 1, 4, K, dtype=dtype) * scale
    parts = [torch.randn(*shape, dtype=dtype) for shape in [(K, K), (K,), (K,)]]
    mask = MASK
    if pad:
        emissions = torch.cat([emissions, torch.full((4, 1, pad, K), 7.0, dtype=dtype)], 2)
        mask = torch.cat([MASK, torch.zeros(4, pad, dtype=torch.bool)], 1)
    logits = emissions if logits is None else logits
    space = sp.TagSequence(TAGS, scheme="bio")
    return CrfProposal(space, logits, mask, chain=chain or Chain(*parts), constrained=False)


def list_paths(length):
    return list(product(range(K), repeat=length))


def score_paths(p, row):
    """Score of every path of one row."""
    e, chain = p.logits[row, 0], p.chain
    return torch.stack(
        [
            chain.start[path[0]]
            + chain.end[path[-1]]
            + sum(e[t, tag] for t, tag in enumerate(path))
            + sum(chain.transitions[a, b] for a, b in pairwise(path))
            for path in list_paths(LENGTHS[row])
        ]
    )


def one_hot(p, row, path):
    y = torch.zeros(4, 1, p.logits.shape[2], K, dtype=p.logits.dtype)
    for t, tag in enumerate(path):
        y[row, 0, t, tag] = 1
    return y


def test_log_prob_of_every_path():
    p = make_proposal()
    p.logits.requires_grad_()
    assert p.log_z.requires_grad and not p.detach().log_z.requires_grad
    for row in range(4):
        expected = score_paths(p, row).log_softmax(0)
        y = torch.cat([one_hot(p, row, path) for path in list_paths(LENGTHS[row])], 1)
        assert torch.allclose(p.log_prob(y)[row], expected)
        assert expected.exp().sum().item() == pytest.approx(1)


def test_marginals():
    p = make_proposal()
    for row in range(4):
        q = score_paths(p, row).softmax(0)
        expected = sum(q[i] * one_hot(p, row, path)[row] for i, path in enumerate(list_paths(LENGTHS[row])))
        assert torch.allclose(p.mean[row], expected)
    assert p.mean[~MASK.unsqueeze(1)].abs().sum() == 0


def test_marginals_of_neighbours():
    p = make_proposal()
    for row in range(4):
        q = score_paths(p, row).softmax(0)
        expected = torch.zeros(3, K, K, dtype=torch.double)
        for i, path in enumerate(list_paths(LENGTHS[row])):
            for t, (a, b) in enumerate(pairwise(path)):
                expected[t, a, b] += q[i]
        assert torch.allclose(p.pairs[row], expected)


def test_sample_frequencies():
    p = make_proposal(scale=0.7)
    torch.manual_seed(3)
    n = 20000
    samples = p.sample(n)
    assert samples.shape == (4, n, 4, K) and samples[~MASK.unsqueeze(1).expand(4, n, 4)].sum() == 0
    for row in range(4):
        length = LENGTHS[row]
        code = (samples[row, :, :length].argmax(-1) * K ** torch.arange(length - 1, -1, -1)).sum(-1)
        counts = torch.bincount(code, minlength=K**length)
        expected = score_paths(p, row).softmax(0) * n
        chi_square = ((counts - expected) ** 2 / expected).sum().item()
        assert chi_square < (K**length - 1) + 5 * (2 * K**length) ** 0.5


def test_padding_does_not_matter():
    proposal, padded_proposal = make_proposal(), make_proposal(pad=3)
    assert torch.allclose(proposal.log_z, padded_proposal.log_z)
    assert (
        torch.allclose(proposal.mean, padded_proposal.mean[:, :, :4])
        and padded_proposal.mean[:, :, 4:].abs().sum() == 0
    )
    assert torch.equal(proposal.mode, padded_proposal.mode[:, :, :4])
    y = proposal.sample(5)
    padded = torch.cat([y, torch.ones(4, 5, 3, K, dtype=torch.double)], 2)
    assert torch.allclose(proposal.log_prob(y), padded_proposal.log_prob(padded))


def test_without_a_mask_every_token_counts():
    p = make_proposal()
    unmasked = CrfProposal(p.space, p.logits[:1], None, chain=p.chain)
    assert torch.allclose(unmasked.log_z, p.log_z[:1]) and torch.allclose(unmasked.mean, p.mean[:1])


def test_gradients():
    leaves = [t.clone().requires_grad_() for t in (make_proposal().logits, *make_proposal().chain)]
    y = torch.softmax(torch.randn(4, 3, 4, K, dtype=torch.double), -1)

    def make(logits, *chain):
        return make_proposal(logits=logits, chain=Chain(*chain))

    assert torch.autograd.gradcheck(lambda *a: make(*a).log_prob(y), leaves)
    assert torch.autograd.gradcheck(lambda *a: make(*a).mean, leaves)
    assert torch.autograd.gradgradcheck(lambda *a: make(*a).log_prob(y[:, :1]).sum(), leaves)


def test_relaxed_log_prob_is_affine_in_each_token():
    p = make_proposal()
    a, b = p.sample(3), p.sample(3)
    is_first = torch.zeros(4, 1, 4, 1, dtype=torch.double)
    is_first[:, :, 0] = 1
    mixed, b = 0.3 * is_first * a + 0.7 * is_first * b + (1 - is_first) * a, is_first * b + (1 - is_first) * a
    assert torch.allclose(p.log_prob(mixed), 0.3 * p.log_prob(a) + 0.7 * p.log_prob(b))


def test_relaxed_samples_carry_gradient_and_follow_the_marginals():
    p = make_proposal(scale=0.5)
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
    # A sample that is far worse than the best path can't be from this distribution.
    assert (p.log_prob(p.sample(50)) > p.log_prob(replace(p, constrained=False).mode) - 60).all()


@pytest.mark.parametrize("scale", [10, 50, 100, 1000])
def test_scores_are_exact_over_a_wide_range(scale):
    """Float32 and its gradient against sums in log space in float64; scores up to ±`scale`."""
    torch.manual_seed(0)
    emissions, transitions = scale * (2 * torch.rand(8, 12, 6) - 1), scale * (2 * torch.rand(6, 6) - 1)
    mask = torch.arange(12) < torch.tensor([12, 1, 2, 5, 9, 12, 3, 11]).unsqueeze(1)
    results = []
    for dtype in (torch.float, torch.double):
        parts = [x.detach().to(dtype).requires_grad_() for x in (emissions, transitions)]
        chain = Chain(parts[1], parts[1][0], parts[1][1])
        if dtype == torch.float:
            z = CrfProposal(sp.TagSequence(list("abcdef")), parts[0].unsqueeze(1), mask, chain=chain).log_z
        else:
            alpha = chain.start + parts[0][:, 0]
            for t in range(1, 12):
                next_alpha = torch.logsumexp(alpha.unsqueeze(2) + chain.transitions, 1) + parts[0][:, t]
                alpha = torch.where(mask[:, t, None], next_alpha, alpha)
            z = torch.logsumexp(alpha + chain.end, 1)
        results.append([z.double(), *(g.double() for g in torch.autograd.grad(z.sum(), parts))])
    for values, exact in zip(*results, strict=True):
        torch.testing.assert_close(values, exact, rtol=1e-5, atol=1e-3)


def test_allennlp_agrees():
    from allennlp_light.modules.conditional_random_field import ConditionalRandomField

    p = make_proposal()
    reference = ConditionalRandomField(K).double()
    with torch.no_grad():
        reference.transitions.copy_(p.chain.transitions)
        reference.start_transitions.copy_(p.chain.start)
        reference.end_transitions.copy_(p.chain.end)
    gold = p.sample(1)
    expected = reference(p.logits[:, 0], gold[:, 0].argmax(-1), MASK)
    assert torch.allclose(p.log_prob(gold).sum(), expected)
    tags = [path for path, _ in reference.viterbi_tags(p.logits[:, 0], MASK)]
    assert [row[:n] for row, n in zip(p.mode[:, 0].argmax(-1).tolist(), LENGTHS, strict=True)] == tags


def test_label_sets_are_rejected():
    from spen_plugins.testing.tasks import ToyLabels

    with pytest.raises(sp.ConfigError, match="tag sequences"):
        Crf(Crf.Config(), ToyLabels(), sp.FeatureNetwork(None, None))
