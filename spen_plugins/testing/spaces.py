"""Checks of output spaces and their default distributions."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from spen_plugins.spaces import OutputSpace, Proposal
from spen_plugins.testing.comparing import assert_same, assert_shape

EXAMPLES, SAMPLES = 5, 3
LIMIT = 15
"""Largest number n of zeros and ones in an output for which all 2^n outputs are enumerated."""
DRAWS, NEAR = 1000, 0.15
"""Number of samples whose average is compared with the mean, and the tolerance: nine deviations of a coin's average."""


def check_space(space: OutputSpace, tokens: int = 4) -> None:
    """Check a space's geometry, and its default distribution `independent(logits, mask)`.

    Relaxed, sampled and rounded outputs are in the space, zero on padding; cost and score agree about gold. Small
    spaces are enumerated: probabilities sum to 1, `mode` is the most probable output that the distribution may decode,
    and `k_best`, if implemented, gives such outputs in the order of their probability. An axis whose size differs
    between batches is shortened for that; a space that is still too large is not enumerated.

    Args:
        tokens: size of the variable axes whose size differs between batches.
    """
    generator = torch.Generator().manual_seed(0)
    mask = _make_mask(space, torch.tensor([tokens, 1, tokens - 1, 2, tokens]), tokens)
    shape = space.sizes(mask)
    assert shape == tuple(size or tokens for size in space.shape), f"{type(space).__name__}.sizes: found {shape}"
    logits = torch.randn(EXAMPLES, 1, *shape, generator=generator, dtype=torch.float64, requires_grad=True)
    q = space.independent(logits, mask)
    _check_outputs(space, q, generator)
    _check_numbers(space, q)
    check_draws(q, type(q).__name__)
    _check_enumerated(space, tokens, generator)


def lists_k_best(proposal: Proposal) -> bool:
    """True if the distribution implements the optional `k_best`."""
    return type(proposal).k_best is not Proposal.k_best


def check_draws(q: Proposal, name: str) -> None:
    """Check that all kinds of samples average to the mean; they have their own seed."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        draws = {"sample": q.sample(DRAWS)}
        if q.sparse:
            draws["sample_sparse"] = q.sample_sparse(DRAWS).dense(q.mean.dtype)
        for method, y in draws.items():
            gap = (y.mean(1, keepdim=True) - q.mean).abs().max().item()
            assert gap < NEAR, f"{name}.{method}: the average of {DRAWS} samples is {gap:.2f} away from the mean"


def _check_outputs(space: OutputSpace, q: Proposal, generator: torch.Generator) -> None:
    """Check that all outputs are in the space, of the right shape, with gradients where expected."""
    space_name, name, mask, shape = type(space).__name__, type(q).__name__, q.mask, q.logits.shape[2:]
    single_shape, sample_shape = (EXAMPLES, 1, *shape), (EXAMPLES, SAMPLES, *shape)
    values = torch.randn(sample_shape, generator=generator, dtype=torch.float64)
    relaxed_outputs = {
        f"{space_name}.relax": (space.relax(q.logits, mask), single_shape),
        f"{name}.mean": (q.mean, single_shape),
        f"{name}.rsample": (q.rsample(SAMPLES), sample_shape),
        f"{name}.perturb": (q.perturb(SAMPLES, 1.0), sample_shape),
    }
    discrete_outputs = {f"{name}.mode": (q.mode, single_shape), f"{name}.sample": (q.sample(SAMPLES), sample_shape)}
    if q.sparse:
        discrete_outputs[f"{name}.sample_sparse"] = (q.sample_sparse(SAMPLES).dense(torch.float64), sample_shape)
    if lists_k_best(q):
        discrete_outputs[f"{name}.k_best"] = (q.k_best(SAMPLES)[0], sample_shape)
    for method, (y, expected) in {
        f"{space_name}.project": (space.project(values, mask), sample_shape),
        **relaxed_outputs,
        **discrete_outputs,
    }.items():
        assert_shape(y, expected, method)
        assert_same(space.project(y, mask), y, f"{method} leaves the relaxed set, or project moves a point of it")
        if mask is not None:
            assert not y.movedim(1, mask.dim())[~mask].any(), f"{method} is not zero on padding"
    for method, (y, _) in discrete_outputs.items():
        assert_same(space.round(y, mask), y, f"{method} is not discrete, or round moves a discrete output")
        assert not y.requires_grad, f"{method} carries a gradient"
    for method, (y, expected) in relaxed_outputs.items():
        weights = torch.randn(expected, generator=generator, dtype=torch.float64)
        [gradient] = torch.autograd.grad((y * weights).sum(), q.logits, retain_graph=True, allow_unused=True)
        assert gradient is not None and gradient.any(), f"{method} has no gradient to the logits"


def _check_numbers(space: OutputSpace, q: Proposal) -> None:
    """Check that log-probability, cost and score are one number per output, the latter two with the first sample as
    gold."""
    name, mask = type(space).__name__, q.mask
    samples = q.sample(SAMPLES)
    cost, score = space.cost(samples, samples[:, :1], mask), space.score(samples, samples[:, :1], mask)
    log_prob = q.log_prob(samples)
    for method, value in ((f"{type(q).__name__}.log_prob", log_prob), (f"{name}.cost", cost), (f"{name}.score", score)):
        assert_shape(value, (EXAMPLES, SAMPLES), method)
    assert_shape(space.size(samples, mask), (EXAMPLES, 1), f"{name}.size")
    assert (log_prob <= 0).all(), f"{type(q).__name__}.log_prob is above 0"
    assert not cost[:, 0].any() and (cost >= 0).all(), f"{name}.cost is negative, or not 0 at gold"
    assert_same(score[:, 0], torch.ones_like(score[:, 0]), f"{name}.score is not 1 at gold")
    assert ((score >= 0) & (score <= 1 + 1e-9)).all(), f"{name}.score leaves [0, 1]"


def _check_enumerated(space: OutputSpace, tokens: int, generator: torch.Generator) -> None:
    """Check probabilities and the mode against all discrete outputs, on short examples with and without padding."""
    if not space.discrete:
        return
    has_open_axes = None in space.shape
    shapes = [
        (n, tuple(size or n for size in space.shape)) for n in (range(tokens, 0, -1) if has_open_axes else [tokens])
    ]
    length, shape = next(((n, shape) for n, shape in shapes if math.prod(shape) <= LIMIT), (0, None))
    if shape is None:
        return
    n = math.prod(shape)
    bits = (torch.arange(2**n).unsqueeze(1) >> torch.arange(n)) & 1
    outputs = bits.double().reshape(1, 2**n, *shape)
    for mask in (
        [_make_mask(space, torch.tensor([m]), length) for m in range(1, length + 1)] if has_open_axes else [None]
    ):
        is_valid = (space.round(outputs, mask) == outputs).flatten(2).all(-1)[0]
        y = outputs[:, is_valid]
        # Modes may be restricted to fewer outputs than samples (BIO): to the outputs that are modes of one-hot logits.
        peaked_logits = (40 * (2 * y - 1)).transpose(0, 1)
        modes = space.independent(
            peaked_logits, None if mask is None else mask.expand(len(peaked_logits), *mask.shape[1:])
        ).mode
        allowed = (modes == y.transpose(0, 1)).flatten(1).all(1)
        for _ in range(EXAMPLES):
            logits = 2 * torch.randn(1, 1, *shape, generator=generator, dtype=torch.float64)
            _check_mode(space.independent(logits, mask), y, allowed)


def _check_mode(q: Proposal, y: Tensor, allowed: Tensor) -> None:
    """Check q against all discrete outputs, `y` `(1, output, *variables)`, of which `allowed` can be modes."""
    name, log_prob = type(q).__name__, q.log_prob(y)[0]
    assert_same(log_prob.exp().sum(), torch.ones((), dtype=torch.float64), f"{name}.log_prob doesn't sum to 1")
    is_mode = (y[0] == q.mode[0]).flatten(1).all(1)
    assert (is_mode & allowed).any(), f"{name}.mode returns an output that is no mode of one-hot logits"
    assert_same(log_prob[is_mode][0], log_prob[allowed].max(), f"{name}.mode is not the most probable output")
    if not lists_k_best(q):
        return
    y, log_prob = y[:, allowed], log_prob[allowed]
    n, order = len(log_prob), log_prob.argsort(descending=True)
    for k in (1, n // 2 + 1, n + 2):
        best, log_q = q.k_best(k)
        assert_same(log_q[0, :n], log_prob[order[:k]], f"{name}.k_best gives another log q than log_prob")
        assert_same(best[:, :n], y[:, order[:k]], f"{name}.k_best are not the most probable outputs")
        assert (log_q[0, n:] == -math.inf).all(), f"{name}.k_best finds more outputs than there are"
        repeats = y[:, order[:1]].expand_as(best[:, n:])
        assert_same(best[:, n:], repeats, f"{name}.k_best doesn't repeat the mode if there are no more")


def _make_mask(space: OutputSpace, lengths: Tensor, longest: int) -> Tensor | None:
    """A mask under which example i has `lengths[i]` of `longest` on each open axis; None without an open axis."""
    axes = [axis for axis, size in enumerate(space.shape) if size is None]
    if not axes:
        return None
    row = torch.arange(longest) < lengths.unsqueeze(1)
    mask = torch.ones(len(lengths), *[longest] * len(axes), dtype=torch.bool)
    for axis in range(1, len(axes) + 1):
        mask &= row.view(len(lengths), *[longest if a == axis else 1 for a in range(1, len(axes) + 1)])
    return mask
