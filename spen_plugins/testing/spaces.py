"""Checks of output spaces."""

from __future__ import annotations

import torch

from spen_plugins.spaces import OutputSpace
from spen_plugins.testing.comparing import same, shaped

EXAMPLES, SAMPLES = 5, 3


def check_space(space: OutputSpace, tokens: int = 4) -> None:
    """Relaxed, sampled and rounded outputs are in the space, zero on padding; cost and score agree about gold.

    Args:
        tokens: size of the variable axes whose size differs from batch to batch.
    """
    name = type(space).__name__
    shape = tuple(size or tokens for size in space.shape)
    mask = None
    if None in space.shape:
        lengths = torch.tensor([tokens, 1, tokens - 1, 2, tokens])
        mask = torch.arange(tokens) < lengths.unsqueeze(1)
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(EXAMPLES, 1, *shape, generator=generator, dtype=torch.float64, requires_grad=True)
    many = (EXAMPLES, SAMPLES, *shape)

    outputs = {
        "relax": (space.relax(logits, mask), (EXAMPLES, 1, *shape)),
        "best": (space.best(logits, mask), (EXAMPLES, 1, *shape)),
        "sample": (space.sample(logits, SAMPLES, mask), many),
        "rsample": (space.rsample(logits, SAMPLES, mask), many),
        "perturb": (space.perturb(logits, SAMPLES, 1.0, mask), many),
        "project": (space.project(torch.randn(many, generator=generator, dtype=torch.float64), mask), many),
    }
    for what, (y, wanted) in outputs.items():
        shaped(y, wanted, f"{name}.{what}")
        same(space.project(y, mask), y, f"{name}.{what} leaves the relaxed set, or project moves a point of it")
        if mask is not None:
            assert not y.transpose(1, 2)[~mask].any(), f"{name}.{what} is not zero on padding"
    for what in ("best", "sample"):
        y = outputs[what][0]
        same(space.round(y, mask), y, f"{name}.{what} is not discrete, or round moves a discrete output")
        assert not y.requires_grad, f"{name}.{what} carries a gradient"
    for what in ("relax", "rsample"):
        weights = torch.randn(outputs[what][1], generator=generator, dtype=torch.float64)
        (gradient,) = torch.autograd.grad((outputs[what][0] * weights).sum(), logits)
        assert gradient.any(), f"{name}.{what} has no gradient to the logits"

    samples, gold = outputs["sample"][0], outputs["sample"][0][:, :1]
    for what, value in (
        ("log_prob", space.log_prob(logits, samples, mask)),
        ("cost", space.cost(samples, gold, mask)),
        ("score", space.score(samples, gold, mask)),
    ):
        shaped(value, (EXAMPLES, SAMPLES), f"{name}.{what}")
    shaped(space.size(samples, mask), (EXAMPLES, 1), f"{name}.size")
    assert (space.log_prob(logits, samples, mask) <= 0).all(), f"{name}.log_prob is above 0"
    cost, score = space.cost(samples, gold, mask), space.score(samples, gold, mask)
    assert not cost[:, 0].any() and (cost >= 0).all(), f"{name}.cost is negative, or not 0 at gold"
    same(score[:, 0], torch.ones_like(score[:, 0]), f"{name}.score is not 1 at gold")
    assert ((score >= 0) & (score <= 1 + 1e-9)).all(), f"{name}.score leaves [0, 1]"
