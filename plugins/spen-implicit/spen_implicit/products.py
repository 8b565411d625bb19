"""Products of second derivatives of a loss with vectors: exact, or as differences of first derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

import spen_plugins as sp
from spen_implicit.inverse import Vector, dot, norm


class Exact:
    """Products with second derivatives of L_Aux, by double backward."""

    def __init__(self, loss: Tensor, theta: Sequence[nn.Parameter]) -> None:
        self.theta = list(theta)
        gradients = torch.autograd.grad(loss, self.theta, create_graph=True, allow_unused=True)
        self.g = [torch.zeros_like(p) if g is None else g for p, g in zip(self.theta, gradients, strict=True)]
        self._indices = [i for i, g in enumerate(self.g) if g.requires_grad]

    def product(self, w: Vector) -> list[Tensor]:
        """H w."""
        return compute_gradients([self.g[i] for i in self._indices], self.theta, [w[i] for i in self._indices])

    def cross(self, u: Vector, phi: Sequence[nn.Parameter]) -> Tensor:
        """A scalar whose gradient in φ is that of ⟨g, u⟩."""
        return dot(self.g, u)


class Differences:
    """The same products by central differences of first derivatives, for nets that have no second one.

    Each evaluation sees the same random numbers, those of the state at the start.
    """

    def __init__(self, loss: Callable[[], Tensor], theta: Sequence[nn.Parameter]) -> None:
        self.loss, self.theta = loss, list(theta)
        self._numbers = RandomNumbers(self.theta[0].device)

    def product(self, w: Vector) -> list[Tensor]:
        return self._differentiate(w, self.theta)

    def cross(self, u: Vector, phi: Sequence[nn.Parameter]) -> Tensor:
        return dot(list(phi), self._differentiate(u, phi))

    def _differentiate(self, w: Vector, parameters: Sequence[nn.Parameter]) -> list[Tensor]:
        """The derivative of ∂L_Aux/∂parameters along w in θ."""
        length = norm(w)
        if length == 0:
            return [torch.zeros_like(p) for p in parameters]
        epsilon = 1e-2 / length
        gradients = []
        for sign in (1, -1):
            with self._move(w, sign * epsilon), self._numbers.again():
                gradients.append(compute_gradients(self.loss(), parameters))
        return torch._foreach_div(torch._foreach_sub(*gradients), 2 * epsilon)

    @contextmanager
    def _move(self, w: Vector, step: float) -> Iterator[None]:
        # The parameters stay the same and get other data, so that an earlier graph stays valid.
        originals = [p.data for p in self.theta]
        for p, piece in zip(self.theta, w, strict=True):
            p.data = p.data.add(piece, alpha=step)
        try:
            yield
        finally:
            for p, original in zip(self.theta, originals, strict=True):
                p.data = original


class RandomNumbers:
    """The next random numbers, which can be drawn any number of times."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._states = torch.get_rng_state(), torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    @contextmanager
    def again(self) -> Iterator[None]:
        """Draws these numbers within the context, and leaves the state as it is."""
        cpu_state, cuda_state = self._states
        with torch.random.fork_rng([] if cuda_state is None else [self._device]):
            torch.set_rng_state(cpu_state)
            if cuda_state is not None:
                torch.cuda.set_rng_state(cuda_state, self._device)
            yield


def draw_nets(context: sp.Context) -> sp.Context:
    """A new context of the batch, whose nets run in a fixed order, so that their dropout doesn't depend on the loss."""
    fresh_context = sp.OneBatch(context.model, context.batch)
    with torch.autocast(context.batch.rows.device.type, enabled=False):
        fresh_context.proposal, fresh_context.energy.features  # noqa: B018
    return fresh_context


def compute_gradients(outputs: Any, parameters: Sequence[nn.Parameter], along: Any = None) -> list[Tensor]:
    """Gradients, zero where there is none; the graph is kept."""
    if not outputs if isinstance(outputs, list) else not outputs.requires_grad:
        return [torch.zeros_like(p) for p in parameters]
    return list(
        torch.autograd.grad(
            outputs, list(parameters), along, retain_graph=True, allow_unused=True, materialize_grads=True
        )
    )


def sum_terms(terms: sp.Terms, examples: int) -> Tensor:
    """The loss that a phase minimises."""
    return sum(term.sum() for term in terms.values()) / examples
