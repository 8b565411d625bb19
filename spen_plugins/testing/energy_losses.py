"""The check of energy losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.energy import Energy
from spen_plugins.energy_loss import EnergyLoss
from spen_plugins.inference_net import InferenceNet
from spen_plugins.spaces import Proposal
from spen_plugins.task import Task
from spen_plugins.testing.comparing import assert_same, assert_shape, check_state, collate, make_ready, pick_by_length

EXAMPLES = 4


def check_energy_loss(loss: EnergyLoss, energy: Energy, net: InferenceNet, task: Task) -> None:
    """Check an energy loss: terms, net terms and measures are one number per example, independent of other examples;
    nothing to learn without gold; storable.

    The loss may be the first to use a proposal from which the net learns, too: it must not affect the net's gradients.
    """
    make_ready(energy, net), make_ready(net, energy)
    name = make_ready(loss, energy, net)
    batch = collate(task, pick_by_length(task, EXAMPLES))
    proposal = net(batch.x, energy.at(batch.x) if net.uses_energy else None).detach()
    logits = proposal.logits.clone().requires_grad_()
    proposal = replace(proposal, logits=logits, _kept={})
    kinds = {"term": loss.terms, "net term": loss.net_terms, "measure": loss.measures}

    def parts(kind: str, batch: Batch) -> dict[str, Tensor]:
        torch.manual_seed(0)
        terms = kinds[kind](energy.at(batch.x), batch, replace(proposal, _kept={}))
        assert terms or kind == "measure", f"{name} has no {kind}"
        for key, values in terms.items():
            assert_shape(values, (EXAMPLES,), f"{name}'s {kind} {key!r} is one number per example")
        return dict(terms)

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
    partly = replace(batch, labelled=labelled, gold=batch.gold * labelled.view(-1, *[1] * (batch.gold.dim() - 1)))
    unlabelled = replace(batch, labelled=labelled & False, gold=None)
    parts("net term", partly), parts("net term", unlabelled)
    for kind in ("term", "measure"):
        whole = parts(kind, batch)
        for key, values in parts(kind, partly).items():
            assert not values[~labelled].any(), f"{name}'s {kind} {key!r} is not 0 in rows without gold"
            what = f"{name}'s {kind} {key!r} of a row depends on whether other rows have gold"
            assert_same(values[labelled], whole[key][labelled], what)
        assert not any(values.any() for values in parts(kind, unlabelled).values()), (
            f"{name}'s {kind}s are not 0 without gold"
        )
    _check_shared_proposal(loss, energy, net, batch, name)
    check_state(loss, lambda: sum(parts("term", batch).values()).detach())


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
        for key, ours, alone in zip(parameters, gradients(of, shared), gradients(of, propose()), strict=True):
            zero = torch.zeros_like(parameters[key])
            assert_same(
                zero if ours is None else ours,
                zero if alone is None else alone,
                f"after {name} has used a proposal, the gradient of the {what} to the net's {key} is another",
            )
