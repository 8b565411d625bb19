"""Output spaces against enumeration and closed forms."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

import spen_plugins as sp
from spen_plugins.nn import take_vectors
from spen_plugins.spaces import LabelSet, SparseLabels, TagSequence

LABELS = LabelSet(["a", "b", "c"])
TAGS = TagSequence(["x", "y"])


def list_label_sets(n: int = 3) -> torch.Tensor:
    """All label sets, `(1, 2^n, n)`."""
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=n)), dtype=torch.float64).unsqueeze(0)


def list_sequences(tokens: int, tags: int = 2) -> torch.Tensor:
    """All tag sequences one-hot, `(1, tags^tokens, tokens, tags)`."""
    numbers = torch.tensor(list(itertools.product(range(tags), repeat=tokens)))
    return torch.nn.functional.one_hot(numbers, tags).double().unsqueeze(0)


def test_label_probabilities_are_products_and_sum_to_one():
    logits = torch.randn(1, 1, 3, dtype=torch.float64)
    y, p = list_label_sets(), logits.sigmoid()
    expected = torch.where(y > 0, p, 1 - p).prod(-1).log()
    torch.testing.assert_close(LABELS.independent(logits).log_prob(y), expected)
    assert LABELS.independent(logits).log_prob(y).exp().sum().item() == pytest.approx(1)


def test_extreme_logits_have_finite_log_probabilities():
    logits = torch.tensor([[[800.0, -800.0, 0.0]]], requires_grad=True)
    value = LABELS.independent(logits).log_prob(torch.tensor([[[0.0, 1.0, 1.0]]]))
    value.sum().backward()
    assert value.item() == pytest.approx(-1600 - math.log(2))
    assert torch.isfinite(logits.grad).all()


def test_tag_probabilities_are_products_without_padding():
    logits = torch.randn(1, 1, 4, 2, dtype=torch.float64)
    mask = torch.tensor([[True, True, True, False]])
    y = torch.cat([list_sequences(3), torch.zeros(1, 8, 1, 2, dtype=torch.float64)], 2)
    p = logits.softmax(-1)[:, :, :3]
    expected = (y[:, :, :3] * p).sum(-1).prod(-1).log()
    torch.testing.assert_close(TAGS.independent(logits, mask).log_prob(y), expected)
    assert TAGS.independent(logits, mask).log_prob(y).exp().sum().item() == pytest.approx(1)
    # Also for an output that is not zero on padding, as after an optimiser's step.
    y[:, :, 3] = 0.5
    torch.testing.assert_close(TAGS.independent(logits, mask).log_prob(y), expected)


@pytest.mark.parametrize("space", [LABELS, TAGS])
def test_many_logits_yield_one_log_probability_each(space):
    shape = (3,) if space is LABELS else (4, 2)
    logits = torch.randn(2, 5, *shape, dtype=torch.float64)
    y = space.independent(logits[:, :1]).sample(5)
    single = torch.cat([space.independent(logits[:, i : i + 1]).log_prob(y[:, i : i + 1]) for i in range(5)], 1)
    torch.testing.assert_close(space.independent(logits).log_prob(y), single)


def chi_square(counts: torch.Tensor, expected: torch.Tensor) -> float:
    """The χ² statistic of counts against their expectations."""
    return ((counts - expected).square() / expected).sum().item()


def draw_dense(space, logits, n):
    return space.independent(logits).sample(n)


def draw_bags(space, logits, n):
    return space.independent(logits).sample_sparse(n).dense()


def draw_one_by_one(space, logits, n):
    """Each call draws a new number of labels that are on, as it should."""
    return torch.cat([space.independent(logits).sample_sparse(1).dense() for _ in range(n)], 1)


@pytest.mark.parametrize(
    ("space", "logits", "n", "draw", "outputs", "limit"),
    [
        (LABELS, [[[-2.0, 0.0, 1.5]]], 40_000, draw_dense, list_label_sets(), 24.3),
        # Two labels are likely (drawn one by one) and two not (events); the second example has other odds.
        (
            LabelSet(list("abcd")),
            [[[-2.0, 1.0, -0.3, 1.5]], [[0.4, -1.0, -3.0, -0.1]]],
            40_000,
            draw_bags,
            list_label_sets(4),
            37.7,
        ),
        (LABELS, [[[-1.0, 0.5, -0.2]]], 3_000, draw_one_by_one, list_label_sets(), 24.3),
        (TAGS, [[[[0.0, 1.0], [2.0, -1.0], [0.0, 0.0]]]], 40_000, draw_dense, list_sequences(3), 24.3),
    ],
    ids=["labels", "bags", "bags of one", "tags"],
)
def test_samples_have_the_frequencies_of_whole_outputs(space, logits, n, draw, outputs, limit):
    """χ² with 7 degrees of freedom is above 24.3 once in a thousand, with 15 above 37.7."""
    logits = torch.tensor(logits)
    sets = draw(space, logits, n)
    expected = space.independent(logits.double()).log_prob(outputs.expand(len(logits), *outputs.shape[1:])).exp() * n
    for row, row_expected in zip(sets, expected, strict=True):
        is_equal = (row.flatten(1).unsqueeze(1) == outputs[0].flatten(1)).all(-1)
        assert chi_square(is_equal.sum(0), row_expected) < limit and is_equal.sum() == n


def test_bags_have_the_frequencies_of_labels_and_of_pairs():
    labels, n, batch = 300, 4_000, 3
    space = LabelSet([str(i) for i in range(labels)])
    logits = 2 * torch.randn(batch, 1, labels) - 3
    y, p = space.independent(logits).sample_sparse(n).dense(torch.float64), logits.double().sigmoid()[:, 0]
    frequent = p * n > 5
    z = (y.sum(1) - n * p)[frequent] / (n * p * (1 - p))[frequent].sqrt()
    count = len(z)
    assert abs(z.square().sum().item() - count) < 3.3 * (2 * count) ** 0.5  # χ², near normal with so many degrees
    pair_counts = y.transpose(1, 2) @ y
    expected = n * p.unsqueeze(2) * p.unsqueeze(1)
    pairs = (expected > 5) & torch.ones(labels, labels).triu(1).bool()
    share = expected / n
    z = (pair_counts - expected)[pairs] / (expected * (1 - share))[pairs].sqrt()
    # Pairs that share a label are not independent, which widens the spread of the sum.
    assert z.square().mean().item() == pytest.approx(1, abs=0.1)
    assert abs(z.mean().item()) < 0.2


def test_bags_are_exact_where_rates_are_tiny():
    """44000 labels of p = 1e-4 behind 6000 of p = 1/2, for 16 examples: sums reach 66000, where float32 has steps of
    1/128, so that one label in 78 would take its neighbours' share."""
    labels, likely, batch, n, p = 50_000, 6_000, 16, 62, 1e-4
    logits = torch.full((batch, 1, labels), math.log(p) - math.log1p(-p))
    logits[..., :likely] = 0.0
    bags = LabelSet([str(i) for i in range(labels)]).independent(logits).sample_sparse(n)
    tail = bags.indices >= likely
    expected = batch * n * (labels - likely) * p
    assert abs(tail.sum().item() - expected) < 4 * expected**0.5
    expected = batch * (labels - likely) * (1 - (1 - p) ** n)
    assert abs(bags.places[tail].unique().numel() - expected) < 4 * expected**0.5
    counts = bags.indices[~tail].bincount(minlength=likely)
    # The variance of a label's number is half of its mean, so this is χ² with 6000 degrees of freedom.
    statistic = 2 * chi_square(counts, torch.full((likely,), batch * n / 2))
    assert abs(statistic - likely) < 4 * (2 * likely) ** 0.5


def test_bags_at_the_ends_of_probability():
    space = LabelSet(list("abcdef"))
    logits = torch.tensor([[[-math.inf, -800.0, math.inf, 800.0, 40.0, -40.0]]])
    bags = space.independent(logits).sample_sparse(50)
    assert (bags.dense() == torch.tensor([0.0, 0, 1, 1, 1, 0])).all()
    finite = space.independent(logits[..., 3:])
    assert torch.isfinite(finite.log_prob(finite.sample_sparse(5))).all()
    assert not space.independent(torch.full((2, 1, 6), -math.inf)).sample_sparse(3).indices.numel()
    diverged = space.independent(torch.full((2, 1, 6), math.nan))
    assert not diverged.sample_sparse(3).indices.numel(), "a loss says what went wrong"


@pytest.mark.parametrize(("batch", "n", "labels"), [(1, 1, 1), (1, 3, 5), (3, 1, 4), (4, 2, 70)])
def test_bags_equal_the_dense_tensor(batch, n, labels):
    space = LabelSet([str(i) for i in range(labels)])
    logits = torch.randn(batch, 1, labels, dtype=torch.float64)
    bags = space.independent(logits).sample_sparse(n)
    y = bags.dense(torch.float64)
    assert y.shape == bags.shape == (batch, n, labels) and bags.indices.numel() == y.sum()
    converted = SparseLabels.from_dense(y)
    assert torch.equal(converted.indices, bags.indices) and torch.equal(converted.offsets, bags.offsets)
    torch.testing.assert_close(space.independent(logits).log_prob(bags), space.independent(logits).log_prob(y))
    samples = space.independent(logits).sample(2)
    joined = SparseLabels.from_dense(samples).join(bags)
    assert torch.equal(joined.dense(torch.float64), torch.cat([samples, y], 1))
    weight = torch.randn(labels, 3, dtype=torch.float64)
    torch.testing.assert_close(joined.vectors(weight), joined.dense(torch.float64).flatten(0, 1) @ weight)


def test_bag_sums_can_be_differentiated_twice():
    bags = SparseLabels.from_dense(torch.tensor([[[1.0, 0, 1], [0, 0, 0]], [[0, 1, 1], [1, 1, 1]]]))
    weight = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    scores = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)

    def value(weight, scores):
        return torch.tanh(bags.vectors(weight)).sum(-1) + torch.tanh(bags.sums(scores)).flatten()

    assert torch.autograd.gradcheck(value, (weight, scores))
    assert torch.autograd.gradgradcheck(value, (weight, scores))


@pytest.mark.parametrize(
    ("space", "logits", "probabilities"),
    [
        (LABELS, torch.tensor([[[-2.0, 0.0, 1.5]]]), torch.sigmoid),
        (TAGS, torch.tensor([[[[0.0, 1.0], [2.0, -1.0]]]]), lambda logits: logits.softmax(-1)),
    ],
    ids=["labels", "tags"],
)
def test_relaxed_samples_round_to_the_right_frequencies(space, logits, probabilities):
    rounded = space.round(space.independent(logits).rsample(40_000, temperature=0.3), None)
    torch.testing.assert_close(rounded.mean((0, 1)), probabilities(logits)[0, 0], atol=0.01, rtol=0)


@pytest.mark.parametrize(
    ("y", "gold", "f1"),
    [
        ([1, 1, 0], [1, 0, 0], 2 / 3),
        ([1, 0, 0], [0, 1, 0], 0),
        ([0, 0, 0], [0, 0, 0], 1),
        ([0, 0, 0], [1, 0, 0], 0),
        ([0.5, 0.5, 0], [1, 0, 0], 2 * 0.5 / (0.5 + 1.5)),  # I = 0.5, U = 1 + 0.5
    ],
)
def test_label_score_is_f1_and_its_relaxation(y, gold, f1):
    y, gold = (torch.tensor([[v]], dtype=torch.float64) for v in (y, gold))
    assert LABELS.score(y, gold).item() == pytest.approx(f1)


def test_tag_score_and_cost_exclude_padding():
    mask = torch.tensor([[True, True, False]])
    gold = TAGS.one_hot(torch.tensor([[[0, 1, 0]]]), mask).double()
    y = torch.tensor([[[[0.75, 0.25], [1.0, 0.0], [0.3, 0.7]]]], dtype=torch.float64)
    assert TAGS.score(y, gold, mask).item() == pytest.approx((0.75 + 0) / 2)
    assert TAGS.cost(y, gold, mask).item() == pytest.approx(0.5 + 2)
    assert TAGS.size(y, mask).item() == 2


def test_label_cost_is_l1():
    y, gold = torch.tensor([[[0.25, 1.0, 0.0]]]), torch.tensor([[[1.0, 1.0, 1.0]]])
    assert LABELS.cost(y, gold).item() == pytest.approx(1.75)
    assert LABELS.size(y).item() == 3


def test_projection_is_the_nearest_point():
    y = torch.randn(3, 2, 2, 2, dtype=torch.float64) * 2
    grid = torch.linspace(0, 1, 20_001, dtype=torch.float64)
    simplex = torch.stack([grid, 1 - grid], -1)
    nearest = simplex[(y.unsqueeze(-2) - simplex).square().sum(-1).argmin(-1)]
    torch.testing.assert_close(TAGS.project(y, None), nearest, atol=1e-4, rtol=0)
    box = torch.tensor([[[-0.5, 0.3, 1.7]]])
    torch.testing.assert_close(LABELS.project(box), torch.tensor([[[0.0, 0.3, 1.0]]]))


@pytest.mark.parametrize("tags", [3, 5])
def test_projection_onto_larger_simplices_meets_the_optimality_conditions(tags):
    y = torch.randn(4, 1, 3, tags, dtype=torch.float64) * 3
    p = TagSequence([str(i) for i in range(tags)]).project(y, None)
    torch.testing.assert_close(p.sum(-1), torch.ones(4, 1, 3, dtype=torch.float64))
    difference = y - p  # one number where p > 0, at most that where p = 0
    shift = torch.where(p > 0, difference, -torch.inf).amax(-1, keepdim=True)
    assert torch.allclose(difference[p > 0], shift.expand_as(p)[p > 0])
    assert (difference <= shift + 1e-9).all()


def test_perturbed_outputs_spread_with_the_deviation():
    logits = torch.zeros(1, 1, 3, dtype=torch.float64)
    noise = torch.logit(LABELS.independent(logits).perturb(20_000, 0.5))
    assert noise.std().item() == pytest.approx(0.5, rel=0.02)
    assert noise.mean().item() == pytest.approx(0, abs=0.01)


def test_rows_without_tokens_or_samples_dont_break():
    logits = torch.randn(2, 1, 3, 2)
    mask = torch.tensor([[True, True, True], [False, False, False]])
    q = TAGS.independent(logits, mask)
    y = q.mean
    for value in (y, q.mode, q.sample(2), q.log_prob(y), TAGS.score(y, y, mask)):
        assert torch.isfinite(value).all()


def test_sizes_come_from_the_space_and_then_from_the_mask():
    class Grid(LabelSet):
        shape = (None, None)

    mask = torch.ones(2, 5, 7, dtype=torch.bool)
    assert LABELS.sizes(None) == (3,)
    assert TAGS.sizes(mask[:, :, 0]) == (5, 2) and TAGS.sizes(None) == (None, 2)
    assert Grid([]).sizes(mask) == (5, 7) and Grid([]).sizes(None) == (None, None)


@pytest.mark.parametrize(
    ("space", "size"),
    [(LABELS, (300,)), (TAGS, (300, 2)), (sp.BinaryGrid(), (40, 40)), (sp.RealGrid(std=2.0), (30, 30))],
)
def test_log_probabilities_keep_full_precision_under_autocast(space, size):
    """Their differences decide NCE; bfloat16 would round a value near -100 to the next half."""
    logits = torch.randn(2, 1, *size)
    y = space.independent(logits).sample(3)
    expected = space.independent(logits).log_prob(y)
    with torch.autocast("cpu", torch.bfloat16):
        log_p = space.independent(logits).log_prob(y)
    assert log_p.dtype == torch.float32
    torch.testing.assert_close(log_p, expected)


@pytest.mark.parametrize("dim", [0, 1])
def test_take_vectors_equals_gather(dim):
    torch.manual_seed(0)
    vectors = torch.randn(3, 4, 2, 5, dtype=torch.double, requires_grad=True)
    indices = torch.randint(vectors.shape[dim], (6, 4) if dim == 0 else (3, 6))
    output = take_vectors(vectors, indices, dim)
    expected = vectors.gather(dim, indices[..., None, None].expand(*indices.shape, 2, 5))
    assert torch.equal(output, expected)
    weight = torch.randn_like(output)
    gradient, expected_gradient = (
        torch.autograd.grad((weight * values).sum(), vectors)[0] for values in (output, expected)
    )
    torch.testing.assert_close(gradient, expected_gradient)
