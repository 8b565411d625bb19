"""Structured mirror ascent over the beliefs of a star, and the inference net `mirror`."""

from __future__ import annotations

import math
from typing import Any

import torch
from pydantic import Field

import spen_plugins as sp
from spen_gspen.energy import StarGraph
from spen_plugins.nn import Star, StarLabels, require_label_sets


class Mirror(sp.Config):
    """Settings of mirror ascent."""

    steps: int = Field(20, ge=0, le=1000)
    """Largest number of steps; 0: the best beliefs without the global term."""
    rate: float = Field(1.0, gt=0, le=1)
    """γ, by which a step goes from the potentials to those that the energy asks for at these beliefs."""
    decayed: bool = True
    """If true, step t has the rate γ / √t (Graber & Schwing 2019)."""


def find_beliefs(energy: StarGraph, potentials: Star, config: Mirror) -> list[Star]:
    """Natural parameters of beliefs of low energy, from the first to the last step, without gradient.

    Mirror ascent on ⟨potentials, μ⟩ + T(μ) + ε H(μ) with the negative entropy of the star's distribution as mirror map.
    Its gradient is the natural parameter θ, so that a step of size η is the sum θ ← (1 − η ε) θ + η (potentials +
    ∇T(μ)), and the beliefs are sum-products of θ; here η = γ / ε. The start, potentials / ε, is exact without T.

    Args:
        energy: the energy with T and ε.
        potentials: the potentials of labels and pairs.
        config: number and size of the steps.
    """
    with torch.no_grad(), torch.autocast(potentials.scores.device.type, enabled=False):
        weight = energy.config.entropy
        linear, pairs = potentials.scores / weight, potentials.pairs / weight
        path = [Star(linear, pairs, potentials.hubs)]
        for step in range(1, config.steps + 1):
            rate = config.rate / math.sqrt(step) if config.decayed else config.rate
            target = linear + energy.global_slope(path[-1].marginals()) / weight
            # T has no pairs, so their potentials stay.
            path.append(Star(path[-1].scores.lerp(target, rate), pairs, potentials.hubs))
        return path


class MirrorNet(sp.InferenceNet):
    """Label sets by structured mirror ascent on the energy `gspen.star` (Graber & Schwing 2019).

    The proposal is the star's distribution with these beliefs. The net has no weights of its own: in training, losses
    see the independent labels of the energy's scores s_i(x).
    """

    uses_energy = True
    iterative = True
    Config = Mirror

    def __init__(self, config: Any, task: sp.Task, features: sp.FeatureNetwork | None = None) -> None:
        super().__init__(config, task, features)
        require_label_sets(self)

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        graph = require_star(energy, "inference_net 'gspen.mirror'")
        path = find_beliefs(graph, energy.features, self.config)
        iterates = tuple(star.marginals().unsqueeze(1) for star in path) if self.keep_iterates else ()
        scores, last = path[-1].scores.unsqueeze(1), path[-1]
        return StarLabels(self.space, scores, iterates=iterates, pairs=last.pairs, hubs=last.hubs)

    def training_proposal(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        require_star(energy, "inference_net 'gspen.mirror'")
        return self.space.independent(energy.features.scores.unsqueeze(1))


def require_star(energy: sp.BoundEnergy | None, component: str) -> StarGraph:
    """The energy itself.

    Raises:
        ConfigError: it is not a `gspen.star`.
    """
    graph = None if energy is None else energy.energy
    if not isinstance(graph, StarGraph):
        kind = "no energy" if graph is None else type(graph).__name__
        raise sp.ConfigError(f"{component} requires energy 'gspen.star'; found {kind}. Set energy.type to 'gspen.star'")
    return graph
