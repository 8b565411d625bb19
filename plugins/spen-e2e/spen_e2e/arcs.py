"""Semantic role labelling as arcs: the arc-factored model, and an energy on top (Belanger et al. 2017, Sec. 6.2)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

import spen_plugins as sp
from spen_e2e.images import non_negative
from spen_plugins.nn import at_least_float32, inner_product, take_vectors

DISTANCES = 10
"""Largest distance and length of spans, in words, that the model distinguishes."""


class ArcConfig(sp.Config):
    """Sizes of the arc-factored model."""

    hidden: int = Field(128, ge=1)
    """Width of the hidden layers over a pair of predicate and candidate."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout of the first hidden layer in training."""


class LocalArcs(nn.Module):
    """Scores g(r, x, p, a) of the roles of each pair of a predicate and a candidate (Eq. 18): two hidden layers on the
    predicate's vector, the vectors of the candidate's first and last word, the mean of its words' vectors, the
    distance between the two, and the candidate's length."""

    def __init__(self, config: ArcConfig, word_size: int, roles: int) -> None:
        super().__init__()
        width = config.hidden
        self.predicate = nn.Linear(word_size, width)
        self.candidate = nn.Linear(3 * word_size, width, bias=False)
        self.distance = nn.Embedding(2 * DISTANCES + 1, width)
        self.length = nn.Embedding(DISTANCES + 1, width)
        self.hidden = nn.Linear(width, width)
        self.output = nn.Linear(width, roles)
        self.dropout = config.dropout
        for table in (self.distance, self.length):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, words: Tensor, x: sp.X) -> tuple[Tensor, Tensor]:
        """Vectors of pairs `(batch, pair, hidden)` and scores `(batch, pair, role)`, given vectors of words
        `(batch, token, word_size)`; all are zero on padding."""
        assert x.mask is not None
        inputs, mask = x.inputs, x.mask.unsqueeze(-1)
        predicate, first, last = inputs["predicate_at"], inputs["candidate_first"], inputs["candidate_last"]
        size = (last - first + 1).unsqueeze(-1)
        sums = F.pad(at_least_float32(words).cumsum(1), (0, 0, 1, 0))
        mean = ((take_rows(sums, last + 1) - take_rows(sums, first)) / size).to(words.dtype)
        spans = torch.cat([take_rows(words, first), take_rows(words, last), mean], -1)
        predicate_index, candidate_index = inputs["pair_predicate"], inputs["pair_candidate"]
        h = take_rows(self.predicate(take_rows(words, predicate)), predicate_index)
        h = h + take_rows(self.candidate(spans), candidate_index)
        predicate_word, first, last = (
            predicate.clamp(min=0).gather(1, predicate_index),
            first.gather(1, candidate_index),
            last.gather(1, candidate_index),
        )
        # Below 0 to the left of the predicate; 0 is a candidate that holds it.
        distance = (first - predicate_word).clamp(min=0) - (predicate_word - last).clamp(min=0)
        h = h + self.distance(distance.clamp(-DISTANCES, DISTANCES) + DISTANCES)
        h = h + self.length((last - first).clamp(0, DISTANCES))
        h = F.dropout(F.softplus(h), self.dropout, self.training)
        h = F.softplus(self.hidden(h)) * mask
        return h, self.output(h) * mask


class ArcScorer(sp.InferenceNet):
    """The arc-factored model, P(r | x, p, a) for each pair separately (Eq. 17, 18)."""

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
    """The part of an energy that depends only on x."""

    local: Tensor
    """`(batch, pair, role)` −ln P, zero on padding."""
    arcs: Tensor
    """`(batch, pair, width)` features of arcs, zero on padding."""
    mask: Tensor
    """`(batch, pair)`, the mask as numbers."""
    owners: tuple[Tensor, Tensor]
    """The predicate and the candidate of each pair, `(batch, pair)`."""
    contexts: tuple[Tensor, Tensor, Tensor]
    """Terms of the first layers for each predicate, candidate and sentence, `(batch, 1, some, global)`."""
    exists: tuple[Tensor, Tensor, Tensor]
    """1 for predicates, candidates and sentences, `(batch, 1, some)`, 0 on padding."""
    conflicts: tuple[Tensor, Tensor]
    """Places in a flat `(batch, pair)` of every two pairs of a predicate whose candidates overlap, `(conflict,)`."""


class Arcs(sp.Energy):
    """E(x, y) = −Σ ln P(r) (Eq. 17) + MLPs on the chosen arcs of each predicate, candidate and sentence + soft
    constraints.

    An MLP's input is the sum of the arcs' features, weighted by y's roles. Constraints are α SoftPlus(ā + b̄ − 1),
    α > 0 (Sec. 6.2.2), for each two overlapping arguments of a predicate, where ā is an arc's probability of any role,
    and for core roles α SoftPlus(Σ ā − 1) over a predicate's arcs of a role, which is the same if two arcs have it.
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
        # Without "none", which is role 0.
        self.role = nn.Parameter(torch.randn(len(roles) - 1, config.width) / math.sqrt(config.width))
        word_size = features.output_dim
        self.context = nn.ModuleList(nn.Linear(size, hidden) for size in (word_size, 2 * word_size, word_size))
        self.first = nn.ModuleList(nn.Linear(2 * config.width, hidden, bias=False) for _ in range(3))
        self.tail = nn.ModuleList(_make_later_layers(hidden, config.icnn) for _ in range(3))
        core = torch.tensor([i for i, role in enumerate(roles) if role in task.inputs.core], dtype=torch.long)
        self.register_buffer("core", core, persistent=False)
        self.log_overlap = nn.Parameter(torch.tensor(math.log(config.constraint)))
        self.log_repeat = nn.Parameter(torch.full((len(core),), math.log(config.constraint)))

    def encode(self, x: sp.X) -> _Parts:
        assert x.mask is not None
        words = word_vectors(self, x)
        vectors, scores = self.local(words, x)
        pair_mask = x.mask.to(scores.dtype)
        predicate, first, last = (x.inputs[name] for name in ("predicate_at", "candidate_first", "candidate_last"))
        mean = words.sum(1, keepdim=True) / (x.inputs["words"] > 0).sum(1).clamp(min=1)[:, None, None]
        sources = take_rows(words, predicate), torch.cat([take_rows(words, first), take_rows(words, last)], -1), mean
        exists = predicate >= 0, first >= 0, torch.ones_like(x.mask[:, :1])
        return _Parts(
            -torch.log_softmax(at_least_float32(scores), -1) * pair_mask.unsqueeze(-1),
            self.arc(vectors) * pair_mask.unsqueeze(-1),
            pair_mask,
            (x.inputs["pair_predicate"], x.inputs["pair_candidate"]),
            tuple(layer(vector).unsqueeze(1) for layer, vector in zip(self.context, sources, strict=True)),
            tuple(mask.to(scores.dtype).unsqueeze(1) for mask in exists),
            find_conflicts(x),
        )

    def forward(self, features: _Parts, y: Tensor) -> Tensor:
        """Eq. 17's energy, the MLPs and the soft constraints."""
        f, beta = features, self.config.sharpness
        y = y * f.mask[:, None, :, None]
        roles = y[..., 1:] @ self.role.to(y.dtype)
        arc_features = torch.cat([roles * f.arcs.unsqueeze(1), roles, y[..., self.core]], -1)
        predicate_sums = sum_by_owner(arc_features, f.owners[0], f.exists[0].shape[-1])
        width = 2 * self.config.width
        masses = predicate_sums[..., width:]
        candidate_sums = sum_by_owner(arc_features[..., :width], f.owners[1], f.exists[1].shape[-1])
        sums = predicate_sums[..., :width], candidate_sums, predicate_sums[..., :width].sum(2, keepdim=True)

        total = inner_product(f.local, y)
        for group_sum, context, exists, first, tail in zip(
            sums, f.contexts, f.exists, self.first, self.tail, strict=True
        ):
            total = total + (at_least_float32(tail(first(group_sum) + context).squeeze(-1)) * exists).sum(-1)

        repeats = F.softplus(masses - 1, beta=beta) @ self.log_repeat.exp().to(y.dtype) * f.exists[0]
        active = y[..., 1:].sum(-1).transpose(0, 1).flatten(1)
        first_active, second_active = (active.index_select(1, place) for place in f.conflicts)
        overlaps = F.softplus(first_active + second_active - 1, beta=beta)
        overlap_sums = active.new_zeros(y.shape[1], y.shape[0]).index_add(1, f.conflicts[0] // y.shape[2], overlaps)
        return total + repeats.sum(-1) + self.log_overlap.exp() * overlap_sums.t()


def _make_later_layers(width: int, convex: bool) -> nn.Module:
    """The layers of an MLP with two hidden layers, except the first linear one."""
    layers = nn.Linear(width, width), nn.Linear(width, 1, bias=False)
    hidden, last = (non_negative(layer) for layer in layers) if convex else layers
    return nn.Sequential(nn.Softplus(), hidden, nn.Softplus(), last)


def find_conflicts(x: sp.X) -> tuple[Tensor, Tensor]:
    """Every two pairs of a predicate whose candidates overlap, once, as places in a flat `(batch, pair)`."""
    assert x.mask is not None
    first, last, predicates = x.inputs["candidate_first"], x.inputs["candidate_last"], x.inputs["predicate_at"].shape[1]
    row, pair = x.mask.nonzero(as_tuple=True)
    places = row * x.mask.shape[1] + pair
    table = places.new_full((x.size, first.shape[1], predicates), -1)
    table[row, x.inputs["pair_candidate"][row, pair], x.inputs["pair_predicate"][row, pair]] = places
    exists = first >= 0
    is_overlap = (first.unsqueeze(2) <= last.unsqueeze(1)) & (first.unsqueeze(1) <= last.unsqueeze(2))
    is_overlap = is_overlap & exists.unsqueeze(2) & exists.unsqueeze(1)
    row, i, j = is_overlap.triu(1).nonzero(as_tuple=True)
    first_pair, second_pair = table[row, i], table[row, j]
    are_pairs = (first_pair >= 0) & (second_pair >= 0)
    return first_pair[are_pairs], second_pair[are_pairs]


def sum_by_owner(values: Tensor, owner: Tensor, owners: int) -> Tensor:
    """`(batch, sample, pair, size)` -> sums by owner, `(batch, sample, owners, size)`."""
    batch, samples, _, size = values.shape
    return values.new_zeros(batch, samples, owners, size).scatter_add(
        2, owner[:, None, :, None].expand_as(values), values
    )


def take_rows(values: Tensor, index: Tensor) -> Tensor:
    """The rows of `values` `(batch, some, size)` at `index` `(batch, other)`, where -1 is padding."""
    return take_vectors(values, index.clamp(min=0))


def word_vectors(component: sp.Component, x: sp.X) -> Tensor:
    """The feature network's vectors of words, `(batch, token, size)`; `x.mask` is the mask of pairs."""
    token_mask = x.inputs["words"] > 0
    return component.features(sp.X(x.inputs, token_mask, x.size)) * token_mask.unsqueeze(-1)


def require_arcs(component: sp.Component, task: sp.Task) -> None:
    """Raises `ConfigError` unless the task's outputs are roles of pairs of a predicate and a span."""
    if not isinstance(task.inputs, sp.ArcInputs):
        raise sp.ConfigError(
            f"{type(component).__name__} requires pairs of a predicate and a span as inputs; found "
            f"{type(task.inputs).__name__}. Use task 'e2e.arcs'"
        )
