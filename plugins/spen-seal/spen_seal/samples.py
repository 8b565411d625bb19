"""Samples of outputs from a net, and costs, for all losses."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

import spen_plugins as sp

Draw = Literal["discrete", "continuous"]
"""Samples: draws from the net's distribution, or relaxed outputs with Gaussian noise on its logits."""
Form = Literal["auto", "dense", "sparse"]
"""Representation of discrete samples: tensors of zeros and ones, or lists of the labels that are on."""

# Thresholds above which sparse samples are faster, measured with tools.bench.bench_sparse on a core: number of labels,
# numbers in the samples of an example, and, from above, the share of labels that are on.
MANY_LABELS, MANY_NUMBERS, FEW_ON = 400, 4000, 0.05


def draw(proposal: sp.Proposal, n: int, sample: Draw, std: float) -> Tensor:
    """`n` outputs of the net, `(batch, n, *variables)`, without gradient: a sample is data to the loss."""
    with torch.no_grad():
        return proposal.sample(n) if sample == "discrete" else proposal.perturb(n, std)


def draw_candidates(gold: Tensor, proposal: sp.Proposal, n: int, sample: Draw, std: float) -> Tensor:
    """Gold and `n` samples, in this order, for one call of the energy: `(batch, 1 + n, *variables)`."""
    drawn = draw(proposal, n, sample, std)
    return torch.cat([gold.to(drawn), drawn], 1)


def draw_sparse_candidates(gold: Tensor, proposal: sp.Proposal, n: int) -> sp.SparseLabels:
    """As `draw_candidates`, with discrete samples as sparse labels."""
    return sp.SparseLabels.from_dense(gold).join(proposal.sample_sparse(n))


def use_sparse(form: Form, energy: sp.BoundEnergy, proposal: sp.Proposal, n: int) -> bool:
    """True if `n` discrete samples shall be sparse labels; `ConfigError` if `form` demands them and they can't be."""
    if form == "sparse":
        need_sparse(energy.energy, proposal)
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


def need_sparse(energy: sp.Energy, proposal: sp.Proposal) -> None:
    """`ConfigError` unless `proposal` can draw sparse labels and `energy` takes them."""
    for part, can in ((proposal, proposal.sparse), (energy, energy.takes_sparse)):
        if not can:
            raise sp.ConfigError(
                f'energy_loss.sampling is "sparse", but {type(part).__name__} has dense outputs only; expected '
                "independent labels and an energy that takes sparse ones (seal.labels, core.local)"
            )


def make_zero_loss(energy: sp.BoundEnergy, proposal: sp.Proposal) -> Tensor:
    """The loss of a batch without gold, `(batch,)`: 0, with a gradient of zeros."""
    return 0 * energy(proposal.mean)[:, 0]
