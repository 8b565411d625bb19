"""Checks of output spaces."""

from __future__ import annotations

import math

import torch

from spen_plugins.spaces import OutputSpace
from spen_plugins.testing.comparing import same, shaped

EXAMPLES, SAMPLES = 5, 3
LIMIT = 15
"""Zeros and ones in an output, at most, for all 2^n outputs to be tried."""


def check_space(space: OutputSpace, tokens: int = 4) -> None:
    """Relaxed, sampled and rounded outputs are in the space, zero on padding; cost and score agree about gold.

    In a small space every output is tried: their probabilities sum to 1, `best` is the likeliest it can say, and
    `k_best`, if it has that, are those it can say in the order of their probability. An axis whose size differs from
    batch to batch is cut for that; a space that is too large even so is not enumerated.

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
    if lists_k_best(space):
        outputs["k_best"] = (space.k_best(logits, mask, SAMPLES)[0], many)
    for what, (y, wanted) in outputs.items():
        shaped(y, wanted, f"{name}.{what}")
        same(space.project(y, mask), y, f"{name}.{what} leaves the relaxed set, or project moves a point of it")
        if mask is not None:
            assert not y.transpose(1, 2)[~mask].any(), f"{name}.{what} is not zero on padding"
    for what in ("best", "sample", *(["k_best"] if "k_best" in outputs else [])):
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
    _check_enumerated(space, tokens, generator)


def _check_enumerated(space: OutputSpace, tokens: int, generator: torch.Generator) -> None:
    """Probabilities and the best output against all discrete outputs, on short examples with and without padding."""
    name = type(space).__name__
    sizes = range(tokens, 0, -1) if None in space.shape else [tokens]
    shapes = [tuple(size or n for size in space.shape) for n in sizes]
    shape = next((shape for shape in shapes if math.prod(shape) <= LIMIT), None)
    if shape is None:
        return
    n = math.prod(shape)
    bits = (torch.arange(2**n).unsqueeze(1) >> torch.arange(n)) & 1
    every = bits.double().reshape(1, 2**n, *shape)
    masks = [None]
    if None in space.shape:
        axis = shape[space.shape.index(None)]
        masks = [(torch.arange(axis) < length).unsqueeze(0) for length in range(1, axis + 1)]
    for mask in masks:
        inside = (space.round(every, mask) == every).flatten(2).all(-1)[0]
        y = every[:, inside]
        # `best` may be held to fewer outputs than are drawn (BIO): those it says where the logits ask for nothing else.
        wish = (40 * (2 * y - 1)).transpose(0, 1)
        allowed = (space.best(wish, _repeat(mask, len(wish))) == y.transpose(0, 1)).flatten(1).all(1)
        for _ in range(EXAMPLES):
            logits = 2 * torch.randn(1, 1, *shape, generator=generator, dtype=torch.float64)
            log_prob = space.log_prob(logits, y, mask)[0]
            same(log_prob.exp().sum(), torch.ones((), dtype=torch.float64), f"{name}.log_prob doesn't sum to 1")
            found = (y[0] == space.best(logits, mask)[0]).flatten(1).all(1)
            assert (found & allowed).any(), f"{name}.best gives an output that it doesn't give where it is wanted"
            same(log_prob[found][0], log_prob[allowed].max(), f"{name}.best is not the likeliest output")
            if lists_k_best(space):
                _check_k_best(space, logits, mask, y[:, allowed], log_prob[allowed])


def lists_k_best(space: OutputSpace) -> bool:
    """Whether the space has a `k_best` of its own, which it may do without."""
    return type(space).k_best is not OutputSpace.k_best


def _check_k_best(
    space: OutputSpace, logits: torch.Tensor, mask: torch.Tensor | None, y: torch.Tensor, log_prob: torch.Tensor
) -> None:
    """`k_best` against all outputs the space allows, `y` `(1, output, *variables)`; once more are asked for."""
    name, n = type(space).__name__, len(log_prob)
    order = log_prob.argsort(descending=True)
    for k in (1, n // 2 + 1, n + 2):
        found, log_q = space.k_best(logits, mask, k)
        same(log_q[0, :n], log_prob[order[:k]], f"{name}.k_best doesn't give the likeliest outputs' log q")
        same(found[:, :n], y[:, order[:k]], f"{name}.k_best are not the likeliest outputs")
        assert (log_q[0, n:] == -math.inf).all(), f"{name}.k_best finds more outputs than there are"
        again = y[:, order[:1]].expand_as(found[:, n:])
        same(found[:, n:], again, f"{name}.k_best doesn't repeat the best output where there are no more")


def _repeat(mask: torch.Tensor | None, n: int) -> torch.Tensor | None:
    return None if mask is None else mask.expand(n, *mask.shape[1:])
