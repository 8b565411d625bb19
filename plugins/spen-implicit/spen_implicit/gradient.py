"""The gradient of a bilevel problem in the outer parameters, by the implicit function theorem."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

import spen_plugins as sp
from spen_implicit.inverse import (
    Solution,
    Vector,
    conjugate_gradient,
    extremal_eigenvalues,
    largest_eigenvalue,
    norm,
    series,
)
from spen_implicit.products import Differences, Exact, RandomNumbers, compute_gradients, draw_nets, sum_terms

NET = "inference_net"
"""Name of the inner phase, which trains θ."""


class ImplicitGradient:
    """dL_Prim/dφ at θ*(φ) = argmin L_Aux, a phase's gradient rule (Shankar & Piratla, Eq. 3 and 4):

        ∂L_Prim/∂φ − (∂/∂φ ∂L_Aux/∂θ) (H + δI)⁻¹ ∂L_Prim/∂θ,   H = ∂²L_Aux/∂θ²

    g = ∂L_Aux/∂θ is computed once with its graph, which all products with H share, and the result is the gradient of
    L_Prim − ⟨g, u⟩ in φ, with u a constant. `state_dict` has the state to restore after an interruption.
    """

    def __init__(
        self, config: Any, auxiliary: Callable[[sp.Context], sp.Terms], primary: Callable[[sp.Context], sp.Terms]
    ) -> None:
        self.config, self.auxiliary, self._primary = config, auxiliary, primary
        self.products = "exact" if config.products == "auto" else config.products
        self._vector: list[Tensor] = []
        self._largest = 0.0
        self._updates = self._solved = self._ended = 0
        self._dropout: RandomNumbers | None = None  # of the nets in the last L_Prim

    def primary(self, context: sp.Context) -> sp.Terms:
        """L_Prim. Exact products use its nets for L_Aux too; finite differences draw the same dropout again."""
        if self.products == "exact":
            return self._primary(context)
        self._dropout = RandomNumbers(context.batch.rows.device)
        return self._primary(draw_nets(context))

    def __call__(self, update: sp.Update) -> None:
        theta, phi = update.owned[NET], update.parameters
        v = compute_gradients(update.loss, theta)
        if not norm(v) > 0:  # no implicit term: a batch without gold, or no example within the margin
            update.backward(update.loss, inputs=list(phi))
            return
        inner = self._make_inner(update.context, theta, update.examples)
        u, has_ended = self._solve(inner, v)
        self._updates += 1
        self._solved += 1
        self._ended += has_ended
        update.backward(update.loss - inner.cross(u, phi), inputs=list(phi))

    def measures(self, context: sp.Context, theta: Sequence[nn.Parameter], phi: Sequence[nn.Parameter]) -> sp.Terms:
        """The batch's measures: H's extremal eigenvalues and the norms of both terms of the gradient (App. D), and the
        share of inverse products since the last call that ended early."""
        examples, dropout = len(context.batch), self._dropout
        with torch.enable_grad():
            loss = sum_terms(self.primary(context), examples)
            v = compute_gradients(loss, theta)
            measures = {"ended": self._ended / max(self._solved, 1)}
            self._solved = self._ended = 0
            if norm(v) > 0:
                inner = self._make_inner(context, theta, examples)
                state = self._vector, self._largest, self._updates
                u, _ = self._solve(inner, v)
                self._vector, self._largest, self._updates = state
                measures["explicit"] = norm(compute_gradients(loss, phi))
                measures["implicit"] = norm(compute_gradients(inner.cross(u, phi), phi))
                measures["eigenvalue_min"], measures["eigenvalue_max"] = extremal_eigenvalues(inner.product, v, 10)
        self._dropout = dropout
        return {name: torch.full((examples,), value) for name, value in measures.items()}

    def try_products(self, context: sp.Context, theta: Sequence[nn.Parameter]) -> None:
        """Raises autograd's error if there is no second derivative."""
        try:
            with torch.enable_grad():
                inner = self._make_inner(context, theta, len(context.batch))
                if isinstance(inner, Exact):
                    # For all parameters: with only some of them, a missing derivative may be taken for zero.
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
        self.products = state["products"]
        self._vector, self._largest = list(state["vector"]), state["largest"]
        self._updates, self._solved, self._ended = state["counts"]

    def _make_inner(self, context: sp.Context, theta: Sequence[nn.Parameter], examples: int) -> Exact | Differences:
        if self.products == "exact":
            return Exact(sum_terms(self.auxiliary(context), examples), theta)
        dropout = self._dropout or RandomNumbers(context.batch.rows.device)

        def loss() -> Tensor:
            with dropout.again():
                fresh_context = draw_nets(context)
            return sum_terms(self.auxiliary(fresh_context), examples)

        return Differences(loss, theta)

    def _solve(self, inner: Exact | Differences, v: Vector) -> Solution:
        config = self.config
        self._find_largest(inner, v)
        shift = config.damping * self._largest
        # Room above λmax: power iterations reach it from below.
        step = 1 / (1.2 * self._largest + shift)
        if config.inverse == "cg":
            u, has_ended = conjugate_gradient(inner.product, v, config.terms, step, shift)
        else:
            terms = 0 if config.inverse == "identity" else config.terms
            u, has_ended = series(inner.product, v, terms, step, shift)
        if has_ended:
            self._updates = -1  # estimate the largest eigenvalue again
        if not math.isfinite(norm(u)):
            raise sp.RunError(
                f"the inverse Hessian's product is not finite (trainer.inverse={config.inverse}, largest eigenvalue "
                f"{self._largest:g}); try a larger trainer.damping, or lower rates or clipping for both players"
            )
        return u, has_ended

    def _find_largest(self, inner: Exact | Differences, v: Vector) -> None:
        """Estimates λmax at every `power_every`-th update; H changes slowly, and so does its eigenvector."""
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
                f"the largest eigenvalue of the Hessian of the net's loss is {self._largest:g}, so it has no inverse: "
                "the loss has diverged, or doesn't depend on the net to second order"
            )
