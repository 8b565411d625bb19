"""Checks of output spaces and their default distributions."""

from __future__ import annotations

import torch
from torch import Tensor

from spen_plugins.spaces import OutputSpace, Proposal
from spen_plugins.testing.comparing import assert_same, assert_shape
from spen_plugins.testing.enumerating import check_enumerated, enumerate_outputs, lists_k_best

EXAMPLES, SAMPLES = 5, 3
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
    for method, y in check_outputs(q).items():
        weights = torch.randn(y.shape, generator=generator, dtype=torch.float64)
        [gradient] = torch.autograd.grad((y * weights).sum(), logits, retain_graph=True, allow_unused=True)
        assert gradient is not None and gradient.any(), f"{method} has no gradient to the logits"
    _check_numbers(space, q)
    check_draws(q, type(q).__name__)
    _check_enumerated(space, tokens, generator)


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


def check_outputs(q: Proposal) -> dict[str, Tensor]:
    """Check that all outputs are in the space and of the right shape; returns the relaxed ones by their names."""
    space, mask = q.space, q.mask
    space_name, name = type(space).__name__, type(q).__name__
    generator = torch.Generator().manual_seed(0)
    single_shape = tuple(q.logits.shape)
    sample_shape = (single_shape[0], SAMPLES, *single_shape[2:])
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
    return {method: y for method, (y, _) in relaxed_outputs.items()}


def _check_numbers(space: OutputSpace, q: Proposal) -> None:
    """Check that log-probability, cost and score are one number per output, the latter two with the first sample as
    gold."""
    name, mask = type(space).__name__, q.mask
    samples = q.sample(SAMPLES)
    cost, score = space.cost(samples, samples[:, :1], mask), space.score(samples, samples[:, :1], mask)
    log_prob = q.log_prob(samples)
    for method, value in ((f"{type(q).__name__}.log_prob", log_prob), (f"{name}.cost", cost), (f"{name}.score", score)):
        assert_shape(value, (EXAMPLES, SAMPLES), method)
    size = space.size(samples, mask)
    assert_shape(size, (EXAMPLES, 1), f"{name}.size")
    assert (size >= 1).all(), f"{name}.size: found {size.min().item():g}, expected at least 1"
    assert (log_prob <= 0).all(), f"{type(q).__name__}.log_prob is above 0"
    assert not cost[:, 0].any() and (cost >= 0).all(), f"{name}.cost is negative, or not 0 at gold"
    assert_same(score[:, 0], torch.ones_like(score[:, 0]), f"{name}.score is not 1 at gold")
    assert ((score >= 0) & (score <= 1 + 1e-9)).all(), f"{name}.score leaves [0, 1]"


def _check_enumerated(space: OutputSpace, tokens: int, generator: torch.Generator) -> None:
    """Check geometry, probabilities and the mode against all discrete outputs, on short examples with and without
    padding."""
    has_open_axes = None in space.shape
    for n in range(tokens, 0, -1) if has_open_axes else [tokens]:
        shape = tuple(size or n for size in space.shape)
        masks = [_make_mask(space, torch.tensor([m]), n) for m in range(1, n + 1)] if has_open_axes else [None]
        outputs = [enumerate_outputs(space, mask, shape) for mask in masks]
        if None not in outputs:
            break
    else:
        return
    for mask, (y, allowed) in zip(masks, outputs, strict=True):
        _check_geometry(space, mask, y, generator)
        for _ in range(EXAMPLES):
            logits = 2 * torch.randn(1, 1, *shape, generator=generator, dtype=torch.float64)
            check_enumerated(space.independent(logits.requires_grad_(), mask), y, allowed)


def _check_geometry(space: OutputSpace, mask: Tensor | None, y: Tensor, generator: torch.Generator) -> None:
    """Check `logits`, `project`, `round`, `cost` and `score` against all discrete outputs `y`."""
    name, outputs = type(space).__name__, y[0].flatten(1)
    values = torch.randn(1, SAMPLES, *y.shape[2:], generator=generator, dtype=torch.float64)
    relaxed = space.relax(values, mask)
    assert_same(space.relax(space.logits(relaxed, mask), mask), relaxed, f"{name}.logits doesn't invert relax")
    # A point of a convex set is the nearest one if no output lies further in the direction from it to the value.
    points = space.project(values, mask)[0].flatten(1)
    directions = values[0].flatten(1) - points
    is_nearest = directions @ outputs.T <= (directions * points).sum(1, keepdim=True) + 1e-9
    assert is_nearest.all(), f"{name}.project doesn't return the nearest relaxed output"
    gap = (space.round(relaxed, mask) - relaxed)[0].flatten(1).norm(dim=1)
    is_nearest = gap <= (relaxed[0].flatten(1).unsqueeze(1) - outputs).norm(dim=2).amin(1) + 1e-9
    assert is_nearest.all(), f"{name}.round doesn't return the nearest discrete output"
    for gold in y[0, :: len(outputs) // SAMPLES + 1]:
        cost, score = (method(y, gold[None, None], mask)[0] for method in (space.cost, space.score))
        assert torch.equal(cost == 0, score > 1 - 1e-9), (
            f"{name}.cost and score disagree: expected cost 0 exactly at the outputs whose score is 1"
        )


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
