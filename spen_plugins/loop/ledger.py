"""An epoch's running sums: losses by term, gradient norms by term, and each term's share of the gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

Sums = dict[str, list[float]]
"""`what:phase.term` -> sum over examples and number of examples; JSON, so that it goes into the checkpoint."""


def add(sums: Sums, what: str, name: str, value: float, count: int) -> None:
    """Add a sum over `count` examples."""
    entry = sums.setdefault(f"{what}:{name}", [0.0, 0])
    entry[0] += value
    entry[1] += count


def add_norms(sums: Sums, phase: str, norms: Mapping[str, Tensor]) -> None:
    """One update's gradient norm of each term, and its share of their total."""
    values = {name: float(norm) for name, norm in norms.items()}
    total = sum(values.values())
    for name, value in values.items():
        add(sums, "gradient_norm", f"{phase}.{name}", value, 1)
        add(sums, "gradient_share", f"{phase}.{name}", value / total if total else 0.0, 1)


def means(sums: Sums, what: str = "loss") -> dict[str, float]:
    """Means so far, by `phase.term`."""
    prefix = what + ":"
    return {key[len(prefix) :]: total / count for key, (total, count) in sums.items() if key.startswith(prefix)}


def gradient_norms(terms: Mapping[str, Tensor], parameters: Sequence[nn.Parameter], examples: int) -> dict[str, Tensor]:
    """The norm of each term's own gradient; 0 where a term doesn't reach the parameters. The graph stays."""
    norms = {}
    for name, term in terms.items():
        found = (
            torch.autograd.grad(term.sum() / examples, parameters, retain_graph=True, allow_unused=True)
            if term.requires_grad
            else ()
        )
        norms[name] = torch.nn.utils.get_total_norm([gradient for gradient in found if gradient is not None])
    return norms
