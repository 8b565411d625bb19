"""Charts against enumeration of all trees as sets of spans, without recursion over widths."""

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


def find_place(first, last):
    return chart.count_places(last) + first


@cache
def binary_trees(first, last):
    """The places of each binary tree of a span."""
    root = (find_place(first, last),)
    if first == last:
        return [root]
    halves = [(binary_trees(first, cut), binary_trees(cut + 1, last)) for cut in range(first, last)]
    return [root + a + b for left, right in halves for a in left for b in right]


@cache
def trees(words):
    """Each set of spans that don't cross, as a row of booleans over places."""
    spans = list(zip(*(ends.tolist() for ends in chart.find_ends(words)), strict=True))
    codes = [0]
    for number, (a, b) in enumerate(spans):
        crossing = sum(1 << i for i, (c, d) in enumerate(spans) if a < c <= b < d or c < a <= d < b)
        codes += [code | 1 << number for code in codes if not code & crossing]
    return (torch.tensor(codes).unsqueeze(1) >> torch.arange(len(spans))) & 1 == 1


@cache
def labelled(words):
    """Every tree with every choice of labels, `(tree, place)`: 0 or 1 + the label."""
    choices = ([range(1, LABELS + 1) if is_span else (0,) for is_span in row] for row in trees(words).tolist())
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
        assert [find_place(a, b) for a, b in zip(first.tolist(), last.tolist(), strict=True)] == list(range(len(first)))
        assert chart.count_words(len(first)) == words
        assert chart.count_words(len(first) + words) == words  # one fewer than for the next length


@pytest.mark.parametrize("words", range(1, 7))
def test_binary_trees(words):
    scores = make_scores(words)
    all_trees = binary_trees(0, words - 1)
    assert len(all_trees) == comb(2 * words - 2, words - 1) // words  # Catalan numbers
    spans = chart.log_sum(scores)
    lengths = torch.tensor([words])
    sums = torch.stack([spans[0, list(tree)].sum() for tree in all_trees])
    torch.testing.assert_close(chart.fold(spans, spans, lengths, chart.log_sum)[0], sums.logsumexp(0))
    torch.testing.assert_close(chart.fold(spans, spans, lengths, chart.best)[0], sums.max())
    gradient = torch.autograd.grad(chart.fold(spans, spans, lengths, chart.log_sum).sum(), scores)[0]
    expected = torch.zeros(len(spans[0]), dtype=torch.double)
    for tree, p in zip(all_trees, sums.softmax(0), strict=True):
        expected[list(tree)] += p
    torch.testing.assert_close(gradient[0], expected[:, None] * scores[0].softmax(-1))


@pytest.mark.parametrize("words", [1, 2, 3, 7, 40])
def test_catalan_numbers(words):
    spans = chart.log_sum(torch.zeros(1, chart.count_places(words), 3, dtype=torch.double))
    log_count = chart.fold(spans, spans, torch.tensor([words]), chart.log_sum).item()
    assert log_count == pytest.approx(
        log(comb(2 * words - 2, words - 1) // words) + (2 * words - 1) * log(3), abs=1e-10
    )


@pytest.mark.parametrize("words", range(1, 5))
def test_sums_marginals_and_the_best(words):
    scores, lengths = make_scores(words), torch.tensor([words])
    all_trees = labelled(words)
    assert chart.are_trees(all_trees > 0).all()
    total = score(scores[0], all_trees)
    torch.testing.assert_close(chart.log_partition(scores, lengths)[0], total.logsumexp(0))
    one_hot = torch.nn.functional.one_hot(all_trees, LABELS + 1)[..., 1:].double()
    expected = torch.einsum("t,tpl->pl", total.softmax(0), one_hot)
    marginals = chart.marginals(scores, lengths)
    torch.testing.assert_close(marginals[0], expected)
    assert torch.equal(chart.best_trees(scores, lengths)[0], all_trees[total.argmax()])
    weighted = (expected * torch.arange(1.0, 1 + expected.numel()).view_as(expected)).sum()
    [expected_gradient] = torch.autograd.grad(weighted, scores, retain_graph=True)
    [gradient] = torch.autograd.grad(
        (marginals[0] * torch.arange(1.0, 1 + expected.numel()).view_as(expected)).sum(), scores
    )
    torch.testing.assert_close(gradient, expected_gradient)


@pytest.mark.parametrize("words", [5, 6])
def test_larger_trees_without_labels(words):
    spans = make_scores(words)[..., 0].detach()
    total = trees(words).double() @ spans[0]
    lengths = torch.tensor([words])
    torch.testing.assert_close(chart.log_partition(spans.unsqueeze(-1), lengths)[0], total.logsumexp(0))
    assert torch.equal(chart.best_trees(spans.unsqueeze(-1), lengths)[0] > 0, trees(words)[total.argmax()])


def test_sets_of_spans_that_cross():
    all_trees = (torch.arange(2**10).unsqueeze(1) >> torch.arange(10)) & 1 == 1
    valid = {tuple(row) for row in trees(4).tolist()}
    assert chart.are_trees(all_trees).tolist() == [tuple(row) in valid for row in all_trees.tolist()]


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
            values = together[row]
            if values.dim():
                assert not values[size:].any()
                values = values[:size]
            assert torch.allclose(values, alone, rtol=0, atol=1e-12)


def test_draws():
    words, n = 3, 20_000
    scores = make_scores(words, 2).detach()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        samples = chart.sample_trees(scores, torch.tensor([3, 2]), n)
    for row, length in enumerate((3, 2)):
        all_trees = labelled(length)
        p = score(scores[row, : all_trees.shape[1]], all_trees).softmax(0)
        assert not samples[row, :, all_trees.shape[1] :].any()
        code = (LABELS + 1) ** torch.arange(all_trees.shape[1])
        numbers = {c: i for i, c in enumerate((all_trees * code).sum(1).tolist())}
        tree_numbers = [numbers[c] for c in (samples[row, :, : all_trees.shape[1]] * code).sum(1).tolist()]
        counts = torch.bincount(torch.tensor(tree_numbers), minlength=len(all_trees)).double()
        chi = ((counts - n * p).square() / (n * p)).sum().item()
        freedom = len(all_trees) - 1
        assert abs(chi - freedom) < 4 * (2 * freedom) ** 0.5


def test_training_after_prediction():
    """Tables that are cached under `inference_mode` serve training."""
    chart.find_ends.cache_clear(), chart.sort_by_width.cache_clear()
    scores, lengths = make_scores(3), torch.tensor([3])
    with torch.inference_mode():
        chart.log_partition(scores, lengths)
    chart.log_partition(scores.detach().clone().requires_grad_(), lengths).sum().backward()


def test_long_sentences():
    """Many words in float32: marginals are probabilities, and the best tree is one."""
    scores = make_scores(150).float()
    lengths = torch.tensor([150])
    p = chart.marginals(3 * scores.detach(), lengths)
    assert p.min() >= 0
    assert p.sum(-1).max() <= 1 + 1e-3
    assert chart.are_trees(chart.best_trees(scores, lengths) > 0).all()
