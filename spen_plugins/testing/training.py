"""Check of trainers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.energy_loss import Terms
from spen_plugins.errors import SpenError
from spen_plugins.loop.mistakes import check_protocol
from spen_plugins.model import Model
from spen_plugins.task import Task
from spen_plugins.testing.comparing import (
    assert_same_rows,
    assert_shape,
    collate,
    is_below,
    list_idle,
    make_ready,
    pick_by_length,
    remove_gold,
)
from spen_plugins.trainer import OneBatch, Phase, Stage, Trainer, Update, backward


@torch.random.fork_rng(devices=[])
def check_trainer(trainer: Trainer, model: Model, task: Task, allow_idle: Sequence[str] = ()) -> None:
    """Check a trainer: each stage trains or freezes each parameter once; each phase's loss is one number per example,
    independent of whether other examples have gold; the loss and the gradient rule give a gradient to all of the
    phase's parameters.

    A stage's `set` is called, but not its `start`, which may read data.

    Args:
        allow_idle: names of the model's parameters, or of their modules, that a phase may train without a gradient.
    """
    assert isinstance(trainer, Trainer), f"found {trainer!r}; expected an instance, such as Class(Class.Config())"
    name = type(trainer).__name__
    for need in trainer.needs:
        assert getattr(model, need) is not None, f"{name} needs {need}; give the check a model that has one"
    make_ready(model)
    stages = trainer.stages(model, task)
    check_protocol(trainer)
    assert sum(stage.epochs for stage in stages), f"{name} trains for no epoch"
    _check_names([stage.name for stage in stages], f"{name}'s stages")
    batch = collate(task, pick_by_length(task, 4))
    for stage in stages:
        _check_names([phase.name for phase in stage.phases], f"{name}, stage {stage.name!r}: phases")
        for key, _ in model.named_parameters():
            owners = [phase.name for phase in stage.phases if is_below(phase.trains, key)]
            owners += ["frozen"] * is_below(stage.frozen, key)
            assert len(owners) == 1, f"{name}, stage {stage.name!r}: {key} belongs to {owners or 'no phase'}"
        if stage.set is not None:
            stage.set(model)
        for phase in stage.phases:
            _check_phase(phase, stage, model, batch, allow_idle, f"{name}, phase {phase.name!r}")
        if stage.select is not None:
            with torch.no_grad():
                score = stage.select(model, [batch])
            try:
                float(score)
            except (TypeError, ValueError) as error:
                message = f"{name}, stage {stage.name!r}: select returned {score!r:.80}; expected a number"
                raise AssertionError(message) from error


def _check_names(names: Sequence[str], label: str) -> None:
    assert len({*names}) == len(names), f"{label}: found the names {', '.join(names)}; expected different names"


def _check_phase(phase: Phase, stage: Stage, model: Model, batch: Batch, allow_idle: Sequence[str], name: str) -> None:
    """Check that the loss has one number per example, and a gradient to all parameters that the phase trains."""
    if not stage.gold:
        batch = remove_gold(batch, torch.zeros(len(batch), dtype=torch.bool))
    context = OneBatch(model, batch)
    torch.manual_seed(0)
    terms = phase.loss(context)
    measures = {} if phase.measures is None else phase.measures(OneBatch(model, batch))
    for kind, values in (("term", terms), ("measure", measures)):
        for key, value in values.items():
            assert_shape(value, (len(batch),), f"{name}, {kind} {key!r}")
    owned = {
        other.name: {key: p for key, p in model.named_parameters() if is_below(other.trains, key) and p.requires_grad}
        for other in stage.phases
    }
    parameters = {key: value for key, value in owned[phase.name].items() if not is_below(allow_idle, key)}
    for key, value in terms.items():
        assert value.requires_grad or not parameters, f"{name}: term {key!r} is detached, without gradient"
    total = torch.stack(list(terms.values())).sum()
    idle = "{0}: its {1} has no gradient to {2}, which it trains; if that is intended, name them in allow_idle"
    names = list_idle(total, parameters, retain_graph=True)
    assert not names, idle.format(name, "loss", ", ".join(names))
    if phase.gradient is not backward:
        phase.gradient(
            Update(
                context,
                stage,
                phase,
                total / len(batch),
                list(owned[phase.name].values()),
                {key: list(values.values()) for key, values in owned.items()},
                len(batch),
                Tensor.backward,
            )
        )
        names = [key for key, parameter in parameters.items() if parameter.grad is None]
        model.zero_grad()
        assert not names, idle.format(name, "gradient rule", ", ".join(names))
    if stage.gold and stage.examples is None:
        _check_rows_without_gold(phase, model, batch, terms, name)


def _check_rows_without_gold(phase: Phase, model: Model, batch: Batch, full_terms: Terms, name: str) -> None:
    """Check that the terms of examples with gold, and of those without, are the same in a batch of both kinds."""
    labelled = torch.tensor([True, False, True, False])

    def compute_terms(batch: Batch) -> Terms:
        return phase.loss(OneBatch(model, batch))

    try:
        torch.manual_seed(0)
        partial_terms = compute_terms(remove_gold(batch, labelled))
        torch.manual_seed(0)
        unlabelled_terms = compute_terms(remove_gold(batch, labelled & False))
    except SpenError:  # a message for the user
        return
    except Exception as error:
        raise AssertionError(
            f"{name}: its loss fails for a batch without gold, batch.gold = None, or in part: {error}"
        ) from error
    for key, values in partial_terms.items():
        zeros = torch.zeros_like(values)
        assert_same_rows(
            values,
            torch.where(labelled, full_terms.get(key, zeros), unlabelled_terms.get(key, zeros)),
            lambda key=key, zeros=zeros: compute_terms(batch).get(key, zeros),
            f"{name}: term {key!r} of an example depends on whether other examples have gold",
        )
