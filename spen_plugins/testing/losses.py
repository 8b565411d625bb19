"""Check of energy losses."""

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
from spen_plugins.testing.comparing import (
    assert_same,
    assert_same_rows,
    assert_shape,
    check_state,
    collate,
    cut,
    make_ready,
    pick_by_length,
    relaxed,
    remove_gold,
)

EXAMPLES = 4


def check_energy_loss(loss: EnergyLoss, energy: Energy, net: InferenceNet, task: Task) -> None:
    """Check an energy loss: terms, net terms and measures are one number per example, independent of other examples;
    nothing to learn without gold; storable.

    The loss may be the first to use a proposal from which the net learns, too: it must not affect the net's gradients.
    """
    make_ready(energy, net), make_ready(net, energy)
    name = make_ready(loss, energy, net)
    batch = collate(task, pick_by_length(task, EXAMPLES))

    def propose(batch: Batch, logits: Tensor | None = None) -> Proposal:
        proposal = net(batch.x, energy.at(batch.x) if net.uses_energy else None).detach()
        return replace(proposal, logits=proposal.logits.clone() if logits is None else logits, _kept={})

    proposal = propose(batch)
    logits = proposal.logits.requires_grad_()
    kinds = {"term": loss.terms, "net term": loss.net_terms, "measure": loss.measures}

    def compute_terms(
        kind: str, batch: Batch, proposal: Proposal = proposal, seed: int | None = 0
    ) -> dict[str, Tensor]:
        if seed is not None:
            torch.manual_seed(seed)
        gold = None if batch.gold is None else batch.gold.clone()
        terms = kinds[kind](energy.at(batch.x), batch, replace(proposal, _kept={}))
        assert gold is None or torch.equal(gold, batch.gold), (
            f"{name} changes batch.gold; expected a copy of it to change"
        )
        assert terms or kind == "measure", f"{name} has no {kind}"
        for key, values in terms.items():
            assert_shape(values, (len(batch),), f"{name}'s {kind} {key!r}, one number per example")
        return dict(terms)

    def compute_gradients(kind: str, variables: Sequence[Tensor], proposal: Proposal = proposal) -> Sequence[Tensor]:
        total = sum(compute_terms(kind, batch, proposal).values()).sum()
        if not (total.requires_grad and variables):
            return ()
        return [g for g in torch.autograd.grad(total, variables, allow_unused=True) if g is not None]

    for kind in kinds:
        for key, values in compute_terms(kind, batch).items():
            gradient = None
            if values.requires_grad:
                (gradient,) = torch.autograd.grad(values[0], logits, retain_graph=True, allow_unused=True)
            assert gradient is None or not gradient[1:].any(), (
                f"{name}'s {kind} {key!r} of one example depends on the net's output for another"
            )
    confident_proposals = [
        replace(
            proposal, logits=100 * task.space.round(relaxed(task.space, batch, 1, seed), batch.x.mask) - 50, _kept={}
        )
        for seed in range(5)
    ]
    grads = compute_gradients("net term", [logits])
    assert any(gradient.any() for gradient in grads), f"{name}'s net terms have no gradient to the net"
    variables = [p for p in energy.parameters() if p.requires_grad]
    # A loss may be 0 at some outputs, within its margin.
    grads = (g for other in (proposal, *confident_proposals) for g in compute_gradients("term", variables, other))
    assert any(gradient.any() for gradient in grads), f"{name} has no gradient to the energy"

    shorter_batch = collate(task, pick_by_length(task, EXAMPLES)[:-1])  # it has less padding, too
    confident = confident_proposals[0]
    shorter = propose(shorter_batch, cut(confident.logits[:-1], shorter_batch.gold))
    for kind in kinds:
        terms = compute_terms(kind, batch, confident)
        for key, values in compute_terms(kind, shorter_batch, shorter).items():
            assert_same_rows(
                values,
                terms[key][:-1],
                lambda kind=kind, key=key: compute_terms(kind, batch, confident, seed=None)[key],
                f"{name}'s {kind} {key!r} of one example depends on its neighbours or on padding",
            )

    labelled = torch.tensor([True, False, True, False])
    partial_batch, unlabelled_batch = remove_gold(batch, labelled), remove_gold(batch, labelled & False)
    compute_terms("net term", partial_batch), compute_terms("net term", unlabelled_batch)
    for kind in ("term", "measure"):
        full_terms = compute_terms(kind, batch)
        for key, values in compute_terms(kind, partial_batch).items():
            assert not values[~labelled].any(), f"{name}'s {kind} {key!r} is not 0 in rows without gold"
            message = f"{name}'s {kind} {key!r} of a row depends on whether other rows have gold"
            assert_same(values[labelled], full_terms[key][labelled], message)
        assert not any(values.any() for values in compute_terms(kind, unlabelled_batch).values()), (
            f"{name}'s {kind}s are not 0 without gold"
        )
    _check_shared_proposal(loss, energy, net, batch, name)
    check_state(loss, lambda: sum(compute_terms("term", batch).values()).detach())


def _check_shared_proposal(loss: EnergyLoss, energy: Energy, net: InferenceNet, batch: Batch, name: str) -> None:
    """Check that neither the loss, the net terms nor the cross entropy changes the proposal that they share.

    A loss that draws samples without gradients may be the first to use a value that a proposal computes once and keeps.
    """
    bound_energy = energy.at(batch.x)
    parameters = {key: value for key, value in net.named_parameters() if value.requires_grad}

    def propose() -> Proposal:
        return net(batch.x, bound_energy if net.uses_energy else None)

    def cross_entropy(proposal: Proposal) -> Tensor:
        return -proposal.log_prob(batch.gold)

    def net_terms(proposal: Proposal) -> Tensor:
        torch.manual_seed(0)
        return sum(loss.net_terms(bound_energy, batch, proposal).values())

    def compute_gradients(objective: Callable[[Proposal], Tensor], proposal: Proposal) -> tuple[Tensor | None, ...]:
        return torch.autograd.grad(
            objective(proposal).sum(), list(parameters.values()), retain_graph=True, allow_unused=True
        )

    shared_proposal = propose()
    torch.manual_seed(0)
    loss.terms(bound_energy, batch, shared_proposal)
    for kind, objective in (("net terms", net_terms), ("cross entropy", cross_entropy)):
        for key, actual, expected in zip(
            parameters,
            compute_gradients(objective, shared_proposal),
            compute_gradients(objective, propose()),
            strict=True,
        ):
            zero = torch.zeros_like(parameters[key])
            assert_same(
                zero if actual is None else actual,
                zero if expected is None else expected,
                f"after {name} has used a proposal, the gradient of the {kind} to the net's {key} differs",
            )
