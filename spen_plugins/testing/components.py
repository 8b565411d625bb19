"""Checks of energies, energy losses, inference nets and feature networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from spen_plugins.batch import Batch, X
from spen_plugins.energy import BoundEnergy, Energy
from spen_plugins.energy_loss import EnergyLoss
from spen_plugins.features import FeatureNetwork
from spen_plugins.inference_net import CostNet, InferenceNet
from spen_plugins.spaces import Proposal
from spen_plugins.task import Task
from spen_plugins.testing.comparing import (
    asserting,
    by_length,
    check_state,
    collate,
    cut,
    made_ready,
    owned,
    relaxed,
    same,
    shaped,
    without_gradient,
)
from spen_plugins.testing.spaces import check_draws, lists_k_best

EXAMPLES, SAMPLES = 4, 3


@asserting
def check_energy(energy: Energy, task: Task, twice: bool = True) -> None:
    """Check an energy: one number per example and output, independent of the batch; differentiable in y; storable.

    Args:
        twice: if true, also checks the second derivative, which gradient-based nets and implicit gradients need.
    """
    name = made_ready(energy)
    batch = collate(task, by_length(task, EXAMPLES))
    y = relaxed(task.space, batch, SAMPLES)
    values = energy.at(batch.x)(y)
    shaped(values, (EXAMPLES, SAMPLES), f"{name} gives one energy per example and output")
    assert values.is_floating_point(), f"{name}'s energies are {values.dtype}; expected real numbers, as y's"
    for i in range(SAMPLES):
        same(
            energy.at(batch.x)(y[:, i : i + 1]),
            values[:, i : i + 1],
            f"{name}: an output's energy depends on other outputs",
        )
    _check_rows(task, lambda b: energy.at(b.x)(cut(y[b.rows], b.gold.expand(-1, SAMPLES, *b.gold.shape[2:]))), name)

    free = y.clone().requires_grad_()
    bound = energy.at(batch.x)
    total = bound(free).sum()
    gradient = torch.autograd.grad(total, free, allow_unused=True)[0] if total.requires_grad else None
    assert gradient is not None, f"{name} has no gradient in y; expected energies of y itself, not detached or rounded"
    shaped(gradient, tuple(y.shape), f"{name}'s gradient in y")
    _check_derivative(torch.autograd.gradcheck, bound, free, f"{name}'s gradient in y is wrong")
    if twice:
        _check_derivative(torch.autograd.gradgradcheck, bound, free, f"{name}'s second derivative in y is wrong")
    same(bound.gradient(y), gradient, f"{name}.gradient is not that of autograd")
    _check_clear_error(energy, batch, y, name)
    check_state(energy, lambda: energy.at(batch.x)(y))


@asserting
def check_energy_loss(loss: EnergyLoss, energy: Energy, net: InferenceNet, task: Task) -> None:
    """Check an energy loss: terms, net terms and measures are one number per example, independent of other examples;
    nothing to learn without gold; storable.

    The loss may be the first to use a proposal from which the net learns, too: it must not affect the net's gradients.
    """
    made_ready(energy, net), made_ready(net, energy)
    name = made_ready(loss, energy, net)
    batch = collate(task, by_length(task, EXAMPLES))
    proposal = net(batch.x, energy.at(batch.x) if net.uses_energy else None).detach()
    logits = proposal.logits.clone().requires_grad_()
    proposal = replace(proposal, logits=logits, _kept={})
    kinds = {"term": loss.terms, "net term": loss.net_terms, "measure": loss.measures}

    def parts(kind: str, batch: Batch) -> dict[str, Tensor]:
        torch.manual_seed(0)
        gold = None if batch.gold is None else batch.gold.clone()
        found = kinds[kind](energy.at(batch.x), batch, replace(proposal, _kept={}))
        assert isinstance(found, Mapping), f"{name}'s {kind}s are a {type(found).__name__}; expected tensors by name"
        assert found or kind == "measure", f"{name} has no {kind}"
        for key, values in found.items():
            shaped(values, (EXAMPLES,), f"{name}'s {kind} {key!r} is one number per example")
        assert gold is None or torch.equal(batch.gold, gold), f"{name}'s {kind}s changed the batch's gold"
        return dict(found)

    def gradients(kind: str, of: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
        total = sum(parts(kind, batch).values()).sum()
        return torch.autograd.grad(total, of, allow_unused=True) if total.requires_grad and of else ()

    for kind in kinds:
        for key, values in parts(kind, batch).items():
            gradient = None
            if values.requires_grad:
                (gradient,) = torch.autograd.grad(values[0], logits, retain_graph=True, allow_unused=True)
            assert gradient is None or not gradient[1:].any(), (
                f"{name}'s {kind} {key!r} of one example depends on the net's output for another"
            )
    reached = gradients("net term", [logits])
    assert any(g is not None and g.any() for g in reached), f"{name}'s net terms have no gradient to the net"
    reached = gradients("term", [p for p in energy.parameters() if p.requires_grad])
    assert any(gradient is not None and gradient.any() for gradient in reached), f"{name} has no gradient to the energy"

    labelled = torch.tensor([True, False, True, False])
    some = replace(batch, labelled=labelled, gold=batch.gold * labelled.view(-1, *[1] * (batch.gold.dim() - 1)))
    none = replace(batch, labelled=labelled & False, gold=None)
    parts("net term", some), parts("net term", none)
    for kind in ("term", "measure"):
        whole, found = parts(kind, batch), parts(kind, some)
        assert found.keys() == whole.keys(), f"{name} has other {kind}s where some rows lack gold"
        for key, values in found.items():
            assert not values[~labelled].any(), f"{name}'s {kind} {key!r} is not 0 in rows without gold"
            said = f"{name}'s {kind} {key!r} of a row depends on whether other rows have gold"
            same(values[labelled], whole[key][labelled], said)
        assert not any(values.any() for values in parts(kind, none).values()), (
            f"{name}'s {kind}s are not 0 without gold"
        )
    _check_shared_proposal(loss, energy, net, batch, name)
    check_state(loss, lambda: sum(parts("term", batch).values()).detach())


@asserting
def check_inference_net(
    net: InferenceNet, task: Task, energy: Energy | None = None, allow_idle: Sequence[str] = ()
) -> None:
    """Check an inference net: a proposal in the output space, independent of the batch; trainable; storable.

    Args:
        allow_idle: names of parameters, or of their modules, on which the log-probability of gold need not depend.
    """
    name, space = made_ready(net), task.space
    if energy is not None:
        made_ready(energy, net)

    def propose(x: X) -> Proposal:
        return _proposal(net(x, energy.at(x) if energy is not None else None), name)

    batch = collate(task, by_length(task, EXAMPLES))
    proposal, shape = propose(batch.x), batch.gold.shape[2:]
    shaped(proposal.logits, (EXAMPLES, 1, *shape), f"{name}'s logits")
    shaped(proposal.mean, (EXAMPLES, 1, *shape), f"{name}'s relaxed output")
    same(
        space.project(proposal.mean, batch.x.mask),
        proposal.mean,
        f"{name}'s relaxed output is outside the output space",
    )
    for what, y in (("mode", proposal.mode), ("choice", proposal.chosen)):
        if y is not None:
            shaped(y, (EXAMPLES, 1, *shape), f"{name}'s {what}")
            same(space.round(y, batch.x.mask), y, f"{name}'s {what} is not discrete")
    drawn = proposal.sample(SAMPLES)
    shaped(drawn, (EXAMPLES, SAMPLES, *shape), f"{name}'s samples")
    same(space.round(drawn, batch.x.mask), drawn, f"{name}'s samples are not discrete")
    check_draws(proposal, name)
    if lists_k_best(proposal):
        _check_k_best(proposal, name)
    log_prob = proposal.log_prob(drawn)
    shaped(log_prob, (EXAMPLES, SAMPLES), f"{name}'s log-probabilities")
    assert (log_prob <= 1e-9).all(), f"{name} gives an output a probability above 1"
    _check_rows(task, lambda b: propose(b.x).mean, name)

    _check_none_idle(net, -proposal.log_prob(batch.gold).sum(), allow_idle, f"{name}'s log-probability")
    check_state(net, lambda: propose(batch.x).mean)


@asserting
def check_cost_net(cost_net: CostNet, net: InferenceNet, task: Task, energy: Energy | None = None) -> None:
    """Check a cost net: a proposal in the output space, independent of the rest of the batch; trainable; storable.

    Args:
        net: the test-time net to which the cost net is bound (`cost_net.bind(net)`, as in `Model`).
    """
    made_ready(net)
    name, space = made_ready(cost_net, net), task.space
    if energy is not None:
        made_ready(energy, net)

    def propose(batch: Batch) -> Proposal:
        return _proposal(cost_net(batch, net(batch.x, None if energy is None else energy.at(batch.x))), name)

    batch = collate(task, by_length(task, EXAMPLES))
    proposal, shape = propose(batch), batch.gold.shape[2:]
    shaped(proposal.mean, (EXAMPLES, 1, *shape), f"{name}'s relaxed output")
    same(
        space.project(proposal.mean, batch.x.mask),
        proposal.mean,
        f"{name}'s relaxed output is outside the output space",
    )
    _check_rows(task, lambda b: propose(b).mean, name)
    weighted = proposal.mean * torch.arange(1, proposal.mean.numel() + 1).view_as(proposal.mean)
    _check_none_idle(cost_net, weighted.sum(), (), f"{name}'s output")
    check_state(cost_net, lambda: propose(batch).mean)


@asserting
def check_feature_network(features: FeatureNetwork, task: Task, allow_idle: Sequence[str] = ()) -> None:
    """Check a feature network: vectors of `output_dim`, independent of the rest of the batch; trainable; storable.

    Args:
        allow_idle: names of parameters, or of their modules, on which the output need not depend.
    """
    name = made_ready(features)
    batch = collate(task, by_length(task, EXAMPLES))
    shape = (EXAMPLES, features.output_dim) if batch.x.mask is None else (*batch.x.mask.shape, features.output_dim)

    def compute(batch: Batch) -> Tensor:
        out, mask = features(batch.x), batch.x.mask
        assert isinstance(out, Tensor), f"{name}'s output is a {type(out).__name__}; expected a tensor of shape {shape}"
        return out if mask is None else out * mask.unsqueeze(-1)

    shaped(compute(batch), shape, f"{name}'s output")
    _check_rows(task, compute, name)
    _check_none_idle(features, compute(batch).square().sum(), allow_idle, f"{name}'s output")
    check_state(features, lambda: compute(batch))


def _proposal(found: Any, name: str) -> Proposal:
    assert isinstance(found, Proposal), (
        f"{name} returns {type(found).__name__}; expected a Proposal, such as self.space.independent(logits, x.mask)"
    )
    return found


def _check_derivative(check: Callable[..., bool], bound: BoundEnergy, free: Tensor, what: str) -> None:
    try:
        check(bound, (free,), fast_mode=True)
    except RuntimeError as error:
        raise AssertionError(f"{what}: {error}") from error


def _check_k_best(proposal: Proposal, name: str) -> None:
    """The mode is first, log q decreases and equals `log_prob`."""
    y, log_q = proposal.k_best(SAMPLES)
    shaped(y, (proposal.logits.shape[0], SAMPLES, *proposal.logits.shape[2:]), f"{name}'s k best outputs")
    assert (log_q[:, 1:] <= log_q[:, :-1]).all(), f"{name}'s k best are not in the order of their log q"
    log_prob = proposal.log_prob(y).detach()
    same(log_q, log_prob.masked_fill(log_q == -torch.inf, -torch.inf), f"{name}'s log q of its k best is not log_prob")
    first = proposal.log_prob(proposal.mode).detach()
    same(log_q[:, :1], first, f"{name}'s k best don't begin with its mode")


def _check_shared_proposal(loss: EnergyLoss, energy: Energy, net: InferenceNet, batch: Batch, name: str) -> None:
    """A trainer uses one proposal for the loss, net terms and cross entropy: none may change it for the next.

    A loss that draws samples without gradients may be the first to use a value that a proposal computes once and keeps.
    """
    bound = energy.at(batch.x)
    parameters = dict(net.named_parameters())

    def propose() -> Proposal:
        return net(batch.x, bound if net.uses_energy else None)

    def cross_entropy(proposal: Proposal) -> Tensor:
        return -proposal.log_prob(batch.gold)

    def net_terms(proposal: Proposal) -> Tensor:
        torch.manual_seed(0)
        return sum(loss.net_terms(bound, batch, proposal).values())

    def gradients(of: Callable[[Proposal], Tensor], proposal: Proposal) -> tuple[Tensor | None, ...]:
        return torch.autograd.grad(of(proposal).sum(), list(parameters.values()), retain_graph=True, allow_unused=True)

    shared = propose()
    torch.manual_seed(0)
    loss.terms(bound, batch, shared)
    for what, of in (("net terms", net_terms), ("cross entropy", cross_entropy)):
        for key, found, wanted in zip(parameters, gradients(of, shared), gradients(of, propose()), strict=True):
            zero = torch.zeros_like(parameters[key])
            same(
                zero if found is None else found,
                zero if wanted is None else wanted,
                f"after {name} has used a proposal, the gradient of the {what} to the net's {key} is another",
            )


def _check_none_idle(module: nn.Module, value: Tensor, allowed: Sequence[str], what: str) -> None:
    """`value` has a gradient to every parameter of `module` that is not named in `allowed`."""
    parameters = {key: p for key, p in module.named_parameters() if p.requires_grad and not owned(allowed, key)}
    if not parameters:
        return
    idle = without_gradient(value, parameters)
    assert not idle, f"{what} has no gradient to {', '.join(idle)}; if that is meant, name them in allow_idle"


def _check_rows(task: Task, compute: Callable[[Batch], Tensor], name: str) -> None:
    """The result for an example does not depend on its position in the batch, on its neighbours, or on padding."""
    examples = by_length(task, EXAMPLES)
    values = compute(collate(task, examples))
    order = torch.tensor([2, 0, 3, 1])
    moved = replace(collate(task, [examples[i] for i in order]), rows=order)
    same(compute(moved), values[order], f"{name}: permuting the batch doesn't permute the result")
    # Without its longest example the batch has less padding, too.
    fewer = compute(collate(task, examples[:-1]))
    same(fewer, cut(values[:-1], fewer), f"{name}: an example's result depends on its neighbours or on padding")


def _check_clear_error(energy: Energy, batch: Batch, y: Tensor, name: str) -> None:
    of_any_size = energy.space.sizes(batch.x.mask)[-1] is None
    for wrong in (y[:-1], y[:, 0]) if of_any_size else (y[..., :-1], y[:-1], y[:, 0]):
        try:
            energy.at(batch.x)(wrong)
        except ValueError as error:
            assert str(tuple(wrong.shape)) in str(error), (
                f"{name}: the error about a wrong shape doesn't name the shape: {error}"
            )
        else:
            raise AssertionError(
                f"{name} takes outputs of shape {tuple(wrong.shape)} for {tuple(y.shape)} without complaint"
            )
