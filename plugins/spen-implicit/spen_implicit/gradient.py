"""The gradient of a bilevel problem in the outer parameters, by the implicit function theorem."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

import spen_plugins as sp
from spen_implicit.inverse import (
    Solution,
    Vector,
    conjugate_gradient,
    dot,
    extremal_eigenvalues,
    largest_eigenvalue,
    norm,
    series,
)

NET = "inference_net"
"""Name of the inner phase, which trains θ."""


class ImplicitGradient:
    """dL_Prim/dφ at θ*(φ) = argmin L_Aux, a phase's gradient rule (Shankar & Piratla, Eq. 3 and 4):

        ∂L_Prim/∂φ − (∂/∂φ ∂L_Aux/∂θ) (H + δI)⁻¹ ∂L_Prim/∂θ,   H = ∂²L_Aux/∂θ²

    g = ∂L_Aux/∂θ is computed once with its graph, which all products with H share, and the result is the gradient of
    L_Prim − ⟨g, u⟩ in φ, with u a constant. What must survive an interruption is its `state_dict`.

    Args:
        config: the trainer's.
        auxiliary: context -> terms of L_Aux.
        primary: context -> terms of L_Prim.
    """

    def __init__(
        self, config: Any, auxiliary: Callable[[sp.Context], sp.Terms], primary: Callable[[sp.Context], sp.Terms]
    ) -> None:
        self.config, self.auxiliary, self._primary = config, auxiliary, primary
        self.products = "exact" if config.products == "auto" else config.products
        self._vector: list[Tensor] = []
        self._largest = 0.0
        self._updates = self._solved = self._ended = 0
        self._dropout: _Numbers | None = None  # of the nets in the last L_Prim

    def primary(self, context: sp.Context) -> sp.Terms:
        """L_Prim. Exact products use its nets for L_Aux too; finite differences draw the same dropout again."""
        if self.products == "exact":
            return self._primary(context)
        self._dropout = _Numbers(context.batch.rows.device)
        return self._primary(_draw(context))

    def __call__(self, update: sp.Update) -> None:
        theta, phi = update.owned[NET], update.parameters
        v = _gradients(update.loss, theta)
        if not norm(v) > 0:  # no implicit term: a batch without gold, or no example within the margin
            update.backward(update.loss, inputs=list(phi))
            return
        inner = self._inner(update.context, theta, update.examples)
        solution = self._solve(inner, v)
        self._updates += 1
        self._solved += 1
        self._ended += solution.ended
        update.backward(update.loss - inner.cross(solution.u, phi), inputs=list(phi))

    def measures(self, context: sp.Context, theta: Sequence[nn.Parameter], phi: Sequence[nn.Parameter]) -> sp.Terms:
        """Of the batch: H's extremal eigenvalues and the norms of both terms of the gradient (App. D); and the share of
        inverse products since the last call that ended early."""
        examples, dropout = len(context.batch), self._dropout
        with torch.enable_grad():
            loss = _sum_terms(self.primary(context), examples)
            v = _gradients(loss, theta)
            measures = {"ended": self._ended / max(self._solved, 1)}
            self._solved = self._ended = 0
            if norm(v) > 0:
                inner = self._inner(context, theta, examples)
                kept = self._vector, self._largest, self._updates
                u = self._solve(inner, v).u
                self._vector, self._largest, self._updates = kept
                measures["explicit"] = norm(_gradients(loss, phi))
                measures["implicit"] = norm(_gradients(inner.cross(u, phi), phi))
                measures["eigenvalue_min"], measures["eigenvalue_max"] = extremal_eigenvalues(inner.product, v, 10)
        self._dropout = dropout
        return {name: torch.full((examples,), value) for name, value in measures.items()}

    def try_products(self, context: sp.Context, theta: Sequence[nn.Parameter]) -> None:
        """Autograd's error if there is no second derivative."""
        try:
            with torch.enable_grad():
                inner = self._inner(context, theta, len(context.batch))
                if isinstance(inner, _Exact):
                    # Of everything: on the way to some parameters alone a missing derivative may be taken for zero.
                    sum(g.sum() for g in inner.g).backward()
        finally:
            context.model.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        return {
            "products": self.products,
            "vector": self._vector,
            "largest": self._largest,
            "counts": [self._updates, self._solved, self._ended],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.products = state.get("products", self.products)
        self._vector, self._largest = list(state["vector"]), state["largest"]
        self._updates, self._solved, self._ended = state["counts"]

    def _inner(self, context: sp.Context, theta: Sequence[nn.Parameter], examples: int) -> _Exact | _Differences:
        if self.products == "exact":
            return _Exact(_sum_terms(self.auxiliary(context), examples), theta)
        dropout = self._dropout or _Numbers(context.batch.rows.device)

        def loss() -> Tensor:
            with dropout.again():
                drawn = _draw(context)
            return _sum_terms(self.auxiliary(drawn), examples)

        return _Differences(loss, theta)

    def _solve(self, inner: _Exact | _Differences, v: Vector) -> Solution:
        config = self.config
        self._find_largest(inner, v)
        shift = config.damping * self._largest
        # Room above λmax: power iterations reach it from below.
        step = 1 / (1.2 * self._largest + shift)
        if config.inverse == "cg":
            solution = conjugate_gradient(inner.product, v, config.terms, step, shift)
        else:
            terms = 0 if config.inverse == "identity" else config.terms
            solution = series(inner.product, v, terms, step, shift)
        if solution.ended:
            self._updates = -1  # look at the largest eigenvalue again
        if not math.isfinite(norm(solution.u)):
            raise sp.RunError(
                f"the inverse Hessian's product is not finite (trainer.inverse={config.inverse}, largest eigenvalue "
                f"{self._largest:g}); a larger trainer.damping, or lower rates or clipping of both players, may help"
            )
        return solution

    def _find_largest(self, inner: _Exact | _Differences, v: Vector) -> None:
        """λmax, anew at every `power_every`-th update; H changes slowly, and so does its eigenvector."""
        config = self.config
        if self._vector and self._updates % config.power_every:
            return
        vector = [piece.to(v[0].device) for piece in self._vector]
        if not vector or norm(vector) == 0:
            vector, iterations = list(v), max(10, config.power_iterations)
        else:
            iterations = config.power_iterations
        self._largest, self._vector = largest_eigenvalue(inner.product, vector, iterations)
        if not 0 < self._largest < math.inf:
            raise sp.RunError(
                f"the Hessian of the net's loss has the largest eigenvalue {self._largest:g}, so it has no inverse: "
                "that loss has diverged, or doesn't depend on the net to second order"
            )


class _Exact:
    """Products with second derivatives of L_Aux, by double backward."""

    def __init__(self, loss: Tensor, theta: Sequence[nn.Parameter]) -> None:
        self.theta = list(theta)
        gradients = torch.autograd.grad(loss, self.theta, create_graph=True, allow_unused=True)
        self.g = [torch.zeros_like(p) if g is None else g for p, g in zip(self.theta, gradients, strict=True)]
        self._curved = [i for i, g in enumerate(self.g) if g.requires_grad]

    def product(self, w: Vector) -> list[Tensor]:
        """H w."""
        return _gradients([self.g[i] for i in self._curved], self.theta, [w[i] for i in self._curved])

    def cross(self, u: Vector, phi: Sequence[nn.Parameter]) -> Tensor:
        """A scalar whose gradient in φ is that of ⟨g, u⟩."""
        return dot(self.g, u)


class _Differences:
    """The same products by central differences of first derivatives, for nets that have no second one.

    Each evaluation sees the same random numbers, those of the state at the start.
    """

    def __init__(self, loss: Callable[[], Tensor], theta: Sequence[nn.Parameter]) -> None:
        self.loss, self.theta = loss, list(theta)
        self._numbers = _Numbers(self.theta[0].device)

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
                ends.append(_gradients(self.loss(), parameters))
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


class _Numbers:
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


def _draw(context: sp.Context) -> sp.Context:
    """The batch anew, its nets run in one order, so that their dropout doesn't depend on what a loss asks for first."""
    drawn = sp.OneBatch(context.model, context.batch)
    with torch.autocast(context.batch.rows.device.type, enabled=False):
        drawn.proposal, drawn.energy.features  # noqa: B018
    return drawn


def _gradients(outputs: Any, parameters: Sequence[nn.Parameter], along: Any = None) -> list[Tensor]:
    """Gradients, zero where there is none; the graph is kept."""
    if not outputs if isinstance(outputs, list) else not outputs.requires_grad:
        return [torch.zeros_like(p) for p in parameters]
    return list(
        torch.autograd.grad(
            outputs, list(parameters), along, retain_graph=True, allow_unused=True, materialize_grads=True
        )
    )


def _sum_terms(terms: sp.Terms, examples: int) -> Tensor:
    """The loss that a phase minimises."""
    return sum(term.sum() for term in terms.values()) / examples
