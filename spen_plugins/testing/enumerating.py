"""Checks against all discrete outputs of a small example."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.energy import Energy
from spen_plugins.errors import ConfigError
from spen_plugins.spaces import Mixture, OutputSpace, Proposal
from spen_plugins.task import Task
from spen_plugins.testing.comparing import assert_same, assert_shape, collate

SAMPLES = 3
LIMIT = 15
"""Largest number n of zeros and ones in an output for which all 2^n outputs are enumerated."""
MANY_DRAWS, VERY_NEAR = 10_000, 0.03
"""Number of samples whose averages are compared with probabilities, and the tolerance: six deviations of a coin's
average."""

HINT = "; if that is intended, name it in approximate"


def lists_k_best(proposal: Proposal) -> bool:
    """True if the distribution implements the optional `k_best`."""
    return type(proposal).k_best is not Proposal.k_best


def enumerate_outputs(space: OutputSpace, mask: Tensor | None, shape: Sequence[int]) -> tuple[Tensor, Tensor] | None:
    """All discrete outputs `(1, output, *shape)` of an example, and a boolean `(output,)`, true for those that can be
    modes; None if they are too many.

    Modes may be restricted to fewer outputs than samples (BIO): to the outputs that are modes of one-hot logits.
    """
    n = math.prod(shape)
    if not space.discrete or n > LIMIT:
        return None
    bits = (torch.arange(2**n).unsqueeze(1) >> torch.arange(n)) & 1
    y = bits.double().reshape(1, 2**n, *shape)
    y = y[:, (space.round(y, mask) == y).flatten(2).all(-1)[0]]
    peaked_logits = (40 * (2 * y - 1)).transpose(0, 1)
    row_masks = None if mask is None else mask.expand(len(peaked_logits), *mask.shape[1:])
    return y, (space.independent(peaked_logits, row_masks).mode == y.transpose(0, 1)).flatten(1).all(1)


def check_enumerated(q: Proposal, y: Tensor, allowed: Tensor, approximate: Sequence[str] = ()) -> None:
    """Check q against all discrete outputs, `y` `(1, output, *variables)`, of which `allowed` can be modes.

    Args:
        approximate: members of q that are not compared with enumeration: `mode` (and `k_best`), `mean`, `tempered`.
    """
    name, log_prob = type(q).__name__, q.log_prob(y)[0].detach()
    if not q.exact:
        return
    if isinstance(q, Mixture):
        approximate = (*approximate, "mode", "tempered")
    assert_same(log_prob.exp().sum(), torch.ones((), dtype=torch.float64), f"{name}.log_prob doesn't sum to 1")
    assert_same(q.density(y)[0], log_prob, f"{name}.density differs from log_prob")
    if "mode" not in approximate:
        _check_mode(q, y, allowed, log_prob)
    _check_averages(q, y, log_prob.exp(), "mean" not in approximate)
    copies = {"detach": q.detach(), "map_rows": q.map_rows(Tensor.clone)}
    for method, copy in copies.items():
        assert_same(copy.log_prob(y)[0].detach(), log_prob, f"{name}.{method} changes log_prob")
    assert not q.detach().log_prob(y).requires_grad, f"{name}.detach() leaves a gradient to the net"
    if "tempered" not in approximate:
        possible = q.tempered(1e6).log_prob(y)[0].detach()[log_prob > -1000]
        assert possible.max() - possible.min() < 0.01, (
            f"{name}.tempered(1e6) is not close to uniform; expected it to divide all scores, also those that "
            f"potentials must name{HINT}"
        )


def _check_averages(q: Proposal, y: Tensor, p: Tensor, has_exact_mean: bool) -> None:
    """Check the mean, label powers and the samples' averages, of single variables and pairs, against probabilities."""
    name, outputs = type(q).__name__, y[0].flatten(1)
    if has_exact_mean:
        assert_same(q.mean.detach().flatten(), p @ outputs, f"{name}.mean is not that of log_prob{HINT}")
    t = torch.tensor([0.3, 1.0], dtype=torch.float64)
    if y.dim() == 3 and (powers := q.label_powers(t)) is not None:
        expected = (p * t.unsqueeze(1) ** outputs.sum(1)) @ outputs
        assert_same(powers[0], expected, f"{name}.label_powers differs from the sum over all outputs")
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        samples = q.sample(MANY_DRAWS)[0].flatten(1).double()
    gap = (samples.T @ samples / MANY_DRAWS - (outputs.T * p) @ outputs).abs().max().item()
    assert gap < VERY_NEAR, (
        f"{name}.sample: the frequencies of variables or pairs of {MANY_DRAWS} samples are {gap:.2f} away from those "
        "under log_prob"
    )


def _check_mode(q: Proposal, y: Tensor, allowed: Tensor, log_prob: Tensor) -> None:
    name = type(q).__name__
    is_mode = (y[0] == q.mode[0]).flatten(1).all(1)
    assert (is_mode & allowed).any(), (
        f"{name}.mode returns an output that the space's own distribution never has as its mode"
    )
    assert_same(log_prob[is_mode][0], log_prob[allowed].max(), f"{name}.mode is not the most probable output{HINT}")
    if not lists_k_best(q):
        return
    allowed = allowed & (log_prob > -math.inf)
    y, log_prob = y[:, allowed], log_prob[allowed]
    n, ranked = len(log_prob), log_prob.sort(descending=True).values
    weights = 2.0 ** torch.arange(y[0, 0].numel(), dtype=torch.float64)
    for k in (1, n // 2 + 1, n + 2):
        best, log_q = q.k_best(k)
        assert_same(log_q[0, :n], ranked[:k], f"{name}.k_best gives another log q than log_prob")
        found = best[:, :n]
        numbers = found[0].flatten(1).double() @ weights
        assert len(numbers.unique()) == len(numbers), f"{name}.k_best lists an output twice"
        assert torch.isin(numbers, y[0].flatten(1) @ weights).all(), f"{name}.k_best lists an output that is no mode"
        log_prob_of_found = q.log_prob(found)[0].detach()
        assert_same(log_prob_of_found, ranked[:k], f"{name}.k_best are not the most probable outputs")
        assert (log_q[0, n:] == -math.inf).all(), f"{name}.k_best finds more outputs than there are"
        repeats = best[:, :1].expand_as(best[:, n:])
        assert_same(best[:, n:], repeats, f"{name}.k_best doesn't repeat the mode if there are no more")


def enumerate_shortest(task: Task) -> list[tuple[Batch, tuple[Tensor, Tensor]]]:
    """A batch of one of the shortest examples, with all outputs as in `enumerate_outputs`; empty if they are too many.
    A sequence has more than one token, if any has."""
    examples = sorted(task.part("train"), key=task.length)
    batch = collate(task, [next((example for example in examples if task.length(example) > 1), examples[0])])
    outputs = enumerate_outputs(task.space, batch.x.mask, batch.gold.shape[2:])
    return [] if outputs is None else [(batch, outputs)]


def check_sums(energy: Energy, task: Task, name: str) -> None:
    """Check `log_z`, `marginals` and `modes`, if the energy has them, against all outputs."""
    for batch, (y, allowed) in enumerate_shortest(task):
        bound_energy = energy.at(batch.x)
        scores = -bound_energy(y)[0].detach()
        with contextlib.suppress(ConfigError):
            log_z = bound_energy.log_z()[0].detach()
            allowed_scores = scores.masked_fill(~allowed, -math.inf)
            if torch.isclose(log_z, allowed_scores.logsumexp(0)):  # a sum under the space's scheme is as good
                scores = allowed_scores
            assert_same(
                log_z,
                scores.logsumexp(0),
                f"{name}.log_z is not ln Σ exp(−E) over all outputs; if that is intended, pass sums=False",
            )
        with contextlib.suppress(ConfigError):
            expected = torch.einsum("o,bo...->b...", scores.softmax(0), y).unsqueeze(1)
            assert_same(bound_energy.marginals().detach(), expected, f"{name}.marginals is not the mean under exp(−E)")
        with contextlib.suppress(ConfigError):
            shape = (1, SAMPLES, *y.shape[2:])
            shift = 2 * torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
            modes = bound_energy.modes(shift)
            assert_shape(modes, shape, f"{name}.modes")
            assert_same(task.space.round(modes, batch.x.mask), modes, f"{name}.modes are not discrete")
            best = (scores + (shift[0].flatten(1) @ y[0].flatten(1).T))[:, allowed].amax(1)
            found = -bound_energy(modes)[0].detach() + (shift * modes).flatten(2).sum(-1)[0]
            assert (found >= best - 1e-9).all(), f"{name}.modes is not the minimum of E(x, y) − Σ shift · y"
