"""Checks of tasks, trainers and energy losses."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.energy import Energy
from spen_plugins.energy_loss import EnergyLoss
from spen_plugins.inference_net import InferenceNet
from spen_plugins.model import Model
from spen_plugins.spaces import Proposal
from spen_plugins.task import Task
from spen_plugins.task_parts import Augments, Calibrated, FitsDecoder, Rewards, SharesSentences, TakesExamples
from spen_plugins.testing.comparing import (
    assert_same,
    assert_shape,
    check_state,
    collate,
    is_below,
    list_idle,
    make_ready,
    pick_by_length,
)
from spen_plugins.trainer import OneBatch, Phase, Trainer

EXAMPLES = 4


def check_task(task: Task) -> None:
    """Check a loaded task: it collates, scores and shows its examples, and its facts restore the same task."""
    name = type(task).__name__
    examples = list(task.part("train"))[:3]
    assert examples, f"{name} has no training examples"
    batch = task.collate(examples, [5, 3, 8][: len(examples)])
    assert batch.rows.tolist() == [5, 3, 8][: len(examples)], f"{name}.collate doesn't keep the rows it is given"
    assert batch.gold is not None and batch.labelled.all(), f"{name}'s training examples have no gold"
    variables = batch.gold.shape[2:]
    assert len(variables) == len(task.space.shape), (
        f"{name}'s gold has {len(variables)} variable axes; expected {len(task.space.shape)}, as in its output space"
    )
    assert all(expected in (None, actual) for expected, actual in zip(task.space.shape, variables, strict=True)), (
        f"{name}'s gold has variable axes of sizes {tuple(variables)}; expected {task.space.shape}, as in its output "
        "space"
    )
    assert_same(task.space.round(batch.gold, batch.x.mask), batch.gold, f"{name}'s gold is not a discrete output")

    logits = (batch.gold * 2 - 1) * 10
    proposal, metric = task.space.independent(logits, batch.x.mask), task.metric()
    decoded = task.decode(proposal, batch.x)
    assert_shape(decoded, tuple(batch.gold.shape), f"{name}.decode")
    assert_same(task.space.round(decoded, batch.x.mask), decoded, f"{name}.decode gives an output that is not discrete")
    chosen_proposal = replace(proposal, chosen=1 - decoded)
    assert_same(
        task.decode(chosen_proposal, batch.x), 1 - decoded, f"{name}.decode ignores the output that the net has chosen"
    )
    metric.update(proposal, batch)
    scores = metric.compute()
    assert task.selection in scores, f"{name}.selection is {task.selection!r}; the metric has {', '.join(scores)}"
    predictions = task.predictions(proposal, batch, examples)
    assert len(predictions) == len(examples), (
        f"{name}.predictions gives {len(predictions)} for {len(examples)} examples"
    )
    json.dumps([predictions, task.protocol(), scores])

    _check_parts(task, proposal, batch, examples)

    facts = json.loads(json.dumps(task.facts()))
    restored = object.__new__(type(task))
    restored.__dict__.update({key: value for key, value in task.__dict__.items() if key not in ("space", "inputs")})
    restored.restore(facts)
    assert restored.space.shape == task.space.shape, f"{name}.restore returns another output space"
    assert type(restored.inputs) is type(task.inputs), f"{name}.restore returns other inputs"
    assert json.loads(json.dumps(restored.facts())) == facts, f"{name}: the facts of a restored task differ"


def _check_parts(task: Task, proposal: Proposal, batch: Batch, examples: Sequence[Any]) -> None:
    """Check the optional parts that a task has, on some training examples."""
    name, count = type(task).__name__, len(examples)
    if isinstance(task, TakesExamples):
        assert task.in_memory in (True, False), f"{name}.Config has no field in_memory: bool = False"
    if isinstance(task, Augments):
        task.collate([task.augment(example, np.random.default_rng(0)) for example in examples])
    if isinstance(task, Calibrated) and (decisions := task.decisions(proposal, batch)) is not None:
        sizes = len(decisions.right), decisions.confidences.at(1.0).size
        assert sizes[0] == sizes[1], (
            f"{name}.decisions: found {sizes[0]} numbers in `right` and {sizes[1]} confidences; expected equally many"
        )
    if isinstance(task, FitsDecoder):
        assert_shape(task.k_best(proposal, 1), tuple(batch.gold.shape), f"{name}.k_best")
        unknown_keys = task.decoder_settings().keys() - type(task.config).model_fields.keys()
        assert not unknown_keys, f"{name}.decoder_settings has {', '.join(unknown_keys)}, which its Config lacks"
    if isinstance(task, Rewards) and (reward := task.reward(batch.x, batch.gold)) is not None:
        assert_shape(reward, (count, 1), f"{name}.reward")
        assert ((reward >= 0) & (reward <= 1)).all(), f"{name}.reward is outside [0, 1]"
    if isinstance(task, SharesSentences) and (groups := task.groups(examples)) is not None:
        assert len(groups) == count, f"{name}.groups has {len(groups)} numbers for {count} examples"


def check_trainer(trainer: Trainer, model: Model, task: Task, allow_idle: Sequence[str] = ()) -> None:
    """Check a trainer: each stage trains or freezes each parameter once; each phase's loss has a gradient to all of
    its parameters.

    Args:
        allow_idle: names of the model's parameters, or of their modules, that a phase may train without a gradient.
    """
    name = type(trainer).__name__
    for need in trainer.needs:
        assert getattr(model, need) is not None, f"{name} needs {need}; give the check a model that has one"
    make_ready(model)
    stages = trainer.stages(model, task)
    assert sum(stage.epochs for stage in stages), f"{name} trains for no epoch"
    batch = collate(task, pick_by_length(task, 4))
    for stage in stages:
        for key, _ in model.named_parameters():
            owners = [phase.name for phase in stage.phases if is_below(phase.trains, key)]
            owners += ["frozen"] * is_below(stage.frozen, key)
            assert len(owners) == 1, f"{name}, stage {stage.name!r}: {key} belongs to {owners or 'no phase'}"
        for phase in stage.phases:
            _check_phase(phase, model, batch, allow_idle, f"{name}, phase {phase.name!r}")


def _check_phase(phase: Phase, model: Model, batch: Batch, allow_idle: Sequence[str], name: str) -> None:
    """Check that the loss has one number per example, and a gradient to all parameters that the phase trains."""
    terms = phase.loss(OneBatch(model, batch))
    measures = {} if phase.measures is None else phase.measures(OneBatch(model, batch))
    for kind, values in (("term", terms), ("measure", measures)):
        for key, value in values.items():
            assert_shape(value, (len(batch),), f"{name}, {kind} {key!r}")
    parameters = {
        key: value
        for key, value in model.named_parameters()
        if is_below(phase.trains, key) and value.requires_grad and not is_below(allow_idle, key)
    }
    for key, value in terms.items():
        assert value.requires_grad or not parameters, f"{name}: term {key!r} is detached, without gradient"
    names = list_idle(torch.stack(list(terms.values())).sum(), parameters)
    assert not names, (
        f"{name}: its loss has no gradient to {', '.join(names)}, which it trains; if that is intended, name them in "
        "allow_idle"
    )


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

    def compute_terms(kind: str, batch: Batch) -> dict[str, Tensor]:
        torch.manual_seed(0)
        terms = kinds[kind](energy.at(batch.x), batch, replace(proposal, _kept={}))
        assert terms or kind == "measure", f"{name} has no {kind}"
        for key, values in terms.items():
            assert_shape(values, (EXAMPLES,), f"{name}'s {kind} {key!r}, one number per example")
        return dict(terms)

    def compute_gradients(kind: str, variables: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
        total = sum(compute_terms(kind, batch).values()).sum()
        return torch.autograd.grad(total, variables, allow_unused=True) if total.requires_grad and variables else ()

    for kind in kinds:
        for key, values in compute_terms(kind, batch).items():
            gradient = None
            if values.requires_grad:
                (gradient,) = torch.autograd.grad(values[0], logits, retain_graph=True, allow_unused=True)
            assert gradient is None or not gradient[1:].any(), (
                f"{name}'s {kind} {key!r} of one example depends on the net's output for another"
            )
    grads = compute_gradients("net term", [logits])
    assert any(g is not None and g.any() for g in grads), f"{name}'s net terms have no gradient to the net"
    grads = compute_gradients("term", [p for p in energy.parameters() if p.requires_grad])
    assert any(gradient is not None and gradient.any() for gradient in grads), f"{name} has no gradient to the energy"

    labelled = torch.tensor([True, False, True, False])
    partial_batch = replace(
        batch, labelled=labelled, gold=batch.gold * labelled.view(-1, *[1] * (batch.gold.dim() - 1))
    )
    unlabelled_batch = replace(batch, labelled=labelled & False, gold=None)
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
