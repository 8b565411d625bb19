"""Checks of energies, inference nets, cost nets and feature networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.autograd.gradcheck import GradcheckError

from spen_plugins.batch import Batch, X
from spen_plugins.energy import Energy
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference_net import CostNet, InferenceNet
from spen_plugins.loop.context import check_proposal
from spen_plugins.spaces import Proposal, SparseLabels
from spen_plugins.task import Task
from spen_plugins.testing.comparing import (
    assert_kept,
    assert_same,
    assert_shape,
    check_state,
    collate,
    cut,
    is_below,
    list_idle,
    make_ready,
    pick_by_length,
    relaxed,
)
from spen_plugins.testing.enumerating import check_enumerated, check_sums, enumerate_shortest, lists_k_best
from spen_plugins.testing.spaces import check_draws, check_outputs

EXAMPLES, SAMPLES = 4, 3


def check_energy(energy: Energy, task: Task, twice: bool = True, sums: bool = True) -> None:
    """Check an energy: one finite number per example and output, independent of the batch; differentiable in y;
    storable. On a small example, `log_z`, `marginals` and `modes`, if it has them, agree with a sum over all outputs.

    Args:
        twice: if true, also checks the second derivative, which gradient-based nets and implicit gradients need.
        sums: false if `log_z` and `marginals` are over fewer outputs than the space has, such as those of a hierarchy.
    """
    name = make_ready(energy)
    batch = collate(task, pick_by_length(task, EXAMPLES))
    y = relaxed(task.space, batch, SAMPLES)
    values = assert_kept(lambda: energy.at(batch.x)(y), {**batch.x.inputs, "y": y}, name)
    assert_shape(values, (EXAMPLES, SAMPLES), f"{name}'s energies, one per example and output")
    assert energy.at(batch.x)(batch.gold).isfinite().all(), f"{name} is not finite at gold outputs"
    for i in range(SAMPLES):
        assert_same(
            energy.at(batch.x)(y[:, i : i + 1]),
            values[:, i : i + 1],
            f"{name}: an output's energy depends on other outputs",
        )
    _check_rows(task, lambda b: energy.at(b.x)(cut(y[b.rows], b.gold.expand(-1, SAMPLES, *b.gold.shape[2:]))), name)

    variable = y.clone().requires_grad_()
    bound_energy = energy.at(batch.x)
    total = bound_energy(variable).sum()
    gradient = torch.autograd.grad(total, variable, allow_unused=True)[0] if total.requires_grad else None
    assert gradient is not None, f"{name} has no gradient in y; expected energies of y itself, not detached or rounded"
    assert_shape(gradient, tuple(y.shape), f"{name}'s gradient in y")
    try:
        torch.autograd.gradcheck(bound_energy, (variable,), fast_mode=True)
        if twice:
            torch.autograd.gradgradcheck(bound_energy, (variable,), fast_mode=True)
    except GradcheckError as error:
        raise AssertionError(
            f"{name}'s gradient in y differs from finite differences; expected an energy that is smooth in y and keeps "
            f"float64 ({error})"
        ) from error
    assert_same(bound_energy.gradient(y), gradient, f"{name}.gradient differs from that of autograd")
    if energy.takes_sparse and y.dim() == 3:
        expected = energy.at(batch.x)(batch.gold)
        sparse = energy.at(batch.x)(SparseLabels.from_dense(batch.gold))
        assert_same(sparse, expected, f"{name} gives SparseLabels other energies than the dense outputs")
    if sums:
        check_sums(energy, task, name)
    _check_clear_error(energy, batch, y, name)
    check_state(energy, lambda: energy.at(batch.x)(y))


def check_inference_net(
    net: InferenceNet,
    task: Task,
    energy: Energy | None = None,
    allow_idle: Sequence[str] = (),
    approximate: Sequence[str] = (),
) -> None:
    """Check an inference net: a proposal in the output space, independent of the batch; trainable; storable. On a small
    example, the proposal's members agree with a sum over all outputs, unless its log-probability is only a bound.

    Args:
        allow_idle: names of parameters, or of their modules, on which the log-probability of gold need not depend.
        approximate: members of the proposal that its documentation calls approximate: `mode` (with `k_best`), `mean`,
            `tempered`.
    """
    name, space = make_ready(net), task.space
    assert energy is not None or not net.uses_energy, f"{name} has uses_energy = True; pass an energy to this check"
    if energy is not None:
        make_ready(energy, net)

    def propose(x: X) -> Proposal:
        return net(x, energy.at(x) if energy is not None else None)

    batch = collate(task, pick_by_length(task, EXAMPLES))
    proposal, shape = assert_kept(lambda: propose(batch.x), batch.x.inputs, name), batch.gold.shape[2:]
    check_proposal(net, proposal)
    assert_shape(proposal.logits, (EXAMPLES, 1, *shape), f"{name}'s logits")
    check_outputs(proposal)
    assert net.chooses == (proposal.chosen is not None), (
        f"{name}: found chooses = {net.chooses}; expected it to be true if and only if its proposals have `chosen`"
    )
    assert not net.choices() or type(net).choose is not InferenceNet.choose, f"{name} has choices, but no `choose`"
    if proposal.chosen is not None:
        assert_shape(proposal.chosen, (EXAMPLES, 1, *shape), f"{name}'s choice")
        assert_same(space.round(proposal.chosen, batch.x.mask), proposal.chosen, f"{name}'s choice is not discrete")
    if "mean" not in approximate:
        check_draws(proposal, name)
    if lists_k_best(proposal):
        _check_k_best(proposal, name, "mode" not in approximate)
    log_prob = proposal.log_prob(proposal.sample(SAMPLES))
    assert_shape(log_prob, (EXAMPLES, SAMPLES), f"{name}'s log-probabilities")
    assert (log_prob <= 1e-9).all(), f"{name} gives an output a probability above 1"
    _check_rows(task, lambda b: propose(b.x).mean, name)
    _check_rows(task, lambda b: propose(b.x).mode, f"{name}'s mode")
    if proposal.exact:
        _check_rows(task, lambda b: propose(b.x).log_prob(b.gold), f"{name}'s log-probability")
    for small_batch, outputs in enumerate_shortest(task):
        check_enumerated(propose(small_batch.x), *outputs, approximate)

    training_proposal = net.training_proposal(batch.x, energy.at(batch.x) if energy is not None else None)
    check_proposal(net, training_proposal)
    if training_proposal.log_prob(batch.gold).requires_grad:
        for method, y in check_outputs(training_proposal).items():
            assert y.requires_grad, f"{method} has no gradient to {name}; expected one, for the energy to train the net"
    _check_none_idle(net, -proposal.log_prob(batch.gold).sum(), allow_idle, f"{name}'s log-probability")
    check_state(net, lambda: propose(batch.x).mean)


def check_cost_net(cost_net: CostNet, net: InferenceNet, task: Task, energy: Energy | None = None) -> None:
    """Check a cost net: a proposal in the output space, independent of the rest of the batch; trainable; storable.

    Args:
        net: the test-time net to which the cost net is bound (`cost_net.bind(net)`, as in `Model`).
    """
    make_ready(net)
    name = make_ready(cost_net, net)
    if energy is not None:
        make_ready(energy, net)

    def propose(batch: Batch) -> Proposal:
        return cost_net(batch, net(batch.x, None if energy is None else energy.at(batch.x)))

    batch = collate(task, pick_by_length(task, EXAMPLES))
    proposal = propose(batch)
    _check_mean(proposal, batch, name)
    _check_rows(task, lambda b: propose(b).mean, name)
    weighted_mean = proposal.mean * torch.arange(1, proposal.mean.numel() + 1).view_as(proposal.mean)
    _check_none_idle(cost_net, weighted_mean.sum(), (), f"{name}'s output")
    check_state(cost_net, lambda: propose(batch).mean)


def check_feature_network(
    features: FeatureNetwork, task: Task, allow_idle: Sequence[str] = (), vectors: int | None = None
) -> None:
    """Check a feature network: vectors of `output_dim`, independent of the rest of the batch; trainable; storable.

    Args:
        allow_idle: names of parameters, or of their modules, on which the output need not depend.
        vectors: number of vectors per example, if it has several (such as one per label) but is no sequence of words.
    """
    name = make_ready(features)
    batch = collate(task, pick_by_length(task, EXAMPLES))
    leading_shape = (EXAMPLES,) if vectors is None else (EXAMPLES, vectors)
    shape = (*(leading_shape if batch.x.mask is None else batch.x.mask.shape), features.output_dim)

    def compute(batch: Batch) -> Tensor:
        out, mask = features(batch.x), batch.x.mask
        return out if mask is None else out * mask.unsqueeze(-1)

    assert_shape(features(batch.x), shape, f"{name}'s output")
    if not features.contextual and batch.x.mask is not None:
        changed_inputs = {  # the second token in place of the first
            key: torch.cat([value[:, 1:2], value[:, 1:]], 1) if value.shape[:2] == batch.x.mask.shape else value
            for key, value in batch.x.inputs.items()
        }
        others = compute(replace(batch, x=replace(batch.x, inputs=changed_inputs)))[:, 1:]
        message = f"{name} has contextual = False, but a token's vector depends on other tokens"
        assert_same(others, compute(batch)[:, 1:], message)
    _check_rows(task, compute, name)
    _check_none_idle(features, compute(batch).square().sum(), allow_idle, f"{name}'s output")
    check_state(features, lambda: compute(batch))


def _check_mean(proposal: Proposal, batch: Batch, name: str) -> None:
    assert_shape(proposal.mean, (EXAMPLES, 1, *batch.gold.shape[2:]), f"{name}'s relaxed output")
    projection = proposal.space.project(proposal.mean, batch.x.mask)
    assert_same(projection, proposal.mean, f"{name}'s relaxed output is outside the output space")


def _check_k_best(proposal: Proposal, name: str, has_exact_mode: bool) -> None:
    """Check that an exact mode is first, and that log q decreases and equals `log_prob`."""
    y, log_q = proposal.k_best(SAMPLES)
    assert_shape(y, (proposal.logits.shape[0], SAMPLES, *proposal.logits.shape[2:]), f"{name}'s k best outputs")
    assert (log_q[:, 1:] <= log_q[:, :-1]).all(), f"{name}'s k best are not in the order of their log q"
    log_prob = proposal.log_prob(y).detach()
    assert_same(
        log_q, log_prob.masked_fill(log_q == -torch.inf, -torch.inf), f"{name}: log q of its k best isn't log_prob"
    )
    if has_exact_mode:
        first = proposal.log_prob(proposal.mode).detach()
        assert_same(log_q[:, :1], first, f"{name}'s k best don't begin with its mode")


def _check_none_idle(module: nn.Module, value: Tensor, allowed: Sequence[str], description: str) -> None:
    """Check that `value` has a gradient to every parameter of `module` that is not named in `allowed`."""
    parameters = {key: p for key, p in module.named_parameters() if p.requires_grad and not is_below(allowed, key)}
    idle = list_idle(value, parameters)
    assert not idle, f"{description} has no gradient to {', '.join(idle)}; if that is intended, name them in allow_idle"


def _check_rows(task: Task, compute: Callable[[Batch], Tensor], name: str) -> None:
    """Check that an example's result does not depend on its position in the batch, its neighbours, or padding."""
    examples = pick_by_length(task, EXAMPLES)
    values = compute(collate(task, examples))
    order = torch.tensor([2, 0, 3, 1])
    permuted_batch = replace(collate(task, [examples[i] for i in order]), rows=order)
    assert_same(compute(permuted_batch), values[order], f"{name}: permuting the batch doesn't permute the result")
    # Without its longest example the batch has less padding, too.
    shorter_values = compute(collate(task, examples[:-1]))
    assert_same(
        shorter_values,
        cut(values[:-1], shorter_values),
        f"{name}: an example's result depends on its neighbours or on padding",
    )


def _check_clear_error(energy: Energy, batch: Batch, y: Tensor, name: str) -> None:
    has_open_axis = energy.space.sizes(batch.x.mask)[-1] is None
    for outputs in (y[:-1], y[:, 0]) if has_open_axis else (y[..., :-1], y[:-1], y[:, 0]):
        try:
            energy.at(batch.x)(outputs)
        except ValueError:
            continue
        raise AssertionError(f"{name} accepts outputs of shape {tuple(outputs.shape)} for {tuple(y.shape)}")
