"""Inverse products and eigenvalues against dense linear algebra."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
import torch

from spen_implicit.inverse import conjugate_gradient, dot, extremal_eigenvalues, largest_eigenvalue, norm, series


def make_matrix(*eigenvalues: float) -> torch.Tensor:
    rotation = torch.linalg.qr(torch.randn(len(eigenvalues), len(eigenvalues), dtype=torch.float64))[0]
    return rotation @ torch.diag(torch.tensor(eigenvalues, dtype=torch.float64)) @ rotation.T


def split(vector: torch.Tensor) -> list[torch.Tensor]:
    """A vector of 5 numbers as two parameters."""
    return [vector[:2].clone(), vector[2:].reshape(3, 1).clone()]


def join(vector) -> torch.Tensor:
    return torch.cat([piece.flatten() for piece in vector])


def make_product(h: torch.Tensor):
    return Mock(side_effect=lambda w: split(h @ join(w)))


def test_series_and_conjugate_gradient_solve() -> None:
    h, v = make_matrix(0.1, 0.5, 1, 2, 3), torch.randn(5, dtype=torch.float64)
    expected = torch.linalg.solve(h + 0.2 * torch.eye(5, dtype=torch.float64), v)
    u, has_ended = conjugate_gradient(make_product(h), split(v), 5, 0.5, 0.2)
    torch.testing.assert_close(join(u), expected, rtol=1e-10, atol=1e-10)
    assert not has_ended and u[1].shape == (3, 1)
    u, has_ended = series(product := make_product(h), split(v), 400, 0.5, 0.2)
    torch.testing.assert_close(join(u), expected, rtol=1e-10, atol=1e-10)
    assert not has_ended and product.call_count == 400


@pytest.mark.parametrize("terms", [0, 1, 2, 4])
def test_the_terms_of_the_series_by_hand(terms: int) -> None:
    h, v = make_matrix(0.1, 0.5, 1, 2, 3), torch.randn(5, dtype=torch.float64)
    factor = torch.eye(5, dtype=torch.float64) * (1 - 0.3 * 0.2) - 0.3 * h
    expected = 0.3 * sum(torch.linalg.matrix_power(factor, k) @ v for k in range(terms + 1))
    u, _ = series(product := make_product(h), split(v), terms, 0.3, 0.2)
    torch.testing.assert_close(join(u), expected)
    assert product.call_count == terms


def test_both_end_where_the_matrix_is_not_positive() -> None:
    h = make_matrix(-2, 0.5, 1, 2, 3)
    u, has_ended = series(product := make_product(h), split(torch.randn(5, dtype=torch.float64)), 200, 0.3, 0.1)
    assert has_ended and product.call_count < 200 and norm(u) < 1e6
    eigenvector = torch.linalg.eigh(h).eigenvectors[:, 0]
    u, has_ended = conjugate_gradient(product := make_product(h), split(eigenvector), 5, 0.3, 0.1)
    assert has_ended and product.call_count == 1
    torch.testing.assert_close(join(u), 0.3 * eigenvector)


def test_a_series_that_is_not_finite_ends() -> None:
    nan_product = lambda w: split(join(w) * float("nan"))  # noqa: E731
    u, has_ended = series(nan_product, split(torch.ones(5, dtype=torch.float64)), 3, 0.3, 0.1)
    assert has_ended and torch.equal(join(u), torch.full((5,), 0.3, dtype=torch.float64))


def test_eigenvalues() -> None:
    h, start = make_matrix(-2.5, 0.5, 1, 2, 4), split(torch.randn(5, dtype=torch.float64))
    value, vector = largest_eigenvalue(make_product(h), start, 200)
    assert value == pytest.approx(4, rel=1e-9) and norm(vector) == pytest.approx(1)
    assert largest_eigenvalue(make_product(-h), start, 200)[0] == pytest.approx(4, rel=1e-9)
    assert extremal_eigenvalues(make_product(h), start, 5) == pytest.approx((-2.5, 4), rel=1e-6)
    low, high = extremal_eigenvalues(make_product(h), start, 2)
    assert -2.5 <= low <= high <= 4
    assert largest_eigenvalue(lambda w: split(0 * join(w)), start, 3)[0] == 0


def test_dot_has_a_gradient() -> None:
    a, b = (split(torch.randn(5, dtype=torch.float64)) for _ in range(2))
    a[0].requires_grad_()
    dot(a, b).backward()
    torch.testing.assert_close(a[0].grad, b[0])
