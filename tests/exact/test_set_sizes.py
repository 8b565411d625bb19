"""Sums over label sets by size, against enumeration."""

from __future__ import annotations

import pytest
import torch

from spen_exact.set_sizes import SizeTree, compute_label_sizes, log_sizes
from tests.exact.toys import all_sets


@pytest.mark.parametrize("labels", [1, 2, 3, 5, 8, 9])
def test_sums_by_size_are_those_of_all_sets(labels: int) -> None:
    torch.manual_seed(labels)
    logits, y = 2 * torch.randn(4, labels, dtype=torch.double), all_sets(labels)
    p = torch.where(y > 0, logits.sigmoid().unsqueeze(1), (-logits).sigmoid().unsqueeze(1)).prod(2)
    size = y.sum(1).long()
    for top in range(1, labels + 1):
        tree, log_law = log_sizes(logits, top)
        law = torch.zeros(4, top + 1, dtype=torch.double).index_add(1, size.clamp(max=top), p)
        torch.testing.assert_close(log_law.exp(), law)
        weights = torch.rand(4, top + 1, dtype=torch.double)
        weighted = p * weights[:, size.clamp(max=top)]
        torch.testing.assert_close(tree.marginals(weights), weighted @ y / weighted.sum(1, keepdim=True))
    counts = torch.randn(4, min(labels, 3) + 1, dtype=torch.double)
    weighted = p * counts[:, size.clamp(max=counts.shape[1] - 1)].exp()
    joint = torch.zeros(4, labels + 1, labels, dtype=torch.double)
    joint.index_add_(1, size, weighted.unsqueeze(2) * y / weighted.sum(1)[:, None, None])
    torch.testing.assert_close(compute_label_sizes(logits, counts), joint[:, 1:])


def test_sizes_in_single_precision_and_of_many_labels() -> None:
    torch.manual_seed(0)
    logits = (3 * torch.randn(2, 1000, dtype=torch.double) - 6).requires_grad_()
    _, exact = log_sizes(logits, 30)
    _, single = log_sizes(logits.float(), 30)
    is_likely = exact > -40
    torch.testing.assert_close(single[is_likely].double(), exact[is_likely], rtol=1e-4, atol=1e-4)
    for extreme in (100.0, 0.0, -100.0):
        tree, log_law = log_sizes(torch.full((1, 1000), extreme), 30)
        assert log_law.isfinite().all()
        torch.testing.assert_close(log_law.exp().sum(), torch.tensor(1.0))
        assert tree.marginals(torch.ones(1, 31)).isfinite().all()
    sizes = compute_label_sizes(logits, logits.new_zeros(2, 1))
    torch.testing.assert_close(sizes.sum(1), logits.detach().sigmoid(), rtol=0, atol=1e-8)


def test_conditional_samples_have_the_right_sizes_and_frequencies() -> None:
    torch.manual_seed(0)
    p_on = torch.tensor([[0.3, 0.9, 0.6, 0.2, 0.5, 0.7]], dtype=torch.double)
    tree, y, n = SizeTree(p_on, 1 - p_on, 4), all_sets(6), 20_000
    p = torch.where(y > 0, p_on, 1 - p_on).prod(1)
    for size in range(5):
        samples = tree.sample(torch.full((1, n), size))[0].double()
        has_size = y.sum(1) == size if size < 4 else y.sum(1) >= 4
        count = torch.bincount((samples @ 2.0 ** torch.arange(5, -1, -1, dtype=torch.double)).long(), minlength=64)
        assert count[~has_size].sum() == 0
        expected = n * p[has_size] / p[has_size].sum()
        chi = ((count[has_size] - expected).square() / expected).sum()
        freedom = int(has_size.sum()) - 1
        assert chi < freedom + 5 * (2 * max(freedom, 1)) ** 0.5
