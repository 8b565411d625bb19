"""What travels between the nouns: inputs, batches, proposals."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from spen_plugins.spaces import LabelSet, OutputSpace, SparseLabels


@dataclass(frozen=True)
class X:
    """All that may be seen at test time.

    Args:
        inputs: tensors by name; which names there are is between a task and its feature networks.
        mask: `(batch, token)` boolean for sequences, None where outputs have no padding.
        size: how many examples.
    """

    inputs: dict[str, Tensor]
    mask: Tensor | None
    size: int

    def to(self, device: torch.device | str) -> X:
        return X(
            {name: value.to(device, non_blocking=True) for name, value in self.inputs.items()},
            None if self.mask is None else self.mask.to(device, non_blocking=True),
            self.size,
        )


@dataclass(frozen=True)
class Batch:
    """Some examples, with their gold outputs apart so that a test-time net can't see them.

    Args:
        x: the inputs.
        rows: `(batch,)` numbers of the examples in their part.
        gold: `(batch, 1, *variables)`, or None where nothing is annotated; zero in rows without gold.
        labelled: `(batch,)` boolean, which rows have gold.
    """

    x: X
    rows: Tensor
    gold: Tensor | None
    labelled: Tensor

    def __len__(self) -> int:
        return self.x.size

    def to(self, device: torch.device | str) -> Batch:
        gold = None if self.gold is None else self.gold.to(device, non_blocking=True)
        return Batch(self.x.to(device), self.rows.to(device), gold, self.labelled.to(device))


@dataclass(frozen=True)
class Proposal:
    """q(y | x), what an inference net says of a batch. Immutable, so what it has computed once stays true.

    Here the variables are independent given x; a net whose variables are not (a CRF) returns a subclass that
    overrides `mean`, `sample`, `rsample`, `log_prob`, `likeliest` and `k_best`.

    Args:
        space: the output space.
        logits: `(batch, 1, *variables)`.
        mask: as `X.mask`.
        features: the net's features, for heads that share them.
        iterates: relaxed outputs along an optimiser's path, from first to last, where the net is one.
        chosen: the discrete output that is decided on, `(batch, 1, *variables)`, where something else than q decides.
    """

    space: OutputSpace
    logits: Tensor
    mask: Tensor | None = None
    features: Any = None
    iterates: tuple[Tensor, ...] = ()
    chosen: Tensor | None = None
    _kept: dict[Any, Tensor] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        # A net may run in half precision; what is drawn and compared may not: rare labels would be drawn too often.
        if self.logits.dtype in (torch.bfloat16, torch.float16):
            object.__setattr__(self, "logits", self.logits.float())

    @cached_property
    def mean(self) -> Tensor:
        """The relaxed output, `(batch, 1, *variables)`, differentiable in the net's parameters."""
        with self.as_made():
            return self.space.relax(self.logits, self.mask)

    def as_made(self) -> torch.set_grad_enabled:
        """The gradient mode this proposal was made in: what it keeps must not depend on who asks first."""
        return torch.set_grad_enabled(self.logits.requires_grad)

    def sample(self, n: int) -> Tensor:
        """`n` discrete outputs, drawn anew at each call, `(batch, n, *variables)`."""
        return self.space.sample(self.logits, n, self.mask)

    @property
    def draws_sparse(self) -> bool:
        """Whether `sample_sparse` draws from what `sample` draws from: label sets, the labels independent given x."""
        return all(
            getattr(type(mine), name) is getattr(base, name)
            for mine, base in ((self, Proposal), (self.space, LabelSet))
            for name in ("sample", "log_prob")
        )

    def sample_sparse(self, n: int) -> SparseLabels:
        """As `sample`, as lists of the labels that are on; only where `draws_sparse`."""
        return self.space.sample_sparse(self.logits, n, self.mask)

    def rsample(self, n: int, temperature: float = 1.0) -> Tensor:
        """`n` relaxed samples with gradient, `(batch, n, *variables)`."""
        return self.space.rsample(self.logits, n, self.mask, temperature)

    def perturb(self, n: int, std: float) -> Tensor:
        """`n` relaxed outputs around this one, `(batch, n, *variables)`."""
        return self.space.perturb(self.logits, n, std, self.mask)

    def log_prob(self, y: Tensor | SparseLabels) -> Tensor:
        """ln q(y | x), `(batch, sample)`."""
        return self.space.log_prob(self.logits, y, self.mask)

    def best(self) -> Tensor:
        """What was chosen, else the likeliest output, `(batch, 1, *variables)` of zeros and ones."""
        return self.likeliest() if self.chosen is None else self.chosen

    def likeliest(self) -> Tensor:
        """The most probable discrete output the space allows, `(batch, 1, *variables)` of zeros and ones."""
        return self.space.best(self.logits, self.mask)

    def k_best(self, k: int) -> tuple[Tensor, Tensor]:
        """The `k` most probable discrete outputs the space allows, best first, and ln q of each.

        Shapes: `(batch, k, *variables)` of zeros and ones and `(batch, k)`, without gradient. Where fewer than `k`
        exist, ln q is −∞ and the best output stands again.
        """
        return self.space.k_best(self.logits, self.mask, k)

    def keep(self, name: Any, make: Any) -> Any:
        """`make()` at the first call with this name, the same value at later ones: samples drawn once per proposal."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    def detach(self) -> Proposal:
        """The same proposal without gradients to the net."""
        return replace(
            self,
            logits=self.logits.detach(),
            features=self.features.detach() if isinstance(self.features, Tensor) else None,
            iterates=tuple(y.detach() for y in self.iterates),
            _kept={},
        )
