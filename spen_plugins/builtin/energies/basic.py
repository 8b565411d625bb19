"""Basic energies: local scores, the linear chain, a weighted sum of energies, each with its own features, and the
fixed mean of finished runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from spen_plugins.batch import X
from spen_plugins.component import NamedParts, name_parts
from spen_plugins.energy import Energy
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference_net import join_nets
from spen_plugins.nn import LazyScores, lazy_scores, local_layer, local_scores, local_sum, require_tags
from spen_plugins.settings.config import Config
from spen_plugins.spaces import Proposal, SparseLabels, viterbi
from spen_plugins.spaces.base import at_least_float32, inner_product, mask_padding
from spen_plugins.spaces.chain import Chain, backward_scores, forward_scores
from spen_plugins.spaces.mixture import average
from spen_plugins.task import Task


class Local(Energy):
    """E(x, y) = −Σ_i y_i b_iᵀ T_E(x): independent variables (Belanger & McCallum 2016; Lee et al. 2022, Eq. 2).

    For labels, i runs over labels; for tag sequences over the tags of every token, without padding.
    """

    uses_features = True
    takes_sparse = True

    def __init__(self, config: Config, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        self.local = local_layer(self)

    def encode(self, x: X) -> tuple[Tensor | LazyScores, Tensor | None]:
        return lazy_scores(self, x), x.mask

    def forward(self, features: tuple[Tensor | LazyScores, Tensor | None], y: Tensor | SparseLabels) -> Tensor:
        return -local_sum(features[0], y)

    def log_z(self, features: tuple[Tensor | LazyScores, Tensor | None]) -> Tensor:
        scores, mask = _read_scores(features)
        if not self.space.simplex:
            return nn.functional.softplus(scores).sum(-1)
        log_sums = torch.logsumexp(scores, -1)
        return (log_sums if mask is None else log_sums * mask).sum(-1)

    def marginals(self, features: tuple[Tensor | LazyScores, Tensor | None]) -> Tensor:
        scores, mask = _read_scores(features)
        return self.space.relax(scores.unsqueeze(1), mask)

    def modes(self, features: tuple[Tensor | LazyScores, Tensor | None], shift: Tensor) -> Tensor:
        scores, mask = _read_scores(features)
        scores = scores.unsqueeze(1) + shift
        return self.space.round(scores if self.space.simplex else (scores > 0).to(shift), mask)


def _read_scores(features: tuple[Tensor | LazyScores, Tensor | None]) -> tuple[Tensor, Tensor | None]:
    """All local scores `(batch, *variables)` in at least float32, and the mask."""
    scores, mask = features
    return at_least_float32(scores.all if isinstance(scores, LazyScores) else scores), mask


class LinearChain(Energy):
    """E(x, y) = −Σ_t y_tᵀ B T_E(x)_t − Σ_t y_{t−1}ᵀ W y_t, with a start and an end (Tu, Pang & Gimpel 2020, Eq. 7).

    W, the start and the end are initialised from U(−0.02, 0.02).
    """

    uses_features = True

    def __init__(self, config: Config, task: Task, features: FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_tags(self)
        tags = self.space.shape[-1]
        self.local = local_layer(self)
        self.pairs = nn.Parameter(torch.empty(tags, tags).uniform_(-0.02, 0.02))
        self.start = nn.Parameter(torch.empty(tags).uniform_(-0.02, 0.02))
        self.end = nn.Parameter(torch.empty(tags).uniform_(-0.02, 0.02))

    def encode(self, x: X) -> tuple[Tensor, Tensor | None]:
        """Local scores plus those of the start and the end, which are also linear in y."""
        scores, mask = local_scores(self, x), x.mask
        exists = torch.ones_like(scores[..., 0]) if mask is None else mask.to(scores)
        following = torch.nn.functional.pad(exists[:, 1:], (0, 1))
        preceding = torch.nn.functional.pad(exists[:, :-1], (1, 0))
        first, last = exists * (1 - preceding), exists * (1 - following)
        return scores + first.unsqueeze(-1) * self.start + last.unsqueeze(-1) * self.end, mask

    def forward(self, features: tuple[Tensor, Tensor | None], y: Tensor) -> Tensor:
        scores, mask = features
        with torch.autocast(y.device.type, enabled=False):
            y = at_least_float32(y)
            pair = ((y[:, :, :-1] @ self.pairs.to(y.dtype)) * y[:, :, 1:]).sum(-1)
        if mask is not None:
            pair = pair * mask[:, None, 1:]
        return -inner_product(scores, y) - pair.sum(-1)

    def log_z(self, features: tuple[Tensor, Tensor | None]) -> Tensor:
        """ln Z by forward scores; the energy is that of a linear-chain CRF (Lafferty et al. 2001)."""
        return torch.logsumexp(forward_scores(*self._read_chain(features))[:, -1], -1)

    def marginals(self, features: tuple[Tensor, Tensor | None]) -> Tensor:
        """Marginals by forward and backward scores."""
        chain = self._read_chain(features)
        marginals = torch.softmax(forward_scores(*chain) + backward_scores(*chain), -1)
        return mask_padding(marginals.unsqueeze(1), features[1])

    def _read_chain(self, features: tuple[Tensor, Tensor | None]) -> tuple[Tensor, Tensor, Chain]:
        """Emissions, mask and transitions."""
        scores, mask = at_least_float32(features[0]), features[1]
        if mask is None:
            mask = scores.new_ones(scores.shape[:2], dtype=torch.bool)
        zeros = self.start.new_zeros(self.start.shape)  # the scores include start and end
        return scores, mask, Chain(self.pairs, zeros, zeros)

    def modes(self, features: tuple[Tensor, Tensor | None], shift: Tensor) -> Tensor:
        """Modes by Viterbi, over all tag sequences."""
        scores, mask = features[0].unsqueeze(1) + shift, features[1]
        row_mask = None if mask is None else mask.repeat_interleave(shift.shape[1], 0)
        tags = viterbi(scores.flatten(0, 1), row_mask, self.pairs, self.start.new_zeros(self.start.shape))
        return self.space.one_hot(tags.unflatten(0, shift.shape[:2]), mask).to(shift)


class Sum(Energy):
    """E(x, y) = Σ_k w_k E_k(x, y) over the energies in the table `terms`, under names of your choice."""

    parts: ClassVar[Mapping[str, str]] = {"terms": "energy*"}

    class Config(Config):
        weights: dict[str, float] = Field(default={})
        """w_k by the term's name; 1 for terms that are not listed."""

    def __init__(
        self, config: Any, task: Task, features: FeatureNetwork | None = None, terms: NamedParts | None = None
    ) -> None:
        super().__init__(config, task, features)
        if not terms:
            raise ConfigError(
                "energy 'sum' found no terms; expected a table of named energies, such as "
                '"terms": {"chain": {"type": "linear_chain"}}'
            )
        names = ", ".join(repr(name) for name in terms)
        for name in config.weights:
            if name not in terms:
                raise ConfigError(f"energy.weights: found {name!r}, which is not a term; expected one of: {names}")
        self.terms = name_parts(terms, "energy.terms")

    def encode(self, x: X) -> dict[str, Any]:
        """The encoding of x by each term."""
        return {name: term.encode(x) for name, term in self.terms.items()}

    def forward(self, features: dict[str, Any], y: Tensor) -> Tensor:
        return sum(self.config.weights.get(name, 1.0) * term(features[name], y) for name, term in self.terms.items())


class MeanOfRuns(Energy):
    """E(x, y) = −ln 1/K Σ_k q_k(y | x) of the inference nets of finished runs, without their dropout: ln Z = 0.

    `init.energy` names the runs. Their weights are fixed. For a relaxed y, each q_k's own `log_prob` counts:
    with independent variables, Σ y · ln q_k. Then E(x, ŷ) is an upper bound of the expectation of E under independent
    variables with mean ŷ, and equal to it if all q_k are the same.
    """

    parts: ClassVar[Mapping[str, str]] = {"nets": "inference_net*"}
    takes_runs = True

    def __init__(
        self, config: Any, task: Task, features: FeatureNetwork | None = None, nets: NamedParts | None = None
    ) -> None:
        super().__init__(config, task, features)
        missing = (
            "energy 'mean' combines finished runs, but init.energy names none; expected a run folder, a folder "
            'of runs, or a list: init.energy=runs/both, init.energy=\'["runs/a", "runs/b"]\''
        )
        self.nets = join_nets(nets, "energy.nets", missing)
        self.requires_grad_(False)

    def train(self, mode: bool = True) -> MeanOfRuns:
        """Stays in evaluation mode: the nets are finished, and their dropout is off."""
        return super().train(False)

    def encode(self, x: X) -> Proposal:
        with torch.no_grad():
            return average([net(x) for net in self.nets.values()]).detach()

    def forward(self, features: Proposal, y: Tensor) -> Tensor:
        return -features.log_prob(y)

    def log_z(self, features: Proposal) -> Tensor:
        """0: each q_k sums to one. Densities of real outputs have no such sum."""
        if not self.space.discrete:
            return super().log_z(features)
        return features.logits.new_zeros(features.logits.shape[0])

    def marginals(self, features: Proposal) -> Tensor:
        return features.mean
