"""Charts against enumeration of all trees, by sets of spans that know no recursion over widths."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import comb, log

import pytest
import torch

from spen_infnet.parsing import chart

LABELS = 2
WORDS = 5
PLACES = chart.count_places(WORDS)


def place(first, last):
    return chart.count_places(last) + first


@cache
def binary_trees(first, last):
    """The places of each binary tree of a span."""
    whole = (place(first, last),)
    if first == last:
        return [whole]
    halves = [(binary_trees(first, cut), binary_trees(cut + 1, last)) for cut in range(first, last)]
    return [whole + a + b for left, right in halves for a in left for b in right]


@cache
def trees(words):
    """Each set of spans that do not cross, as a row of booleans over places."""
    spans = list(zip(*(at.tolist() for at in chart.find_ends(words)), strict=True))
    found = [0]
    for number, (a, b) in enumerate(spans):
        crossing = sum(1 << i for i, (c, d) in enumerate(spans) if a < c <= b < d or c < a <= d < b)
        found += [some | 1 << number for some in found if not some & crossing]
    return (torch.tensor(found).unsqueeze(1) >> torch.arange(len(spans))) & 1 == 1


@cache
def labelled(words):
    """Every tree with every choice of labels, `(tree, place)`: 0 or 1 + the label."""
    choices = ([range(1, LABELS + 1) if there else (0,) for there in row] for row in trees(words).tolist())
    return torch.tensor([tree for choice in choices for tree in product(*choice)])


def make_scores(words, batch=1, seed=0):
    generator = torch.Generator().manual_seed(seed)
    size = (batch, chart.count_places(words), LABELS)
    return torch.randn(size, generator=generator, dtype=torch.double, requires_grad=True)


def score(scores, tree):
    """Scores of trees `(tree, place)` by one sentence's `(place, label)`."""
    padded = torch.cat([torch.zeros_like(scores[:, :1]), scores], 1)
    return padded.gather(1, tree.T).sum(0)


def test_places():
    for words in range(12):
        first, last = chart.find_ends(words)
        assert [place(a, b) for a, b in zip(first.tolist(), last.tolist(), strict=True)] == list(range(len(first)))
        assert chart.count_words(len(first)) == words
        assert chart.count_words(len(first) + words) == words  # one fewer than the next sentence has


@pytest.mark.parametrize("words", range(1, 7))
def test_binary_trees(words):
    scores = make_scores(words)
    every = binary_trees(0, words - 1)
    assert len(every) == comb(2 * words - 2, words - 1) // words  # Catalan numbers
    spans = chart.log_sum(scores)
    lengths = torch.tensor([words])
    sums = torch.stack([spans[0, list(tree)].sum() for tree in every])
    torch.testing.assert_close(chart.fold(spans, spans, lengths, chart.log_sum)[0], sums.logsumexp(0))
    torch.testing.assert_close(chart.fold(spans, spans, lengths, chart.best)[0], sums.max())
    gradient = torch.autograd.grad(chart.fold(spans, spans, lengths, chart.log_sum).sum(), scores)[0]
    wanted = torch.zeros(len(spans[0]), dtype=torch.double)
    for tree, p in zip(every, sums.softmax(0), strict=True):
        wanted[list(tree)] += p
    torch.testing.assert_close(gradient[0], wanted[:, None] * scores[0].softmax(-1))


@pytest.mark.parametrize("words", [1, 2, 3, 7, 40])
def test_catalan_numbers(words):
    spans = chart.log_sum(torch.zeros(1, chart.count_places(words), 3, dtype=torch.double))
    found = chart.fold(spans, spans, torch.tensor([words]), chart.log_sum).item()
    assert found == pytest.approx(log(comb(2 * words - 2, words - 1) // words) + (2 * words - 1) * log(3), abs=1e-10)


@pytest.mark.parametrize("words", range(1, 5))
def test_sums_marginals_and_the_best(words):
    scores, lengths = make_scores(words), torch.tensor([words])
    every = labelled(words)
    assert chart.are_trees(every > 0).all()
    total = score(scores[0], every)
    torch.testing.assert_close(chart.log_partition(scores, lengths)[0], total.logsumexp(0))
    one_hot = torch.nn.functional.one_hot(every, LABELS + 1)[..., 1:].double()
    wanted = torch.einsum("t,tpl->pl", total.softmax(0), one_hot)
    found = chart.marginals(scores, lengths)
    torch.testing.assert_close(found[0], wanted)
    assert torch.equal(chart.best_trees(scores, lengths)[0], every[total.argmax()])
    weighted = (wanted * torch.arange(1.0, 1 + wanted.numel()).view_as(wanted)).sum()
    [direct] = torch.autograd.grad(weighted, scores, retain_graph=True)
    [ours] = torch.autograd.grad((found[0] * torch.arange(1.0, 1 + wanted.numel()).view_as(wanted)).sum(), scores)
    torch.testing.assert_close(ours, direct)


@pytest.mark.parametrize("words", [5, 6])
def test_larger_trees_without_labels(words):
    spans = make_scores(words)[..., 0].detach()
    total = trees(words).double() @ spans[0]
    lengths = torch.tensor([words])
    torch.testing.assert_close(chart.log_partition(spans.unsqueeze(-1), lengths)[0], total.logsumexp(0))
    assert torch.equal(chart.best_trees(spans.unsqueeze(-1), lengths)[0] > 0, trees(words)[total.argmax()])


def test_sets_of_spans_that_cross():
    every = (torch.arange(2**10).unsqueeze(1) >> torch.arange(10)) & 1 == 1
    known = {tuple(row) for row in trees(4).tolist()}
    assert chart.are_trees(every).tolist() == [tuple(row) in known for row in every.tolist()]


def test_gradients():
    lengths = torch.tensor([4, 2])
    scores = make_scores(4, 2)
    torch.autograd.gradcheck(lambda s: chart.log_partition(s, lengths), (scores,), fast_mode=True)
    torch.autograd.gradcheck(lambda s: chart.marginals(s, lengths), (scores,), fast_mode=True)


def test_padding_and_order():
    scores = make_scores(WORDS, 4)
    lengths = torch.tensor([5, 3, 1, 0])
    order = torch.tensor([2, 0, 3, 1])
    for compute in (chart.log_partition, chart.marginals, chart.best_trees):
        together = compute(scores, lengths)
        assert torch.allclose(compute(scores[order], lengths[order]), together[order], rtol=0, atol=1e-12)
        for row, words in enumerate(lengths.tolist()):
            size = chart.count_places(words)
            alone = compute(scores[row : row + 1, :size], lengths[row : row + 1])[0]
            one = together[row]
            if one.dim():
                assert not one[size:].any()
                one = one[:size]
            assert torch.allclose(one, alone, rtol=0, atol=1e-12)


def test_draws():
    words, n = 3, 20_000
    scores = make_scores(words, 2).detach()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        drawn = chart.sample_trees(scores, torch.tensor([3, 2]), n)
    for row, length in enumerate((3, 2)):
        every = labelled(length)
        p = score(scores[row, : every.shape[1]], every).softmax(0)
        assert not drawn[row, :, every.shape[1] :].any()
        code = (LABELS + 1) ** torch.arange(every.shape[1])
        number = {c: i for i, c in enumerate((every * code).sum(1).tolist())}
        found = [number[c] for c in (drawn[row, :, : every.shape[1]] * code).sum(1).tolist()]
        counts = torch.bincount(torch.tensor(found), minlength=len(every)).double()
        chi = ((counts - n * p).square() / (n * p)).sum().item()
        free = len(every) - 1
        assert abs(chi - free) < 4 * (2 * free) ** 0.5


def test_long_sentences():
    """Many words in float32: marginals are probabilities, and the best tree is one."""
    scores = make_scores(150).float()
    lengths = torch.tensor([150])
    p = chart.marginals(3 * scores.detach(), lengths)
    assert p.min() >= 0
    assert p.sum(-1).max() <= 1 + 1e-3
    assert chart.are_trees(chart.best_trees(scores, lengths) > 0).all()
