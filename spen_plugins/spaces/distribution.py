"""Distributions over outputs: q(y | x), the results of inference nets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from spen_plugins.errors import ConfigError, PluginError
from spen_plugins.spaces.base import OutputSpace
from spen_plugins.spaces.spans import Spans

T = TypeVar("T")


@dataclass(frozen=True)
class Proposal(ABC):
    """q(y | x), a distribution over the outputs of a batch, with the names of `torch.distributions`.

    Immutable, so that cached values stay valid. `space.independent(logits, mask)` returns the distribution
    whose variables are independent given x. A net with dependent variables (a CRF) returns its own subclass, which
    implements `mode`, `sample`, `rsample` and `log_prob`, and usually overrides `mean`, `perturb` and `k_best`.

    Args:
        space: the output space.
        logits: `(batch, 1, *variables)`.
        mask: as `X.mask`.
        features: the net's features, for heads that share them.
        iterates: relaxed outputs along the path, from first to last, if the net is an optimiser.
        chosen: the discrete output that the net itself chooses, `(batch, 1, *variables)`, instead of the
            task: `Task.decode` returns it.
    """

    space: OutputSpace
    logits: Tensor
    mask: Tensor | None = None
    features: Any = None
    iterates: tuple[Tensor, ...] = ()
    chosen: Tensor | None = None
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    sparse: ClassVar[bool] = False
    """True if there is a `sample_sparse(n)`, which draws `SparseLabels` from the same distribution as `sample`.
    A subclass with other samples sets it to False."""
    exact: ClassVar[bool] = True
    """False if `log_prob` is only a bound, for example because several sequences give the same output."""
    potentials: ClassVar[tuple[str, ...]] = ()
    """Names of further fields with scores like `logits`: tensors with a row per example."""

    def __post_init__(self) -> None:
        # A net may run in half precision, but not its samples and log-probabilities: rare labels would be too frequent.
        if self.logits.dtype in (torch.bfloat16, torch.float16):
            object.__setattr__(self, "logits", self.logits.float())

    @cached_property
    def mean(self) -> Tensor:
        """The relaxed output, `(batch, 1, *variables)`, differentiable in the net's parameters."""
        with self.restore_grad_mode():
            return self.space.relax(self.logits, self.mask)

    @property
    @abstractmethod
    def mode(self) -> Tensor:
        """The most probable discrete output that the space allows, `(batch, 1, *variables)`, without gradient."""

    @abstractmethod
    def sample(self, n: int) -> Tensor:
        """`n` discrete outputs, drawn independently and anew at each call, `(batch, n, *variables)`, no gradient."""

    @abstractmethod
    def rsample(self, n: int, temperature: float = 1.0) -> Tensor:
        """`n` relaxed samples with a gradient to the logits (concrete, Gumbel-softmax), `(batch, n, *variables)`."""

    def perturb(self, n: int, std: float) -> Tensor:
        """`n` relaxed outputs with Gaussian noise of deviation `std` on the logits, `(batch, n, *variables)`."""
        batch, _, *variables = self.logits.shape
        noise = torch.randn(batch, n, *variables, device=self.logits.device, dtype=self.logits.dtype)
        return self.space.relax(self.logits + std * noise, self.mask)

    @abstractmethod
    def log_prob(self, y: Tensor) -> Tensor:
        """ln q(y | x), `(batch, sample)`; for a relaxed y, Σ y · ln q of independent variables."""

    def density(self, y: Tensor) -> Tensor:
        """`log_prob` without gradient, for importance weights and for the noise of NCE, which a bound would falsify.

        Raises:
            ConfigError: `log_prob` is only a bound.
        """
        if not self.exact:
            raise ConfigError(
                f"{type(self).__name__} has only a bound of ln q(y), so its samples can neither be noise of NCE nor be "
                "weighted by an energy; use a net with exact probabilities, such as one that predicts labels in order"
            )
        with torch.no_grad():
            return self.log_prob(y)

    def weighted_log_prob(self, y: Tensor, weights: Tensor) -> Tensor:
        """Σ over variables of ln q of y's value times the weight of this value's class, `(batch, sample)`. Optional.

        Args:
            y: `(batch, sample, *variables)`, discrete.
            weights: for label sets `(2, label)`, the weights of an absent and of a present label; for tags `(tag,)`.

        Raises:
            ConfigError: the variables are not independent, so ln q(y) is no sum over them.
        """
        raise ConfigError(
            f"task.class_weight weighs the terms of single labels or tags, but {type(self).__name__} has one "
            "probability per output; use independent labels or tags (inference_net.type=independent, "
            "method=cross_entropy), or class_weight=null"
        )

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        """The `k` most probable discrete outputs that the space allows, best first, and ln q of each.

        Shapes: `(batch, k, *variables)` of zeros and ones and `(batch, k)`, without gradient. If fewer than `k`
        exist, ln q is −∞ and the mode is repeated. Optional.

        Raises:
            PluginError: the distribution does not implement it.
        """
        raise PluginError(
            f"{type(self).__name__}, the distribution over {type(self.space).__name__}, doesn't list its k best "
            "outputs, which the inference net 'rerank' requires: implement its method k_best, or predict with another "
            "net"
        )

    def label_powers(self, t: Tensor) -> Tensor | None:
        """E[t^|y| y_i | x] of each label i at points t, `(batch, point, label)` float64, without gradient.

        Defined for label sets only. It is the joint law of labels and set sizes as a generating function, which
        determines the set of highest expected F1. Optional: None if the distribution doesn't implement it.

        Args:
            t: in (0, 1], `(point,)`.
        """
        return None

    def tempered(self, temperature: float) -> Proposal:
        """The distribution ∝ q(y | x)^(1/T): `logits` and `potentials` are divided by T.

        A subclass with other scores overrides it.
        """
        return replace(self, _kept={}, **self._map_scores(lambda scores: scores / temperature))

    def map_rows(self, change: Callable[[Tensor], Tensor]) -> Proposal:
        """The distribution with `change` applied to each tensor that has a row per example, for example to select
        rows or to move to another device; features and iterates are dropped.

        A subclass with further tensors than its `potentials` overrides it.
        """
        tensors = {
            name: None if (value := getattr(self, name)) is None else change(value) for name in ("mask", "chosen")
        }
        return replace(self, features=None, iterates=(), _kept={}, **self._map_scores(change), **tensors)

    def span_posteriors(self, floor: float) -> Spans:
        """The spans of tags whose posterior, the probability that an output has exactly this span, is above `floor`,
        in float64, without gradient. Optional; for tag sequences under a scheme.

        Raises:
            ConfigError: the outputs have no spans, or the distribution does not implement it.
        """
        raise ConfigError(
            f"{type(self).__name__}, the distribution over {type(self.space).__name__}, has no posteriors of spans, "
            "which task.decode=expected_f1 and validation require; use task.decode=viterbi"
        )

    def keep(self, name: Any, make: Callable[[], T]) -> T:
        """`make()` at the first call with this name, the same value at later ones: samples drawn once per proposal."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    def restore_grad_mode(self) -> torch.set_grad_enabled:
        """The gradient mode at construction: cached values must not depend on the mode of the first access."""
        return torch.set_grad_enabled(any(getattr(self, name).requires_grad for name in ("logits", *self.potentials)))

    def detach(self) -> Proposal:
        """The same proposal without gradients to the net."""
        return replace(
            self,
            features=self.features.detach() if isinstance(self.features, Tensor) else None,
            iterates=tuple(y.detach() for y in self.iterates),
            _kept={},
            **self._map_scores(Tensor.detach),
        )

    def _map_scores(self, change: Callable[[Tensor], Tensor]) -> dict[str, Tensor]:
        return {name: change(getattr(self, name)) for name in ("logits", *self.potentials)}


class Dependent(Proposal):
    """Variables that depend on each other. Relaxed samples and perturbed outputs come from the closest independent
    variables: each variable has the exact mean, but is drawn without regard to the others."""

    @property
    @abstractmethod
    def _closest_independent(self) -> Proposal:
        """The independent variables with the same mean."""

    def rsample(self, n: int, temperature: float = 1.0) -> Tensor:
        """`n` relaxed samples of the closest independent variables, with a gradient to the mean."""
        return self._closest_independent.rsample(n, temperature)

    def perturb(self, n: int, std: float) -> Tensor:
        """`n` relaxed outputs with Gaussian noise on the logits of the mean."""
        return self._closest_independent.perturb(n, std)
