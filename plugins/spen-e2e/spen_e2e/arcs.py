"""Semantic role labelling as arcs: the arc-factored model, and an energy on top (Belanger et al. 2017, Sec. 6.2)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

import spen_plugins as sp
from spen_e2e.convex import SmoothTail
from spen_plugins.nn import at_least_float32, inner_product

DISTANCES = 10
"""Largest distance and length of spans, in words, that are told apart."""


class ArcConfig(sp.Config):
    """Sizes of the arc-factored model."""

    hidden: int = Field(128, ge=1)
    """Width of the hidden layers over a pair of predicate and candidate."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout of the first hidden layer in training."""


class LocalArcs(nn.Module):
    """Scores g(r, x, p, a) of the roles of each pair of a predicate and a candidate (Eq. 18): two hidden layers on the
    predicate's vector, the vectors of the candidate's first and last word and the mean of all of its, the distance
    between the two and the candidate's length."""

    def __init__(self, config: ArcConfig, before: int, roles: int) -> None:
        super().__init__()
        width = config.hidden
        self.predicate = nn.Linear(before, width)
        self.candidate = nn.Linear(3 * before, width, bias=False)
        self.distance = nn.Embedding(2 * DISTANCES + 1, width)
        self.length = nn.Embedding(DISTANCES + 1, width)
        self.hidden = nn.Linear(width, width)
        self.output = nn.Linear(width, roles)
        self.dropout = config.dropout
        for table in (self.distance, self.length):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, words: Tensor, x: sp.X) -> tuple[Tensor, Tensor]:
        """Vectors of pairs `(batch, pair, hidden)` and scores `(batch, pair, role)`, zero on padding.

        Args:
            words: `(batch, token, before)`, zero on padding.
        """
        assert x.mask is not None
        inputs, inside = x.inputs, x.mask.unsqueeze(-1)
        predicate, first, last = inputs["predicate_at"], inputs["candidate_first"], inputs["candidate_last"]
        size = (last - first + 1).unsqueeze(-1)
        sums = F.pad(at_least_float32(words).cumsum(1), (0, 0, 1, 0))
        mean = ((rows(sums, last + 1) - rows(sums, first)) / size).to(words.dtype)
        spans = torch.cat([rows(words, first), rows(words, last), mean], -1)
        of, to = inputs["pair_predicate"], inputs["pair_candidate"]
        h = rows(self.predicate(rows(words, predicate)), of) + rows(self.candidate(spans), to)
        at, first, last = predicate.clamp(min=0).gather(1, of), first.gather(1, to), last.gather(1, to)
        # Below 0 to the left of the predicate; 0 is a candidate that holds it.
        apart = (first - at).clamp(min=0) - (at - last).clamp(min=0)
        h = h + self.distance(apart.clamp(-DISTANCES, DISTANCES) + DISTANCES)
        h = h + self.length((last - first).clamp(0, DISTANCES))
        h = F.dropout(F.softplus(h), self.dropout, self.training)
        h = F.softplus(self.hidden(h)) * inside
        return h, self.output(h) * inside


class ArcScorer(sp.InferenceNet):
    """The arc-factored model, P(r | x, p, a) of each pair alone (Eq. 17, 18)."""

    uses_features = True
    Config = ArcConfig

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_arcs(self, task)
        assert features is not None
        self.local = LocalArcs(config, features.output_dim, len(task.space.tags))

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        _, scores = self.local(word_vectors(self, x), x)
        return self.space.independent(scores.unsqueeze(1), x.mask)


class _Parts(NamedTuple):
    """What the energy keeps of x."""

    local: Tensor
    """`(batch, pair, role)` −ln P, zero on padding."""
    arcs: Tensor
    """`(batch, pair, width)` features of arcs, zero on padding."""
    contexts: tuple[Tensor, Tensor, Tensor]
    """What the first layers add for each predicate, candidate and sentence, `(batch, 1, some, global)`."""
    there: tuple[Tensor, Tensor, Tensor]
    """True for predicates `(batch, predicate)`, candidates `(batch, candidate)`, and pairs of them `(batch, predicate,
    candidate)`."""
    place: Tensor
    """`(batch, pair)`, in the table of predicates and candidates."""
    inside: Tensor
    """`(batch, pair)`, the mask as numbers."""
    overlaps: tuple[Tensor, Tensor, Tensor]
    """Row, and the numbers of two of its candidates that overlap, `(overlap,)` each."""


class Arcs(sp.Energy):
    """E(x, y) = −Σ ln P(r) (Eq. 17) + MLPs on what is chosen for each predicate, candidate and sentence + soft
    constraints.

    What is chosen is a sum, over arcs, of their features weighted by y's roles. Constraints are α SoftPlus(ā + b̄ − 1),
    α > 0 (Sec. 6.2.2), for each two overlapping arguments of a predicate, where ā is an arc's probability of any role,
    and for core roles α SoftPlus(Σ ā − 1) over a predicate's arcs of a role, which is the same where two have it.
    """

    uses_features = True

    class Config(ArcConfig):
        width: int = Field(32, ge=1)
        """Width of an arc's features in the sums."""
        global_hidden: int = Field(32, ge=1)
        """Width of the two hidden layers of each MLP."""
        constraint: float = Field(1.0, gt=0)
        """Initial α of each soft constraint; they are trained."""
        sharpness: float = Field(25.0, gt=0)
        """β of the constraints' SoftPlus(a) = ln(1 + exp(β a)) / β."""
        icnn: bool = False
        """If true, the energy is convex in y: weights after the MLPs' first layers are not negative."""

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_arcs(self, task)
        assert features is not None
        roles, hidden = task.space.tags, config.global_hidden
        self.local = LocalArcs(config, features.output_dim, len(roles))
        self.arc = nn.Linear(config.hidden, config.width)
        # Not of "none", which role 0 is.
        self.role = nn.Parameter(torch.randn(len(roles) - 1, config.width) / math.sqrt(config.width))
        before = features.output_dim
        self.context = nn.ModuleList(nn.Linear(size, hidden) for size in (before, 2 * before, before))
        self.first = nn.ModuleList(nn.Linear(2 * config.width, hidden, bias=False) for _ in range(3))
        self.tail = nn.ModuleList(SmoothTail(hidden, config.icnn) for _ in range(3))
        core = torch.tensor([i for i, role in enumerate(roles) if role in task.inputs.core], dtype=torch.long)
        self.register_buffer("core", core, persistent=False)
        self.log_overlap = nn.Parameter(torch.tensor(math.log(config.constraint)))
        self.log_repeat = nn.Parameter(torch.full((len(core),), math.log(config.constraint)))

    def encode(self, x: sp.X) -> _Parts:
        assert x.mask is not None
        words = word_vectors(self, x)
        vectors, scores = self.local(words, x)
        inside = x.mask.to(scores.dtype)
        predicate, first, last = (x.inputs[f] for f in ("predicate_at", "candidate_first", "candidate_last"))
        place = x.inputs["pair_predicate"] * first.shape[1] + x.inputs["pair_candidate"]
        table = inside.new_zeros(x.size, predicate.shape[1] * first.shape[1])
        pairs = table.scatter_add(1, place, inside).view(x.size, predicate.shape[1], -1) > 0
        # Each two once; candidates that are padding end before they begin.
        over = (first.unsqueeze(2) <= last.unsqueeze(1)) & (first.unsqueeze(1) <= last.unsqueeze(2))
        over = over & (first >= 0).unsqueeze(2) & (first >= 0).unsqueeze(1)
        row, one, other = over.triu(1).nonzero(as_tuple=True)
        seen = words.sum(1) / (x.inputs["words"] > 0).sum(1, keepdim=True).clamp(min=1)
        ends = torch.cat([rows(words, first), rows(words, last)], -1)
        given = (rows(words, predicate), ends, seen.unsqueeze(1))
        return _Parts(
            -torch.log_softmax(at_least_float32(scores), -1) * inside.unsqueeze(-1),
            self.arc(vectors) * inside.unsqueeze(-1),
            tuple(layer(vector).unsqueeze(1) for layer, vector in zip(self.context, given, strict=True)),
            (predicate >= 0, first >= 0, pairs),
            place,
            inside,
            (row, one, other),
        )

    def forward(self, features: _Parts, y: Tensor) -> Tensor:
        f = features
        return inner_product(f.local, y) + self._global(f, y) + self._constraints(f, y)

    def _global(self, f: _Parts, y: Tensor) -> Tensor:
        """The MLPs on sums of arcs, `(batch, sample)`."""
        roles = y[..., 1:] @ self.role.to(y.dtype) * f.inside[:, None, :, None]
        arcs = self._table(f, torch.cat([roles * f.arcs.unsqueeze(1), roles], -1))
        sums = arcs.sum(3), arcs.sum(2), arcs.sum((2, 3)).unsqueeze(2)
        there = (*f.there[:2], None)
        total = y.new_zeros(y.shape[:2])
        for vectors, given, inside, first, tail in zip(sums, f.contexts, there, self.first, self.tail, strict=True):
            values = at_least_float32(tail(first(vectors) + given))
            total = total + (values if inside is None else values * inside.unsqueeze(1)).sum(-1)
        return total

    def _constraints(self, f: _Parts, y: Tensor) -> Tensor:
        """The soft constraints, `(batch, sample)`."""
        beta = self.config.sharpness
        y = y * f.inside[:, None, :, None]
        chosen = self._table(f, torch.cat([y[..., 1:].sum(-1, keepdim=True), y[..., self.core]], -1))
        masses = chosen[..., 1:].sum(3)
        repeats = F.softplus(masses - 1, beta=beta) * f.there[0][:, None, :, None] @ self.log_repeat.exp().to(y.dtype)

        row, one, other = f.overlaps
        active, both = chosen[..., 0].permute(0, 3, 1, 2), f.there[2].transpose(1, 2)
        values = F.softplus(active[row, one] + active[row, other] - 1, beta=beta)
        values = values * (both[row, one] & both[row, other]).unsqueeze(1)
        overlaps = y.new_zeros(y.shape[:2]).index_add(0, row, values.sum(-1))
        return repeats.sum(-1) + self.log_overlap.exp() * overlaps

    def _table(self, f: _Parts, values: Tensor) -> Tensor:
        """`(batch, sample, pair, size)` -> `(batch, sample, predicate, candidate, size)`; zero without a pair."""
        batch, samples, _, size = values.shape
        shape = f.there[2].shape[1:]
        place = f.place[:, None, :, None].expand_as(values)
        empty = values.new_zeros(batch, samples, shape[0] * shape[1], size)
        return empty.scatter_add(2, place, values).view(batch, samples, *shape, size)


def rows(values: Tensor, index: Tensor) -> Tensor:
    """The rows of `values` `(batch, some, size)` at `index` `(batch, other)`, of which -1 is padding."""
    return values.gather(1, index.clamp(min=0).unsqueeze(-1).expand(-1, -1, values.shape[-1]))


def word_vectors(component: sp.Component, x: sp.X) -> Tensor:
    """The feature network's vectors of words, `(batch, token, size)`; `x.mask` is that of pairs."""
    inside = x.inputs["words"] > 0
    return component.features(sp.X(x.inputs, inside, x.size)) * inside.unsqueeze(-1)


def require_arcs(component: sp.Component, task: sp.Task) -> None:
    """Raise `ConfigError` unless the task's outputs are roles of pairs of a predicate and a span."""
    if not isinstance(task.inputs, sp.ArcInputs):
        raise sp.ConfigError(
            f"{type(component).__name__} gives roles to pairs of a predicate and a span, but the task has "
            f"{type(task.inputs).__name__}; choose task 'arcs'"
        )
