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
        self._curved = [i for i, g in enumerate(self.g) if g.requires_grad]

    def product(self, w: Vector) -> list[Tensor]:
        """H w."""
        return compute_gradients([self.g[i] for i in self._curved], self.theta, [w[i] for i in self._curved])

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
        ends = []
        for sign in (1, -1):
            with self._move(w, sign * epsilon), self._numbers.again():
                ends.append(compute_gradients(self.loss(), parameters))
        return torch._foreach_div(torch._foreach_sub(*ends), 2 * epsilon)

    @contextmanager
    def _move(self, w: Vector, step: float) -> Iterator[None]:
        # Other data in the same parameters: a graph that was made before stays valid.
        kept = [p.data for p in self.theta]
        for p, piece in zip(self.theta, w, strict=True):
            p.data = p.data.add(piece, alpha=step)
        try:
            yield
        finally:
            for p, data in zip(self.theta, kept, strict=True):
                p.data = data


class RandomNumbers:
    """The random numbers that come next, to be drawn any number of times."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._random = torch.get_rng_state(), torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    @contextmanager
    def again(self) -> Iterator[None]:
        """Draw them within, and leave the state as it is."""
        random, on_cuda = self._random
        with torch.random.fork_rng([] if on_cuda is None else [self._device]):
            torch.set_rng_state(random)
            if on_cuda is not None:
                torch.cuda.set_rng_state(on_cuda, self._device)
            yield


def draw_nets(context: sp.Context) -> sp.Context:
    """The batch anew, its nets run in one order, so that their dropout doesn't depend on what a loss asks for first."""
    drawn = sp.OneBatch(context.model, context.batch)
    with torch.autocast(context.batch.rows.device.type, enabled=False):
        drawn.proposal, drawn.energy.features  # noqa: B018
    return drawn


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
