"""Label sets with a potential on their size, against enumeration."""

from __future__ import annotations

import pytest
import torch

import spen_plugins as sp
from spen_exact.counted import CountedLabels
from spen_exact.counts import Counts, CountsEnergy
from spen_plugins.testing import ToyLabels, ToyTags, check_energy, check_inference_net
from tests.exact.toys import POINTS, all_sets, check_against_enumeration, check_exact_energy, check_gradients, space_of
from tests.seal.toys import batch_of, make


def make_counted(labels: int, sizes: int, batch: int = 3, scale: float = 2.0) -> CountedLabels:
    torch.manual_seed(labels)
    logits = scale * torch.randn(batch, 1, labels, dtype=torch.double)
    counts = scale * torch.randn(batch, sizes, dtype=torch.double)
    return CountedLabels(space_of(labels), logits.requires_grad_(), counts=counts.requires_grad_())


@pytest.mark.parametrize(("labels", "sizes"), [(1, 2), (2, 2), (3, 4), (6, 3), (8, 9), (9, 5)])
def test_all_results_match_enumeration(labels: int, sizes: int) -> None:
    q, y = make_counted(labels, sizes), all_sets(labels)
    size = y.sum(1).long().clamp(max=sizes - 1)
    score = q.logits[:, 0] @ y.t() + q.counts[:, size]
    torch.testing.assert_close(q.log_z, torch.logsumexp(score, 1))
    check_against_enumeration(q, score)
    check_gradients(q.log_z, q.logits, q.mean)
    p = torch.zeros(3, sizes, dtype=torch.double).index_add(1, size, score.softmax(1))
    check_gradients(q.log_z, q.counts, p)
    check_against_enumeration(q.tempered(2.0), score / 2)
    rows = q.map_rows(lambda values: values[1:])
    torch.testing.assert_close(rows.mean, q.mean[1:])
    torch.testing.assert_close(q.detach().label_powers(POINTS), q.label_powers(POINTS))


def test_a_mode_needs_no_log_partition_function() -> None:
    q = make_counted(9, 5)
    assert torch.equal(q.mode, make_counted(9, 5).k_best(1)[0]) and "log_z" not in vars(q)


def test_without_a_potential_labels_are_independent() -> None:
    q = make_counted(7, 4)
    q = CountedLabels(q.space, q.logits, counts=torch.zeros(3, 4, dtype=torch.double))
    p = q.space.independent(q.logits)
    y = all_sets(7).expand(3, -1, -1)
    torch.testing.assert_close(q.log_prob(y), p.log_prob(y))
    torch.testing.assert_close(q.mean, p.mean)
    torch.testing.assert_close(q.label_powers(POINTS), p.label_powers(POINTS))
    torch.testing.assert_close(q.k_best(9)[1], p.k_best(9)[1])


def test_a_thousand_labels_in_single_precision() -> None:
    torch.manual_seed(0)
    logits, counts = 3 * torch.randn(2, 1, 1000, dtype=torch.double) - 6, 3 * torch.randn(2, 40, dtype=torch.double)
    exact = CountedLabels(space_of(1000), logits, counts=counts)
    single = CountedLabels(space_of(1000), logits.float(), counts=counts.float())
    torch.testing.assert_close(single.mean.double(), exact.mean, rtol=1e-3, atol=1e-6)
    gold = exact.sample(5)
    assert 1 <= gold.sum(-1).max() < 100
    torch.testing.assert_close(single.log_prob(gold.float()).double(), exact.log_prob(gold), rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(single.label_powers(POINTS), exact.label_powers(POINTS), rtol=0, atol=1e-5)
    for extreme in (-300.0, 0.0, 50.0):  # scores of a net that has learned nothing, or too much
        q = CountedLabels(exact.space, torch.full((1, 1, 1000), extreme, requires_grad=True), counts=counts[:1].float())
        log_q = q.log_prob(gold[:1].float())
        log_q.sum().backward()
        assert log_q.isfinite().all() and q.logits.grad.isfinite().all() and q.mean.isfinite().all()
        assert q.sample(2).isfinite().all()


def test_a_size_that_underflows_leaves_gradients_finite() -> None:
    """One training example with so many labels makes c of this size large for all others, too."""
    logits, counts = torch.full((1, 1, 40), -20.0), torch.zeros(1, 32)
    logits[..., :4], counts[0, 28] = 5.0, 95.0
    gradients = []
    for dtype in (torch.float, torch.double):
        q = CountedLabels(space_of(40), logits.to(dtype, copy=True).requires_grad_(), counts=counts.to(dtype))
        (100 * q.mean * torch.arange(-20, 20)).sum().backward()
        gradients.append(q.logits.grad.double())
        assert (q.sample(20).sum(-1) < 10).all()
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


def test_a_relaxed_output_has_the_expected_potential() -> None:
    task = ToyLabels(labels=6)
    energy, batch = make(CountsEnergy, task), batch_of(task)
    with torch.no_grad():
        energy.counts.weight.normal_()
    y, sets = torch.rand(4, 3, 6, dtype=torch.double), all_sets(6)
    values = energy.at(batch.x)(sets.expand(4, -1, -1))
    weights = torch.where(sets > 0, y.unsqueeze(2), 1 - y.unsqueeze(2)).prod(3)
    torch.testing.assert_close(energy.at(batch.x)(y), (weights * values.unsqueeze(1)).sum(2))
    check_exact_energy(energy.at(batch.x))


def test_sizes_above_those_of_training_share_a_potential() -> None:
    task = ToyLabels(labels=9)
    assert make(Counts, task).counts.out_features == 10
    task.space = space_of(9, largest=4)
    assert make(Counts, task).counts.out_features == 8  # sizes 0 to 6, and more
    task.space = space_of(9, largest=7)
    assert make(CountsEnergy, task).counts.out_features == 10


def test_the_contract() -> None:
    task = ToyLabels()
    for largest in (None, 1):
        task.space = space_of(4, largest=largest)
        check_energy(make(CountsEnergy, task), task)
        check_inference_net(make(Counts, task), task)
    with pytest.raises(sp.ConfigError, match="Counts requires label sets"):
        make(Counts, ToyTags())
