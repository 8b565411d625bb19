"""What an output space is: pure functions over tensors of outputs, no parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from spen_plugins.errors import PluginError


class OutputSpace(ABC):
    """The relaxed set Y_R that outputs live in, and how to relax, sample, round and compare in it.

    Shapes: `y`, `gold` and `logits` are `(batch, sample, *variables)`; `mask` is `(batch, *masked)` boolean, true
    where a variable exists, or None where all do. Rows of padding are zero in everything a space returns. `logits`
    of a proposal have `sample = 1`; every function broadcasts over the sample axis.
    """

    simplex: bool = False
    """Whether the last axis of `y` holds shares that sum to one, rather than variables of their own."""
    variables: int
    """How many axes of `y` are variables: 1 for labels, 2 for (token, tag)."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int | None, ...]:
        """Sizes of the variable axes; None where it differs from batch to batch."""

    @abstractmethod
    def relax(self, logits: Tensor, mask: Tensor | None) -> Tensor:
        """Logits -> relaxed y, differentiable."""

    @abstractmethod
    def logits(self, y: Tensor, mask: Tensor | None) -> Tensor:
        """Logits that relax to `y`, finite: y is taken to be at least 1e-4 away from 0 (and, for labels, from 1)."""

    @abstractmethod
    def sample(self, logits: Tensor, n: int, mask: Tensor | None) -> Tensor:
        """`n` discrete outputs drawn independently: `(batch, n, *variables)` of zeros and ones, no gradient."""

    @abstractmethod
    def rsample(self, logits: Tensor, n: int, mask: Tensor | None, temperature: float = 1.0) -> Tensor:
        """`n` relaxed samples that carry a gradient to the logits (concrete / Gumbel-softmax)."""

    @abstractmethod
    def perturb(self, logits: Tensor, n: int, std: float, mask: Tensor | None) -> Tensor:
        """`n` relaxed outputs with Gaussian noise of deviation `std` added to the logits (SEAL, regression-s)."""

    @abstractmethod
    def log_prob(self, logits: Tensor, y: Tensor, mask: Tensor | None) -> Tensor:
        """ln q(y) under independent variables, `(batch, sample)`; for relaxed y, the expectation's lower bound."""

    @abstractmethod
    def round(self, y: Tensor, mask: Tensor | None) -> Tensor:
        """Relaxed y -> the discrete output it stands for."""

    @abstractmethod
    def best(self, logits: Tensor, mask: Tensor | None) -> Tensor:
        """The most probable discrete output the space allows, `(batch, sample, *variables)` of zeros and ones."""

    def k_best(self, logits: Tensor, mask: Tensor | None, k: int) -> tuple[Tensor, Tensor]:
        """The k most probable discrete outputs the space allows, best first, and ln q of each, as `log_prob` has it.

        Shapes: logits `(batch, 1, *variables)`; returns `(batch, k, *variables)` of zeros and ones and `(batch, k)`.
        Where fewer than k outputs exist, ln q is −∞ and the best output stands again. A space may do without it.

        Raises:
            PluginError: it does.
        """
        raise PluginError(
            f"the output space {type(self).__name__} doesn't list its k best outputs, of which the inference net "
            "'rerank' chooses one: give it the method k_best, or predict with another net"
        )

    @abstractmethod
    def cost(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        """The margin's Δ: L1 distance summed over variables, `(batch, sample)`."""

    @abstractmethod
    def score(self, y: Tensor, gold: Tensor, mask: Tensor | None) -> Tensor:
        """Soft score in [0, 1], 1 where y equals gold, `(batch, sample)`."""

    @abstractmethod
    def size(self, y: Tensor, mask: Tensor | None) -> Tensor:
        """How many variables each example has, `(batch, 1)`: what a mean Δ divides by."""

    @abstractmethod
    def project(self, y: Tensor, mask: Tensor | None) -> Tensor:
        """The nearest point of the relaxed set (Euclidean), for projected gradient steps."""


def full(values: Tensor) -> Tensor:
    """At least float32: a sum over many variables, rounded to bfloat16, is off by more than what it is compared for."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def inner(scores: Tensor, y: Tensor) -> Tensor:
    """Σ over variables of scores · y: `(batch, *variables)`, `(batch, sample, *variables)` -> `(batch, sample)`.

    In full precision under autocast too; one batched product, so nothing of y's size is made on the way.
    """
    scores, y = full(scores), full(y)
    with torch.autocast(y.device.type, enabled=False):
        return torch.bmm(y.flatten(2), scores.flatten(1).unsqueeze(-1).to(y.dtype)).squeeze(-1)
