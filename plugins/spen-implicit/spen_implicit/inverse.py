"""Solutions of (H + δI) u = v by products with H alone, for vectors that are lists of tensors.

In all functions `product` is w -> H w, `step` is α and `shift` is δ. A solution is u, and true if the method ended
early, in a direction in which H + δI isn't positive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Vector = Sequence[Tensor]
"""A vector in pieces, one tensor of any shape per parameter."""
Product = Callable[[Vector], Vector]
Solution = tuple[list[Tensor], bool]


def dot(a: Vector, b: Vector) -> Tensor:
    """⟨a, b⟩, a scalar; differentiable."""
    return torch.stack([torch.dot(x.flatten(), y.flatten()) for x, y in zip(a, b, strict=True)]).sum()


def norm(a: Vector) -> float:
    """Euclidean norm."""
    return float(torch.nn.utils.get_total_norm(list(a)))


def series(product: Product, v: Vector, terms: int, step: float, shift: float) -> Solution:
    """The von Neumann series u = α Σ_{k=0}^{K} (I − α (H + δI))^k v of K terms after α v.

    It converges to (H + δI)⁻¹ v if all eigenvalues of α (H + δI) are between 0 and 2. It ends before a term that is
    longer than the previous one, which a negative eigenvalue of H + δI or a large step causes.
    """
    total, term, length = list(v), list(v), norm(v)
    for _ in range(terms):
        term = torch._foreach_add(torch._foreach_mul(term, 1 - step * shift), list(product(term)), alpha=-step)
        if not (new_length := norm(term)) <= length:  # also if it isn't a number
            return torch._foreach_mul(total, step), True
        total, length = torch._foreach_add(total, term), new_length
    return torch._foreach_mul(total, step), False


def conjugate_gradient(
    product: Product, v: Vector, iterations: int, step: float, shift: float, tolerance: float = 1e-10
) -> Solution:
    """Conjugate gradient for (H + δI) u = v, from u = 0; it ends before a direction in which H + δI isn't positive, or
    when the residual is the share `tolerance` of v's norm. If v itself is such a direction, u is α v, the first term of
    the series.
    """
    u = [torch.zeros_like(piece) for piece in v]
    residual = direction = list(v)
    square = first = float(dot(residual, residual))
    for k in range(iterations):
        if square <= tolerance**2 * first:
            return u, False
        image = torch._foreach_add(list(product(direction)), direction, alpha=shift)
        curvature = float(dot(direction, image))
        if not curvature > 0:
            return (u if k else torch._foreach_mul(list(v), step)), True
        length = square / curvature
        u = torch._foreach_add(u, direction, alpha=length)
        residual = torch._foreach_add(residual, image, alpha=-length)
        square, previous_square = float(dot(residual, residual)), square
        direction = torch._foreach_add(residual, direction, alpha=square / previous_square)
    return u, False


def largest_eigenvalue(product: Product, start: Vector, iterations: int) -> tuple[float, list[Tensor]]:
    """|λ| of H's eigenvalue of the largest magnitude, by power iterations, and the last vector, of length 1. The start
    is not zero; the vector of a similar matrix saves iterations."""
    vector = torch._foreach_div(list(start), norm(start))
    length = 0.0
    for _ in range(iterations):
        image = list(product(vector))
        length = norm(image)
        if length == 0:
            break
        vector = torch._foreach_div(image, length)
    return length, vector


def extremal_eigenvalues(product: Product, start: Vector, iterations: int) -> tuple[float, float]:
    """Estimates of H's smallest and largest eigenvalue, between the true ones (Lanczos); the start is not zero."""
    basis, diagonal, off_diagonal = [torch._foreach_div(list(start), norm(start))], [], []
    for _ in range(iterations):
        image = list(product(basis[-1]))
        diagonal.append(float(dot(image, basis[-1])))
        for vector in basis:  # all of them: rounding makes Lanczos vectors lose their right angles
            image = torch._foreach_sub(image, torch._foreach_mul(vector, float(dot(image, vector))))
        off_diagonal.append(norm(image))
        if off_diagonal[-1] <= 1e-6 * max(map(abs, diagonal)):
            break
        basis.append(torch._foreach_div(image, off_diagonal[-1]))
    n = len(diagonal)
    matrix = torch.diag(torch.tensor(diagonal, dtype=torch.float64))
    for i in range(n - 1):
        matrix[i, i + 1] = matrix[i + 1, i] = off_diagonal[i]
    eigenvalues = torch.linalg.eigvalsh(matrix)
    return float(eigenvalues[0]), float(eigenvalues[-1])
