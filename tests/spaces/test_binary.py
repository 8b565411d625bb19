"""Binary outputs on a grid: soft IoU by hand, Bernoulli pixels by enumeration, padding along both axes."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

import spen_plugins as sp
from spen_plugins.nn import margin_cost

SPACE = sp.BinaryGrid()
MASK = torch.tensor([[[True, True, False], [True, True, False]], [[True] * 3, [False] * 3]])
"""An image of 2 x 2 and one of 1 x 3."""
Y = torch.tensor([[[1.0, 0.5, 1], [0, 0.25, 1]], [[0.0, 0, 0], [1, 1, 1]]], dtype=torch.float64).unsqueeze(1)
GOLD = torch.tensor([[[1.0, 1, 0], [0, 0, 0]], [[0.0, 0, 0], [0, 0, 0]]], dtype=torch.float64).unsqueeze(1)


def test_soft_iou_cost_and_size_by_hand() -> None:
    """Σ min = 1 + 0.5, Σ max = 1 + 1 + 0.25; the second image is empty in both."""
    torch.testing.assert_close(SPACE.score(Y, GOLD, MASK), torch.tensor([[1.5 / 2.25], [1.0]]).double())
    torch.testing.assert_close(SPACE.cost(Y, GOLD, MASK), torch.tensor([[0.75], [0.0]]).double())
    assert SPACE.size(Y, MASK).tolist() == [[4.0], [3.0]] and SPACE.size(Y, None).tolist() == [[6.0], [6.0]]
    torch.testing.assert_close(margin_cost(SPACE, Y, GOLD, MASK, "score"), 1 - SPACE.score(Y, GOLD, MASK))
    torch.testing.assert_close(margin_cost(SPACE, Y, GOLD, MASK, "mean_l1")[0, 0].item(), 0.75 / 4)


def test_soft_iou_of_masks_is_iou_and_zero_for_an_empty_one() -> None:
    masks = (torch.rand(40, 3, 4, 5, generator=torch.Generator().manual_seed(0)) < 0.4).double()
    y, gold = masks[:, :2], masks[:, 2:]
    intersection, union = ((y + gold) == 2).sum((2, 3)), ((y + gold) >= 1).sum((2, 3))
    torch.testing.assert_close(SPACE.score(y, gold, None), intersection / union.double())
    assert not SPACE.score(torch.zeros_like(gold), gold, None).any()


def test_soft_iou_has_a_gradient_which_is_finite_where_both_are_empty() -> None:
    generator = torch.Generator().manual_seed(0)
    y = torch.rand(2, 3, 2, 3, generator=generator, dtype=torch.float64).requires_grad_()
    gold = (torch.rand(2, 1, 2, 3, generator=generator) < 0.5).double()
    assert torch.autograd.gradcheck(lambda y: SPACE.score(y, gold, MASK), (y,))
    empty = torch.zeros(1, 1, 2, 2, requires_grad=True)
    [gradient] = torch.autograd.grad(SPACE.score(empty, torch.zeros(1, 1, 2, 2), None).sum(), empty)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize(("row", "rows", "columns"), [(0, 2, 2), (1, 1, 3)])
def test_log_probabilities_over_all_masks_of_the_size_of_an_image(row: int, rows: int, columns: int) -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(2, 1, 2, 3, generator=generator, dtype=torch.float64)
    p = torch.sigmoid(logits[row, 0, :rows, :columns])
    all_masks = torch.tensor(list(itertools.product([0.0, 1.0], repeat=rows * columns)), dtype=torch.float64)
    y = torch.zeros(2, len(all_masks), 2, 3, dtype=torch.float64)
    y[row, :, :rows, :columns] = all_masks.view(-1, rows, columns)
    expected = torch.where(all_masks.view(-1, rows, columns) > 0, p, 1 - p).log().sum((1, 2))
    q = SPACE.independent(logits, MASK)
    torch.testing.assert_close(q.log_prob(y)[row], expected)
    best, log_q = q.k_best(len(all_masks) + 2)
    torch.testing.assert_close(
        log_q[row], torch.cat([expected.sort(descending=True).values, torch.full((2,), -math.inf)])
    )
    torch.testing.assert_close(q.log_prob(best)[row, : len(all_masks)], log_q[row, : len(all_masks)])
    assert torch.equal(best[row, -1], q.mode[row, 0])
    for values in (q.mean, q.mode, q.sample(5), q.rsample(5), q.perturb(5, 2.0), best):
        assert not values.movedim(1, 3)[~MASK].any()


def test_gradients_reach_only_the_logits_of_pixels() -> None:
    logits = torch.randn(2, 1, 2, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64).requires_grad_()
    q = SPACE.independent(logits, MASK)
    gold = GOLD * MASK.unsqueeze(1)
    [gradient] = torch.autograd.grad(-q.log_prob(gold).sum(), logits)
    torch.testing.assert_close(gradient, (torch.sigmoid(logits) - gold) * MASK.unsqueeze(1))
    assert torch.autograd.gradgradcheck(lambda logits: SPACE.independent(logits, MASK).log_prob(gold), (logits,))
