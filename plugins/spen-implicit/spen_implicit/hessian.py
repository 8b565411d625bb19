"""Pairs of labels or of neighbouring tags that an energy has learned: its second derivatives next to counts.

Low energy is good, so −∂²E/∂y∂y is positive for two variables that are better on together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

import spen_plugins as sp
from spen_plugins.figures import load_task

At = Literal["output", "gold"]

NUMBERS, WIDTH = 2**21, 256
"""Maximal number of numbers in a layer of the energy for the Hessian's rows that are computed at once, and the least
width that such a layer is assumed to have: they bound the memory."""


@dataclass(frozen=True)
class Pairs:
    """An energy's second derivatives for pairs of labels or tags, next to the training data's counts."""

    run: str
    """Name in the figure."""
    names: list[str]
    learned: Tensor
    """Mean of −∂²E/∂y_i∂y_j, `(name, name)`; for tags, i is at a token and j at the next."""
    counted: Tensor
    """Correlation of the labels, or log ratio of the bigrams of tags, `(name, name)`."""
    ordered: bool
    """True for tags; false for labels, whose matrices are symmetric, with NaN on their diagonal."""
    description: str
    """The outputs at which the derivatives are taken, in words."""

    @property
    def correlation(self) -> float | None:
        """Spearman's rank correlation of both matrices over their pairs; None if it is undefined."""
        is_pair = torch.ones_like(self.learned, dtype=torch.bool)
        if not self.ordered:
            is_pair = is_pair.triu(1)
        return rank_correlation(self.learned[is_pair], self.counted[is_pair])

    def summarise(self) -> str:
        """The correlation in a sentence."""
        count, kind = len(self.names), "tags" if self.ordered else "labels"
        pairs = count**2 if self.ordered else count * (count - 1) // 2
        value = "undefined, all values are equal" if self.correlation is None else f"{self.correlation:.3f}"
        return f"rank correlation over {pairs} pairs of {count} {kind}: {value} ({self.description})"


def compare_pairs(run: sp.RunFolder, label: str, count: int = 40, point: At = "output", examples: int = 50) -> Pairs:
    """Compares the second derivatives of a run's energy, the mean over the first validation examples, with counts in
    its training data, for its most frequent labels or tags (Shankar & Piratla, appendix C, Fig. 1 and 2).

    E is differentiated at the net's relaxed output, or at gold.

    Raises:
        ConfigError: the run has no energy, or its outputs are neither label sets nor tag sequences.
        DataError: the data are missing or have changed, or there is no output at which to differentiate.
    """
    registry = sp.Registry()
    predictor = sp.Predictor(run, registry=registry)
    space = predictor.task.space
    if predictor.model.energy is None:
        raise sp.ConfigError(
            f"{run.path} was trained or saved without an energy, so it has no second derivatives to plot"
        )
    if isinstance(predictor.task.inputs, sp.ArcInputs) or not isinstance(space, (sp.LabelSet, sp.TagSequence)):
        outputs = "arcs" if isinstance(predictor.task.inputs, sp.ArcInputs) else type(space).__name__
        raise sp.ConfigError(f"{run.path}: found {outputs} as outputs; expected label sets or tag sequences")
    data = load_task(run, registry)
    chosen = find_frequent(data, count)
    counted = label_correlation(data, chosen) if isinstance(space, sp.LabelSet) else bigram_ratios(data, chosen)
    names = space.labels if isinstance(space, sp.LabelSet) else space.tags
    validation = data.part("validation")[:examples]
    learned = mean_hessian(predictor, validation, chosen, point)
    ordered = isinstance(space, sp.TagSequence)
    if not ordered:
        order = order_clusters(counted)
        chosen, counted = chosen[order], counted[order][:, order]
        learned = learned[order][:, order].fill_diagonal_(torch.nan)
    description = f"at {'gold' if point == 'gold' else 'the net’s output'}, {len(validation)} validation examples"
    return Pairs(label, [names[i] for i in chosen.tolist()], -learned, counted, ordered, description)


def mean_hessian(predictor: sp.Predictor, examples: Sequence[Any], chosen: Tensor, point: At) -> Tensor:
    """The mean of ∂²E/∂y∂y over examples of label sets, or over neighbouring tokens, `(chosen, chosen)`, float64;
    `DataError` if an example has no gold to differentiate at, or there is neither an example nor a neighbour."""
    total, count = torch.zeros(len(chosen), len(chosen), dtype=torch.float64), 0
    for proposal, batch, _ in predictor.proposals(examples):
        if point == "gold" and not batch.labelled.all():
            raise sp.DataError("the validation part", None, "examples without gold", "gold, or --at output")
        with torch.no_grad():
            energy = predictor.energy.at(batch.x)
            y = batch.gold if point == "gold" else proposal.mean
        sum_and_count = label_hessian(energy, y, chosen) if y.dim() == 3 else neighbour_hessian(energy, y, chosen)
        total += sum_and_count[0]
        count += sum_and_count[1]
    if not count:
        raise sp.DataError("the validation part", None, "no pairs", "examples, for tags with more than one token")
    return total / count


def second_derivatives(energy: sp.BoundEnergy, y: Tensor, rows: Tensor) -> Tensor:
    """Rows of ∂²E/∂y∂y, `(batch, row, *variables)`, exact, by differentiating dE/dy once more.

    Each row is one sample at the same y `(batch, 1, *variables)`. The energies of samples do not depend on each other,
    so one pass computes all rows. `rows` are numbers of variables in an example's flat y.
    """
    copies = y.detach().expand(-1, len(rows), *y.shape[2:]).clone().requires_grad_()
    with torch.enable_grad():
        gradient = energy.gradient(copies).flatten(2)
        selected = gradient[:, torch.arange(len(rows), device=rows.device), rows].sum()
    if not selected.requires_grad:  # E is linear in y
        return torch.zeros_like(copies)
    return torch.autograd.grad(selected, copies, materialize_grads=True)[0]


def label_hessian(energy: sp.BoundEnergy, y: Tensor, chosen: Tensor) -> tuple[Tensor, int]:
    """The sum over examples of ∂²E/∂y_i∂y_j, `(chosen, chosen)`, and their number; y is `(batch, 1, label)`."""
    sums = [second_derivatives(energy, y, rows)[..., chosen].sum(0) for rows in chosen.split(_count_rows_at_once(y))]
    return torch.cat(sums).double(), len(y)


def neighbour_hessian(energy: sp.BoundEnergy, y: Tensor, chosen: Tensor) -> tuple[Tensor, int]:
    """The sum over neighbouring tokens of ∂²E/∂y_{t,a}∂y_{t+1,b}, `(chosen, chosen)`, and their number; y is
    `(batch, 1, token, tag)`, and its mask is that of E_x."""
    mask, (tokens, tags), count = energy.x.mask, y.shape[2:], len(chosen)
    token_mask = y.new_ones(len(y), tokens, dtype=torch.bool) if mask is None else mask
    pair_mask = token_mask[:, :-1] & token_mask[:, 1:]
    total = torch.zeros(count, count, dtype=torch.float64)
    if tokens < 2:
        return total, 0
    for numbers in torch.arange((tokens - 1) * count).split(_count_rows_at_once(y)):
        first, tag = numbers // count, numbers % count
        derivatives = second_derivatives(energy, y, first * tags + chosen[tag])
        next_derivatives = derivatives[:, torch.arange(len(numbers)), first + 1][..., chosen]
        total.index_add_(0, tag, (next_derivatives * pair_mask[:, first].unsqueeze(-1)).sum(0).double())
    return total, int(pair_mask.sum())


def find_frequent(task: sp.Task, count: int) -> Tensor:
    """Numbers of the `count` most frequent labels or tags of the training part, the most frequent first."""
    total = sum(gold.flatten(0, -2).sum(0) for gold in _read_gold(task))
    if not isinstance(total, Tensor):
        raise sp.DataError("the training part", None, "no gold", "gold to count pairs in")
    return total.argsort(descending=True, stable=True)[:count]


def label_correlation(task: sp.Task, chosen: Tensor) -> Tensor:
    """Correlation φ of labels in the training part, `(chosen, chosen)`: positive for two that occur together more often
    than if they were independent, 0 if one never or always occurs, NaN on the diagonal."""
    joint_counts, rows = torch.zeros(len(chosen), len(chosen), dtype=torch.float64), 0
    for gold in _read_gold(task):
        labels = gold[:, chosen]
        joint_counts += labels.T @ labels
        rows += len(labels)
    share = joint_counts.diagonal() / rows
    deviation = (share * (1 - share)).sqrt()
    product = torch.outer(deviation, deviation)
    covariance = joint_counts / rows - torch.outer(share, share)
    correlation = torch.where(product > 0, covariance / product.clamp(min=1e-300), 0.0)
    return correlation.fill_diagonal_(torch.nan)


def bigram_ratios(task: sp.Task, chosen: Tensor) -> Tensor:
    """ln of how often tag b follows tag a in the training part, over how often it would if tags were independent.

    ln (n_ab + ½) / (n_a n_b / n + ½), `(chosen, chosen)`, with n_a and n_b the counts of a as first and of b as second
    of the n bigrams. The halves keep bigrams that never occur finite, and those of rare tags near 0.
    """
    tags = len(task.space.tags)  # type: ignore[attr-defined]
    bigrams = torch.zeros(tags, tags, dtype=torch.float64)
    for gold in _read_gold(task):
        bigrams += gold[:, :-1].flatten(0, 1).T @ gold[:, 1:].flatten(0, 1)
    expected = torch.outer(bigrams.sum(1), bigrams.sum(0)) / bigrams.sum().clamp(min=1)
    return torch.log((bigrams + 0.5) / (expected + 0.5))[chosen][:, chosen]


def rank_correlation(a: Tensor, b: Tensor) -> float | None:
    """Spearman's rank correlation of vectors `(pair,)`, with the mean rank for ties; None if either is constant."""
    from scipy.stats import spearmanr

    if len(a) < 2 or (a == a[0]).all() or (b == b[0]).all():
        return None
    return float(spearmanr(a.numpy(), b.numpy()).statistic)


def order_clusters(correlation: Tensor) -> Tensor:
    """An order of labels, `(label,)`, in which correlated ones are neighbours: leaves of average linkage of distances
    1 − φ, with φ `(label, label)`."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(correlation) < 3:
        return torch.arange(len(correlation))
    distance = (1 - correlation).clamp(min=0).fill_diagonal_(0).numpy()
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return torch.from_numpy(leaves_list(tree)).long()


def _read_gold(task: sp.Task) -> Iterator[Tensor]:
    """The training part's gold in batches, `(rows, *variables)`, float64, without rows that have no gold."""
    examples = task.part("train")
    for start in range(0, len(examples), 256):
        batch = task.collate(examples[start : start + 256])
        if batch.gold is not None:
            yield batch.gold[batch.labelled, 0].double()


def _count_rows_at_once(y: Tensor) -> int:
    """Number of the Hessian's rows computed at once at `y` `(batch, 1, *variables)`."""
    positions = y[..., 0].numel() if y.dim() > 3 else len(y)
    return max(1, NUMBERS // (positions * max(y.shape[-1], WIDTH)))
