"""Mistakes in components and in their combination in a config: found before training, named in one sentence."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from spen_plugins.batch import Batch
from spen_plugins.component import Component
from spen_plugins.energy_loss import Terms
from spen_plugins.errors import ConfigError, DataError, PluginError
from spen_plugins.features import FeatureNetwork
from spen_plugins.loop import ledger
from spen_plugins.loop.active import ActivePhase, make_phases
from spen_plugins.loop.context import LiveContext, NetStates
from spen_plugins.loop.evaluation import collate_rows, each_batch
from spen_plugins.loop.order import plan_epochs
from spen_plugins.loop.recipe import Recipe
from spen_plugins.loop.torch_modes import attention_kernels, is_out_of_memory, random_state, set_random_state
from spen_plugins.player import Player
from spen_plugins.spaces import Proposal
from spen_plugins.task import Task
from spen_plugins.trainer import Stage, Trainer, TrainerConfig, Update, backward

MISTAKES = (AssertionError, AttributeError, ImportError, LookupError, NameError, RuntimeError, TypeError, ValueError)
"""Errors of code, such as a wrong name, key or shape."""
SINGULAR = (torch.linalg.LinAlgError, np.linalg.LinAlgError)
"""Errors that depend on the weights."""


def rehearse(trainer: Trainer, recipe: Recipe, accelerator: Accelerator) -> list[str]:
    """Passes one batch through every phase of every stage, so that errors of later stages are found before training.
    Returns warnings.

    It uses a copy of the model and the trainer, and restores random states. Errors that may depend on weights are left
    to training, and so is a model that can't be copied.
    """
    notes: list[str] = []
    model, task = recipe.model, recipe.task
    if message := find_unregistered(model):
        raise PluginError(message)
    memo = {id(part): part for part in (task, *vars(task).values())}
    try:
        model_copy, trainer_copy = deepcopy((model, trainer), memo)
    except Exception as error:  # a plugin's component may hold anything: a lock, an open file
        reason = f"the model or the trainer can't be copied ({type(error).__name__}: {error})"
        return [f"warning: the trial of one batch before training is skipped, because {reason}"]
    idle: dict[str, bool] = {}
    state = random_state()
    try:
        with translate_mistakes():
            check_protocol(trainer_copy)
            nets = NetStates(model_copy)
            for number, stage in enumerate(trainer_copy.stages(model_copy, task)):
                if stage.epochs and stage.phases:
                    with translate_mistakes(f"stage {stage.name!r}"), suppress(*SINGULAR):
                        notes += _rehearse_stage(nets, stage, number, recipe, accelerator, idle)
        if (names := [name for name, is_idle in idle.items() if is_idle]) and not notes:
            others = f" and {len(names) - 3} more" if len(names) > 3 else ""
            notes.append(
                f"warning: in the first batch, no loss has a gradient to {', '.join(names[:3])}{others}; if later "
                "batches give none either, training leaves them as they are. Use them, or set requires_grad_(False)"
            )
    except (ConfigError, DataError, PluginError):
        raise
    except Exception:  # training may not meet it: by then it has other weights
        pass
    finally:
        set_random_state(state)
    return notes


def find_unregistered(module: nn.Module, *beside: nn.Module) -> str | None:
    """A message about weights in attributes, lists and dicts that belong neither to the module nor to those `beside`
    it, and would be ignored; None if there are none."""
    registered_ids = {id(parameter) for part in (module, *beside) for parameter in part.parameters()}
    for inner in module.modules():
        for attribute, value in vars(inner).items():
            if not all(id(tensor) in registered_ids for tensor in _find_weights(value, set())):
                return (
                    f"{type(inner).__name__}.{attribute} holds weights that are not registered as parameters, so they "
                    "are neither trained nor saved; expected an nn.Parameter, and nn.ModuleList, nn.ModuleDict or "
                    "nn.ParameterList in place of a list or a dict"
                )
    return None


def _find_weights(value: Any, visited: set[int]) -> Iterator[Tensor]:
    """Tensors that could learn, including those of modules and in lists and dicts, each of which is visited once."""
    if isinstance(value, Tensor) and value.is_leaf and value.requires_grad:
        yield value
    elif isinstance(value, nn.Module):
        yield from (parameter for parameter in value.parameters() if parameter.requires_grad)
    elif isinstance(value, Mapping | list | tuple) and id(value) not in visited:
        visited.add(id(value))
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _find_weights(inner, visited)


def check_protocol(trainer: Trainer) -> None:
    """Raise a PluginError for a protocol that isn't a table of JSON values."""
    protocol = trainer.protocol()
    try:
        json.dumps({**protocol})
    except TypeError as error:
        problem = f"{type(trainer).__name__}.protocol returned {protocol!r:.80}"
        raise PluginError(f"{problem}; expected a table of JSON values ({error})") from error


def _rehearse_stage(
    nets: NetStates, stage: Stage, number: int, recipe: Recipe, accelerator: Accelerator, idle: dict[str, bool]
) -> list[str]:
    """Passes one batch through the stage's phases. Returns warnings; `idle` maps each parameter's name to True while no
    loss has had a gradient to it."""
    notes: list[str] = []
    model, task = nets.model, recipe.task
    for change in (stage.start, stage.set):
        if change is not None:
            change(model)
    examples = task.part("train") if stage.examples is None else stage.examples
    epochs = plan_epochs(task, examples, recipe.config, recipe.seed, number)
    rows = epochs.order(0)[0]
    batch = collate_rows(task, stage, examples, rows, (recipe.seed, number, 0)).to(accelerator.device)
    phases = make_phases(model, stage, recipe.owned[stage.name], accelerator, epochs.batches)
    owned = {active.phase.name: active.parameters for active in phases}
    context = LiveContext(nets, batch)
    with attention_kernels(stage):
        for active in phases:
            nets.phase_begins(active)
            with accelerator.autocast():
                terms = active.phase.loss(context)
                ledger.check_terms(terms, len(batch), active.phase.name)
                loss = sum(term.sum() for term in terms.values()) / len(batch)
            notes += _note_idle_terms(active, terms)
            if recipe.config.gradient_norms_every:
                ledger.add_measures({}, active, context, accelerator)
            run_backward = torch.Tensor.backward
            active.phase.gradient(
                Update(context, stage, active.phase, loss, active.parameters, owned, len(batch), run_backward)
            )
            for name, parameter in zip(recipe.owned[stage.name][active.phase.name], active.parameters, strict=True):
                idle[name] = idle.get(name, True) and parameter.grad is None
                parameter.grad = None
            for name in active.touches:
                nets.moves[name] += 1
        if stage.select is not None:
            model.eval()
            nets.modes.clear()
            with torch.no_grad():
                stage.select(model, list(each_batch(task, task.part("validation")[:2], 2, accelerator.device)))
    return notes


def _note_idle_terms(active: ActivePhase, terms: Terms) -> list[str]:
    """A warning for each term from which a phase learns nothing."""
    if active.phase.gradient is not backward:  # another rule may reach the parameters in its own way
        return []
    return [
        f"warning: in the first batch, the loss {name!r} of phase {active.phase.name!r} has no gradient to what the "
        "phase trains, so it teaches nothing; expected a loss and an energy that are not constant, rounded or detached"
        for name, term in terms.items()
        if not term.requires_grad
        or not any(
            gradient is not None
            for gradient in torch.autograd.grad(term.sum(), active.parameters, retain_graph=True, allow_unused=True)
        )
    ]


def explain_non_finite(
    nets: NetStates, active: ActivePhase, batch: Batch | None, accelerator: Accelerator, config: TrainerConfig
) -> str:
    """Explains a NaN or infinite value: in the loss of a batch before a phase's first update, by the first component
    whose output is not finite; otherwise, by remedies."""
    # The phase that shows the value need not be its cause: all players' rates are named.
    players = ((name, getattr(config, name)) for name in type(config).model_fields)
    rates = ", ".join(f"trainer.{name}.lr={player.lr:g}" for name, player in players if isinstance(player, Player))
    rates = f"now {active.learning_rate:g}" + (rates and f"; {rates}")
    remedies = f"a lower learning rate ({rates}), clipping or a smaller weight may help."
    if batch is None or active.updates:
        return remedies
    names = {part: name for name, part in nets.model.named_modules() if isinstance(part, Component | FeatureNetwork)}
    explanations: list[str] = []

    def check_output(part: nn.Module, _: Any, output: Any) -> None:
        value = output.logits if isinstance(output, Proposal) else output
        if isinstance(value, Tensor) and bool((value.isnan() | (value == torch.inf)).any()):
            explanations.append(f"the output of {names[part]} ({type(part).__name__}) is the first that is not finite")

    hooks = [part.register_forward_hook(check_output) for part in names]
    try:
        with accelerator.autocast():
            active.phase.loss(LiveContext(nets, batch))
    finally:
        for hook in hooks:
            hook.remove()
    return explanations[0] if explanations else remedies


@contextmanager
def translate_mistakes(caller: str | None = None) -> Iterator[None]:
    """Raises a `PluginError` that names method and line in place of `MISTAKES` in a component's code inside.

    Args:
        caller: name in place of the method's for mistakes in other code; None: such mistakes pass unchanged.
    """
    try:
        yield
    except MISTAKES as error:
        place = _find_place(error, caller)
        if place is None or is_out_of_memory(error):
            raise
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise PluginError(f"{place} fails: {reason}") from error


def _find_place(error: Exception, caller: str | None) -> str | None:
    """The innermost method of a component in an error's traceback, or else the caller, with file and line."""
    frames = [
        (frame.f_locals.get("self"), frame.f_code, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not str(frame.f_globals.get("__name__")).startswith("torch.")
    ]
    for component, code, line in reversed(frames):
        if isinstance(component, (Component, FeatureNetwork, Task, Trainer)):
            return f"{type(component).__name__}.{code.co_name} ({code.co_filename}, line {line})"
    _, code, line = frames[-1]
    return caller and f"{caller} ({code.co_filename}, line {line})"
