"""Inference nets `rerank` and `reweight`, which choose an output of another net by the energy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from spen_plugins.batch import X
from spen_plugins.builtin.nets.crf import Crf
from spen_plugins.energy import BoundEnergy
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference_net import InferenceNet
from spen_plugins.scores.expected_f1 import best_sets, find_best_set, find_best_sets, sample_alike
from spen_plugins.settings.config import Config
from spen_plugins.spaces import IndependentLabels, LabelSet, Proposal, TagSequence
from spen_plugins.task import Task
from spen_plugins.task_parts import FitsDecoder


class Chooser(InferenceNet, ABC):
    """A net whose proposal is another net's, including marginals, samples and mode; `chosen`, which the task decodes,
    is the energy's choice."""

    uses_energy = True
    chooses = True
    parts: ClassVar[Mapping[str, str]] = {"net": "inference_net"}

    def __init__(
        self, config: Any, task: Task, features: FeatureNetwork | None = None, net: InferenceNet | None = None
    ) -> None:
        super().__init__(config, task, features)
        if net is None:
            raise ConfigError(
                f"inference_net {type(self).__name__.lower()!r} chooses among outputs of another inference net; set "
                'inference_net.net, for example to {"type": "independent"}'
            )
        self.net, self.task = net, task

    def forward(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        """The net's proposal, with `chosen`."""
        assert energy is not None
        proposal = self.net(x, energy if self.net.uses_energy else None)
        with torch.no_grad():
            return replace(proposal, chosen=self._choose(proposal, x, energy))

    @abstractmethod
    def _choose(self, proposal: Proposal, x: X, energy: BoundEnergy) -> Tensor:
        """The chosen output, `(batch, 1, *variables)`."""

    def training_proposal(self, x: X, energy: BoundEnergy | None = None) -> Proposal:
        return self.net.training_proposal(x, energy)


class Rerank(Chooser):
    """argmin of E(x, y) over the k most probable y of another inference net (re-ranking: Collins & Koo 2005).

    For label sets, it may choose among the prefixes of the net's ranking instead: no label, the most probable label,
    the two most probable ones, and so on up to k. An energy that estimates F1 (Gygli et al. 2017) thus decides on the
    number of labels.
    """

    class Config(Config):
        k: int = Field(8, ge=1)
        """Number of outputs from which the energy chooses; with 1 the net's own output is kept."""
        candidates: Literal["best", "prefixes"] = "best"
        """The k most probable outputs; or, for label sets, the sets of the net's 0 to k most probable labels."""

    def __init__(
        self, config: Any, task: Task, features: FeatureNetwork | None = None, net: InferenceNet | None = None
    ) -> None:
        super().__init__(config, task, features, net)
        if not task.space.discrete:
            raise ConfigError(
                "inference_net 'rerank' chooses among the k most probable outputs, which real-valued outputs do not "
                "have; use 'gbi'"
            )
        if config.candidates == "prefixes" and not isinstance(task.space, LabelSet):
            raise ConfigError("inference_net.candidates: found 'prefixes', which requires label sets; expected 'best'")

    def _choose(self, proposal: Proposal, x: X, energy: BoundEnergy) -> Tensor:
        if self.config.candidates == "prefixes":
            y = list_prefixes(proposal.logits[:, 0], self.config.k)
        else:
            y = self._list_best(proposal)
            y[:, :1] = self.task.decode(proposal, x)  # k_best's first may be another, equally likely one
        lowest = energy(y).argmin(1)
        return y[torch.arange(len(y), device=y.device), lowest].unsqueeze(1)

    def _list_best(self, proposal: Proposal) -> Tensor:
        """The `k` most probable outputs; for a task with its own decoder, those nearest to its decision."""
        if isinstance(self.task, FitsDecoder):
            return self.task.k_best(proposal, self.config.k)
        return proposal.k_best(self.config.k)[0]


def list_prefixes(logits: Tensor, k: int) -> Tensor:
    """Label sets `(batch, size, label)` of the 0 to k labels with the largest logits `(batch, label)`."""
    rank = logits.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
    sizes = torch.arange(min(k, logits.shape[-1]) + 1, device=logits.device)
    return (rank.unsqueeze(1) < sizes.unsqueeze(1)).to(logits.dtype)


WEIGHTS = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)
TEMPERATURES = (0.75, 1.0, 1.5, 2.0, 3.0)
"""Weights and temperatures from which the validation part chooses."""
DEPENDENT = "inference_net 'reweight' requires independent tags, but this net's tags are not independent; use 'rerank'"
BLOCK = 64
"""Number of tokens for which random numbers are drawn at once."""
AT_ONCE = 20_000_000
"""Number of entries of the samples of tags that the energy gets at once."""


class Reweight(Chooser):
    """The best output under q(y)^(1 − β) exp(−β E(x, y)), q the net at temperature T: the label set of highest expected
    F1, or the tags that are the likeliest by their marginals, of those that the space allows.

    K samples of q have weights exp(β (−E − ln q)); with β = 1 and an energy that learned by NCE, whose −E estimates
    ln p(y | x) up to a constant (Lee et al. 2022, Eq. 8), that is importance sampling from p. With β = 0 the output is
    the net's own, exactly. Of all sets of k labels, the best has the k largest Σ_y w(y) y_i 2 / (k + |y|), for any
    distribution (Dembczyński et al. 2011). Tags are decided by their marginals: the net's own, plus the change
    that the weights make to those of the samples. The samples are drawn from the same numbers for every x, so that an
    output depends neither on its batch nor on chance. Tags must be independent.
    """

    class Config(Config):
        samples: int = Field(150, ge=1, le=100_000)
        """K, samples of each x."""
        weight: float | None = Field(None, ge=0)
        """β, the energy's weight in the logarithm; null: with `--refine`, the run's validation part chooses it from 0
        to 1; otherwise 1."""
        temperature: float | None = Field(None, gt=0)
        """T, the temperature of the net; null: chosen likewise from 0.75 to 3, otherwise 1."""

    def __init__(
        self, config: Any, task: Task, features: FeatureNetwork | None = None, net: InferenceNet | None = None
    ) -> None:
        super().__init__(config, task, features, net)
        if not isinstance(task.space, LabelSet | TagSequence):
            raise ConfigError(
                "inference_net 'reweight' requires label sets or tag sequences, but this task has other outputs"
            )
        if isinstance(net, Crf):
            raise ConfigError(DEPENDENT)
        self.weight = 1.0 if config.weight is None else config.weight
        self.temperature = 1.0 if config.temperature is None else config.temperature

    def choices(self) -> list[dict[str, float]]:
        """Weights and temperatures, those nearest to the net's own first; none if both are given."""
        weights = WEIGHTS if self.config.weight is None else (self.config.weight,)
        setting = self.config.temperature
        temperatures = sorted(TEMPERATURES, key=lambda t: abs(t - 1)) if setting is None else [setting]
        choices = [{"weight": weight, "temperature": temperature} for weight in weights for temperature in temperatures]
        return choices if len(choices) > 1 else []

    def choose(self, choice: Mapping[str, float]) -> None:
        self.weight, self.temperature = choice["weight"], choice["temperature"]

    def _choose(self, proposal: Proposal, x: X, energy: BoundEnergy) -> Tensor:
        if isinstance(self.space, LabelSet) and not isinstance(proposal, IndependentLabels):
            net = proposal.tempered(self.temperature)
        else:
            net = proposal.space.independent(proposal.logits / self.temperature, proposal.mask)
            if type(net) is not type(proposal):
                raise ConfigError(DEPENDENT)
        if isinstance(self.space, LabelSet):
            chosen = choose_labels(net, energy, self.weight, self.config.samples)
        else:
            tags = reweight_tags(net, energy, self.weight, self.config.samples)
            chosen = tags.mode if isinstance(self.task, FitsDecoder) else self.task.decode(tags, x)
        return chosen.to(proposal.logits.dtype)


def choose_labels(net: Proposal, energy: BoundEnergy, weight: float, n: int) -> Tensor:
    """Sets of highest expected F1, `(batch, 1, label)`."""
    is_independent = isinstance(net, IndependentLabels)
    if weight == 0:
        return (best_sets(torch.sigmoid(net.logits[:, 0])) if is_independent else find_best_sets(net)).unsqueeze(1)
    if is_independent:
        generator = torch.Generator().manual_seed(0)
        numbers = torch.rand(n, net.logits.shape[-1], generator=generator, dtype=torch.float64).to(net.logits.device)
        y = (numbers < torch.sigmoid(net.logits.double())).to(net.logits.dtype)
    else:
        y = sample_alike(net, n)
    return find_best_set(y, torch.softmax(_weigh(net, energy, y, weight), 1)).unsqueeze(1)


def reweight_tags(net: Proposal, energy: BoundEnergy, weight: float, n: int) -> Proposal:
    """Independent tags with the marginals of the weighted samples."""
    if weight == 0:
        return net
    p = torch.softmax(net.logits[:, 0].double(), -1)
    numbers = _draw_by_token(n, p.shape[1]).to(p.device).expand(len(p), -1, -1).contiguous()
    tags = torch.searchsorted(p.cumsum(-1), numbers).clamp(max=p.shape[-1] - 1)
    scores = [
        _weigh(net, energy, net.space.one_hot(chunk.transpose(1, 2), net.mask).to(net.logits.dtype), weight)
        for chunk in tags.split(max(1, AT_ONCE // max(1, p.numel())), 2)
    ]
    change = torch.softmax(torch.cat(scores, 1), 1) - 1 / n
    marginals = p.scatter_add(2, tags, change.unsqueeze(1).expand_as(tags))
    return net.space.independent(torch.log(marginals.clamp(min=1e-9)).unsqueeze(1), net.mask)


def _weigh(net: Proposal, energy: BoundEnergy, y: Tensor, weight: float) -> Tensor:
    """ln w of samples of the net, up to a constant, `(batch, sample)`."""
    return (weight * (-energy(y) - net.density(y))).double()


def _draw_by_token(n: int, length: int) -> Tensor:
    """Numbers from 0 to 1, `(token, sample)`: a token's are the same in sentences of any length."""
    generators = (torch.Generator().manual_seed(block) for block in range(0, length, BLOCK))
    return torch.cat([torch.rand(BLOCK, n, generator=rng, dtype=torch.float64) for rng in generators])[:length]
