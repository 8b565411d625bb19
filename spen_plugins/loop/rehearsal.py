"""The rehearsal: one batch passes through every phase of every stage before training, in a copy of the model."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

import torch
from accelerate import Accelerator

from spen_plugins.batch import Batch
from spen_plugins.component import Component
from spen_plugins.errors import PluginError, RunError, SpenError
from spen_plugins.features import FeatureNetwork
from spen_plugins.loop import ledger
from spen_plugins.loop.active import ActivePhase
from spen_plugins.loop.attention import attention_of
from spen_plugins.loop.augmentation import batch_of
from spen_plugins.loop.context import LiveContext, NetStates
from spen_plugins.loop.evaluation import batches
from spen_plugins.loop.memory import is_out_of_memory
from spen_plugins.loop.order import epochs_of
from spen_plugins.loop.ownership import Owned, parameters_of, touched
from spen_plugins.loop.random_state import random_state, set_random_state
from spen_plugins.model import Model
from spen_plugins.task import Task
from spen_plugins.trainer import Stage, Trainer, TrainerConfig, Update

MISTAKES = (AttributeError, ImportError, IndexError, NameError, RuntimeError, TypeError)
"""Errors of code, such as a wrong name or shape, which do not depend on the weights that earlier stages learn."""


def rehearse(model: Model, task: Task, trainer: Trainer, owned: Owned, seed: int, accelerator: Accelerator) -> None:
    """Computes the losses, gradients and measures of every phase on one batch, so that a mistake in a component
    shows before the stages ahead of it are trained.

    A copy of the model and the trainer takes part, and random states are restored. A model that cannot be copied is
    not rehearsed.

    Args:
        model, task, trainer: the parts of the run.
        owned: the owners of all parameters, from `check_stages`.
        seed: seed of the row order.
        accelerator: device and precision.

    Raises:
        PluginError: a component raised an error; the message names its class and method.
    """
    if not len(task.part("train")):
        return  # the loop reports it
    shared = {id(one): one for one in (task, *vars(task).values())}
    try:
        twin, own = deepcopy((model, trainer), shared)
    except Exception:  # whatever a component of somebody else's holds: a lock, an open file
        return
    before = random_state()
    try:
        with _naming(own.protocol, "where a run describes it"):
            json.dumps({**own.protocol()})
        nets = NetStates(twin)
        for number, stage in enumerate(own.stages(twin, task)):
            if stage.epochs and stage.phases:
                with attention_of(stage):
                    _Rehearsal(nets, task, stage, own.config, owned, (seed, number), accelerator).run()
    except _LeftToTrainingError:
        pass
    finally:
        set_random_state(before)


class _LeftToTrainingError(Exception):
    """An error that training may not meet, because it has other weights or files by then."""


class _Rehearsal:
    """One stage's rehearsal."""

    def __init__(
        self,
        nets: NetStates,
        task: Task,
        stage: Stage,
        config: TrainerConfig,
        owned: Owned,
        place: tuple[int, int],
        accelerator: Accelerator,
    ) -> None:
        self.nets, self.model, self.task, self.stage = nets, nets.model, task, stage
        self.config, self.owned = config, owned[stage.name]
        self.place, self.accelerator = place, accelerator

    def run(self) -> None:
        stage, model = self.stage, self.model
        for call in (stage.start, stage.set):
            if call is not None:
                with _naming(call, f"at the start of stage {stage.name!r}"):
                    call(model)
        batch = self._first_batch()
        if batch is None:
            return
        owned = {name: parameters_of(model, names) for name, names in self.owned.items()}
        phases = [
            ActivePhase(phase, owned[phase.name], touched(model, owned[phase.name].values()), self.accelerator)
            for phase in stage.phases
            if owned[phase.name]
        ]
        context = LiveContext(self.nets, batch)
        for active in phases:
            self.nets.phase_begins(active)
            with (
                suppress(_LeftToTrainingError),
                _naming(active.phase.loss, f"in phase {active.phase.name!r} of stage {stage.name!r}"),
            ):
                self._rehearse(active, phases, context)
            for parameter in active.parameters:
                parameter.grad = None
            for name in active.touches:
                self.nets.moves[name] += 1
        if stage.select is not None and len(validation := self.task.part("validation")):
            model.eval()
            self.nets.modes.clear()
            some = batches(self.task, validation[:2], 2, self.accelerator.device)
            where = f"in the validation of stage {stage.name!r}"
            with suppress(_LeftToTrainingError), torch.no_grad(), _naming(stage.select, where):
                stage.select(model, some)

    def _first_batch(self) -> Batch | None:
        """The stage's first batch."""
        stage, task = self.stage, self.task
        examples = task.part("train") if stage.examples is None else stage.examples
        if not len(examples):
            return None
        rows = epochs_of(task, examples, self.config, *self.place).order(0)[0]
        return batch_of(task, stage, examples, rows, (*self.place, 0)).to(self.accelerator.device)

    def _rehearse(self, active: ActivePhase, phases: Sequence[ActivePhase], context: LiveContext) -> None:
        phase, examples = active.phase, len(context.batch)
        with self.accelerator.autocast():
            terms = phase.loss(context)
            ledger.check_terms(terms, examples, phase.name)
            loss = sum(term.sum() for term in terms.values()) / examples
        if self.config.gradient_norms_every:
            ledger.add_measures({}, active, context, self.accelerator)
        owned = {other.phase.name: other.parameters for other in phases}
        phase.gradient(
            Update(context, self.stage, phase, loss, active.parameters, owned, examples, torch.Tensor.backward)
        )


@contextmanager
def _naming(call: Callable[..., Any], where: str) -> Iterator[None]:
    """`MISTAKES` as a `PluginError` that names the class and the method; `_LeftToTrainingError` for any other error."""
    try:
        yield
    except (RunError, torch.linalg.LinAlgError) as error:
        raise _LeftToTrainingError from error
    except SpenError:
        raise
    except MISTAKES as error:
        if is_out_of_memory(error):
            raise _LeftToTrainingError from error
        method, place = _method(error)
        call = getattr(call, "func", call)  # a partial
        name = method or getattr(call, "__qualname__", type(call).__name__)
        if isinstance(error, NotImplementedError) and not str(error):
            raise PluginError(
                f"{name} is called {where}, and is not implemented; expected the class to have it"
            ) from error
        said = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise PluginError(f"{name} fails {where}, in a trial before training: {said}{place}") from error
    except Exception as error:
        raise _LeftToTrainingError from error


def _method(error: Exception) -> tuple[str, str]:
    """The innermost method of a component in an error's traceback, `Class.method`, and the place of the error in it."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        this = frame.f_locals.get("self")
        ours = isinstance(this, (Component, FeatureNetwork, Task, Trainer))
        if ours and not str(frame.f_globals.get("__name__")).startswith("torch."):
            code = frame.f_code
            return f"{type(this).__name__}.{code.co_name}", f" ({code.co_filename}, line {line})"
    return "", ""
