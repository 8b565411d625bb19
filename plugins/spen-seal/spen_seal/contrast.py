"""Samples of outputs from a net, and energy losses that contrast gold with them: NCE ranking and plain ranking."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor

import spen_plugins as sp
from spen_plugins.nn import estimate_likelihoods

Draw = Literal["discrete", "continuous"]
"""Samples: draws from the net's distribution, or relaxed outputs with Gaussian noise on its logits."""
Form = Literal["auto", "dense", "sparse"]
"""Representation of discrete samples: tensors of zeros and ones, or lists of the labels that are on."""

# Sparse samples are faster with at least MANY_LABELS labels, at least MANY_NUMBERS numbers in an example's samples, and
# at most a share FEW_ON of the labels on (measured with tools.bench.bench_sparse on one core).
MANY_LABELS, MANY_NUMBERS, FEW_ON = 400, 4000, 0.05


class ContrastConfig(sp.Config):
    """Settings of both losses."""

    samples: int = Field(20, ge=1)
    """K, the number of outputs drawn from the net for each example."""
    redraw: Literal["step", "round"] = "step"
    """Draws samples at each update of the energy, as released (step), or once per proposal (round). A proposal is
    computed anew whenever the net has moved, so the samples serve all `energy.steps` of one round."""
    sample: Draw = "discrete"
    """Draws from the net's distribution, or relaxed outputs with Gaussian noise on the net's logits."""
    std: float = Field(1.0, gt=0)
    """Standard deviation of the noise; continuous samples only."""
    sampling: Form = "auto"
    """Representation of label sets: a number for each label (dense), lists of the labels that are on (sparse), or auto.
    Sparse is for large label spaces with few labels on; it is the same distribution, from other random numbers. auto
    takes sparse if the energy and the net support it and it is faster."""

    @model_validator(mode="after")
    def _check_sampling(self) -> ContrastConfig:
        if self.sampling == "sparse" and self.sample != "discrete":
            raise ValueError(f'sampling "sparse" requires sample "discrete"; found "{self.sample}"')
        return self


class Contrast(sp.EnergyLoss, ABC):
    """−ln softmax of the scores of gold and K samples, at gold; subclasses define the score.

    Gold is in the denominator too, as in the released code: the papers' sum from k = 1 is unbounded below.
    """

    Config = ContrastConfig
    config: ContrastConfig

    def forward(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> Tensor:
        if batch.gold is None:
            return 0 * energy(proposal.mean)[:, 0]
        y = self._draw_candidates(energy, batch.gold, proposal)
        return ranking_loss(self._score(energy, y, proposal)) * batch.labelled

    @abstractmethod
    def _score(self, energy: sp.BoundEnergy, y: Tensor | sp.SparseLabels, proposal: sp.Proposal) -> Tensor:
        """Scores of the outputs y, `(batch, sample)`."""

    def _draw_candidates(self, energy: sp.BoundEnergy, gold: Tensor, proposal: sp.Proposal) -> Tensor | sp.SparseLabels:
        """Gold and K samples of each example, `(batch, 1 + K, *variables)`."""
        c = self.config

        def draw() -> Tensor | sp.SparseLabels:
            if c.sample == "discrete" and use_sparse(c.sampling, energy, proposal, c.samples):
                return draw_sparse_candidates(gold, proposal, c.samples)
            return draw_candidates(gold, proposal, c.samples, c.sample, c.std)

        return draw() if c.redraw == "step" else proposal.keep((id(self), "candidates"), draw)


class Ranking(Contrast):
    """−ln of gold's share in Σ exp(−E) over gold and K samples (Lee et al. 2021, Eq. 10)."""

    def _score(self, energy: sp.BoundEnergy, y: Tensor | sp.SparseLabels, proposal: sp.Proposal) -> Tensor:
        return -energy(y)


class Nce(Contrast):
    """NCE ranking: s = −E(x, y) − ln P_N(y | x), P_N the net (Lee et al. 2022, Eq. 8 and 9).

    The net is the noise distribution: it gets no gradient.
    """

    def _score(self, energy: sp.BoundEnergy, y: Tensor | sp.SparseLabels, proposal: sp.Proposal) -> Tensor:
        with torch.no_grad():
            # Sparse samples leave out Σ ln(1 − p), the same for all candidates of an example: it cancels in the
            # softmax.
            noise = y.sums(proposal.logits) if isinstance(y, sp.SparseLabels) else proposal.density(y)
        return -energy(y) - noise

    def likelihoods(self, energy: sp.BoundEnergy, batch: sp.Batch, proposal: sp.Proposal) -> sp.Terms:
        return estimate_likelihoods(energy, batch, proposal)


def draw(proposal: sp.Proposal, n: int, sample: Draw, std: float) -> Tensor:
    """`n` outputs of the net, `(batch, n, *variables)`, without gradient: a sample is data to the loss."""
    with torch.no_grad():
        return proposal.sample(n) if sample == "discrete" else proposal.perturb(n, std)


def draw_candidates(gold: Tensor, proposal: sp.Proposal, n: int, sample: Draw, std: float) -> Tensor:
    """Gold and `n` samples, in this order, for one call of the energy: `(batch, 1 + n, *variables)`."""
    samples = draw(proposal, n, sample, std)
    return torch.cat([gold.to(samples), samples], 1)


def draw_sparse_candidates(gold: Tensor, proposal: sp.Proposal, n: int) -> sp.SparseLabels:
    """Like `draw_candidates`, with discrete samples as sparse labels, `(batch, 1 + n, label)`."""
    return sp.SparseLabels.from_dense(gold).join(proposal.sample_sparse(n))


def use_sparse(form: Form, energy: sp.BoundEnergy, proposal: sp.Proposal, n: int) -> bool:
    """True if `n` discrete samples should be sparse labels; `ConfigError` if `form` requires them without support."""
    if form == "sparse":
        for part, is_supported in ((proposal, proposal.sparse), (energy.energy, energy.energy.takes_sparse)):
            if not is_supported:
                raise sp.ConfigError(
                    f'energy_loss.sampling is "sparse", but {type(part).__name__} has dense outputs only; expected '
                    "independent labels and an energy that accepts sparse ones (seal.labels, core.local)"
                )
        return True
    labels = proposal.logits.shape[-1]
    return (
        form == "auto"
        and energy.energy.takes_sparse
        and proposal.sparse
        and labels >= MANY_LABELS
        and labels * n >= MANY_NUMBERS
        and proposal.logits.detach().sigmoid().mean().item() <= FEW_ON
    )


def ranking_loss(scores: Tensor) -> Tensor:
    """−ln softmax(scores) at the first column: `(batch, 1 + sample)` -> `(batch,)`."""
    scores = scores - scores.detach().amax(1, keepdim=True)
    # A share below e^-60 vanishes at any precision, but its gradient would be a denormal number, and those make the
    # energy's backward pass three times slower on a CPU.
    return scores.clamp(min=-60).logsumexp(1) - scores[:, 0]
