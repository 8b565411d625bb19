"""Inverse products and eigenvalues against dense linear algebra."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
import torch

from spen_implicit.inverse import conjugate_gradient, dot, extremal_eigenvalues, largest_eigenvalue, norm, series


def matrix(*eigenvalues: float) -> torch.Tensor:
    turn = torch.linalg.qr(torch.randn(len(eigenvalues), len(eigenvalues), dtype=torch.float64))[0]
    return turn @ torch.diag(torch.tensor(eigenvalues, dtype=torch.float64)) @ turn.T


def pieces(vector: torch.Tensor) -> list[torch.Tensor]:
    """A vector of 5 numbers as two parameters."""
    return [vector[:2].clone(), vector[2:].reshape(3, 1).clone()]


def whole(vector) -> torch.Tensor:
    return torch.cat([piece.flatten() for piece in vector])


def product_with(h: torch.Tensor):
    return Mock(side_effect=lambda w: pieces(h @ whole(w)))


def test_series_and_conjugate_gradient_solve() -> None:
    h, v = matrix(0.1, 0.5, 1, 2, 3), torch.randn(5, dtype=torch.float64)
    right = torch.linalg.solve(h + 0.2 * torch.eye(5, dtype=torch.float64), v)
    u, ended = conjugate_gradient(product_with(h), pieces(v), 5, 0.5, 0.2)
    torch.testing.assert_close(whole(u), right, rtol=1e-10, atol=1e-10)
    assert not ended and u[1].shape == (3, 1)
    u, ended = series(product := product_with(h), pieces(v), 400, 0.5, 0.2)
    torch.testing.assert_close(whole(u), right, rtol=1e-10, atol=1e-10)
    assert not ended and product.call_count == 400


@pytest.mark.parametrize("terms", [0, 1, 2, 4])
def test_the_terms_of_the_series_by_hand(terms: int) -> None:
    h, v = matrix(0.1, 0.5, 1, 2, 3), torch.randn(5, dtype=torch.float64)
    factor = torch.eye(5, dtype=torch.float64) * (1 - 0.3 * 0.2) - 0.3 * h
    right = 0.3 * sum(torch.linalg.matrix_power(factor, k) @ v for k in range(terms + 1))
    u, _ = series(product := product_with(h), pieces(v), terms, 0.3, 0.2)
    torch.testing.assert_close(whole(u), right)
    assert product.call_count == terms


def test_both_end_where_the_matrix_is_not_positive() -> None:
    h = matrix(-2, 0.5, 1, 2, 3)
    u, ended = series(product := product_with(h), pieces(torch.randn(5, dtype=torch.float64)), 200, 0.3, 0.1)
    assert ended and product.call_count < 200 and norm(u) < 1e6
    down = torch.linalg.eigh(h).eigenvectors[:, 0]
    u, ended = conjugate_gradient(product := product_with(h), pieces(down), 5, 0.3, 0.1)
    assert ended and product.call_count == 1
    torch.testing.assert_close(whole(u), 0.3 * down)


def test_a_series_that_is_not_finite_ends() -> None:
    bad = lambda w: pieces(whole(w) * float("nan"))  # noqa: E731
    u, ended = series(bad, pieces(torch.ones(5, dtype=torch.float64)), 3, 0.3, 0.1)
    assert ended and torch.equal(whole(u), torch.full((5,), 0.3, dtype=torch.float64))


def test_eigenvalues() -> None:
    h, start = matrix(-2.5, 0.5, 1, 2, 4), pieces(torch.randn(5, dtype=torch.float64))
    value, vector = largest_eigenvalue(product_with(h), start, 200)
    assert value == pytest.approx(4, rel=1e-9) and norm(vector) == pytest.approx(1)
    assert largest_eigenvalue(product_with(-h), start, 200)[0] == pytest.approx(4, rel=1e-9)
    assert extremal_eigenvalues(product_with(h), start, 5) == pytest.approx((-2.5, 4), rel=1e-6)
    low, high = extremal_eigenvalues(product_with(h), start, 2)
    assert -2.5 <= low <= high <= 4
    assert largest_eigenvalue(lambda w: pieces(0 * whole(w)), start, 3)[0] == 0


def test_dot_has_a_gradient() -> None:
    a, b = (pieces(torch.randn(5, dtype=torch.float64)) for _ in range(2))
    a[0].requires_grad_()
    dot(a, b).backward()
    torch.testing.assert_close(a[0].grad, b[0])
