"""Statistics of an epoch: sums of losses, gradient norms and measures; the history record, and the position."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from spen_plugins.errors import PluginError
from spen_plugins.trainer import Stage

if TYPE_CHECKING:
    from spen_plugins.loop.active import ActivePhase
    from spen_plugins.loop.context import LiveContext


Sums = dict[str, list[float]]
"""`kind:phase.term` -> sum over examples and number of examples; JSON, for the checkpoint."""


def add(sums: Sums, kind: str, name: str, value: float, count: int) -> None:
    """Add a sum over `count` examples."""
    entry = sums.setdefault(f"{kind}:{name}", [0.0, 0])
    entry[0] += value
    entry[1] += count


def add_measures(sums: Sums, active: ActivePhase, context: LiveContext, accelerator: Accelerator) -> None:
    """Add a phase's measures of a batch; their random numbers are separate, so that they don't change training."""
    if active.phase.measures is None:
        return
    devices = [accelerator.device] if accelerator.device.type == "cuda" else []
    with torch.random.fork_rng(devices), torch.no_grad(), accelerator.autocast():
        for name, values in active.phase.measures(context).items():
            if not isinstance(values, Tensor) or values.dim() != 1:
                measure = f"measure {name!r} of phase {active.phase.name!r}"
                raise PluginError(f"{measure}: found {_describe(values)}; expected a tensor of shape (batch,)")
            add(sums, "measure", f"{active.phase.name}.{name}", values.sum().item(), len(values))


def add_norms(sums: Sums, phase: str, norms: Mapping[str, Tensor]) -> None:
    """Add one update's gradient norm of each term, and its share of the total."""
    values = {name: float(norm) for name, norm in norms.items()}
    total = sum(values.values())
    for name, value in values.items():
        add(sums, "gradient_norm", f"{phase}.{name}", value, 1)
        add(sums, "gradient_share", f"{phase}.{name}", value / total if total else 0.0, 1)


def merge_sums(sums: Sequence[Sums]) -> Sums:
    """The sums of all processes' sums."""
    all_sums: Sums = {}
    for process_sums in sums:
        for key, (total, count) in process_sums.items():
            kind, _, name = key.partition(":")
            add(all_sums, kind, name, total, count)
    return all_sums


def means(sums: Sums, kind: str = "loss") -> dict[str, float]:
    """Means so far, by `phase.term`."""
    prefix = kind + ":"
    return {key[len(prefix) :]: total / count for key, (total, count) in sums.items() if key.startswith(prefix)}


def gradient_norms(terms: Mapping[str, Tensor], parameters: Sequence[nn.Parameter], examples: int) -> dict[str, Tensor]:
    """The norm of each term's gradient; 0 if a term does not depend on the parameters. The graph is kept."""
    norms = {}
    for name, term in terms.items():
        gradients = (
            torch.autograd.grad(term.sum() / examples, parameters, retain_graph=True, allow_unused=True)
            if term.requires_grad
            else ()
        )
        norms[name] = torch.nn.utils.get_total_norm([gradient for gradient in gradients if gradient is not None])
    return norms


def check_terms(terms: Any, examples: int, phase: str) -> None:
    """Raise a PluginError unless there are terms, and each has one number per example, to be summed."""
    if not isinstance(terms, Mapping) or not terms:
        raise PluginError(f"the loss of phase {phase!r} is {terms!r:.80}; expected tensors by name, at least one")
    for name, term in terms.items():
        if not isinstance(term, Tensor) or term.shape != (examples,):
            raise PluginError(
                f"loss {name!r} of phase {phase!r}: found {_describe(term)}; expected a tensor of shape (batch,) = "
                f"({examples},)"
            )


def _describe(value: Any) -> str:
    """The shape of a tensor; the beginning of another value."""
    return str(tuple(value.shape)) if isinstance(value, Tensor) else f"{value!r:.80}"


def totals(terms: Mapping[str, Tensor]) -> dict[str, float]:
    """Each term's sum over the batch; one transfer from the device."""
    values = torch.stack([term.detach().sum() for term in terms.values()]).tolist()
    return dict(zip(terms, values, strict=True))


def epoch_record(
    stage: Stage, position: Position, phases: Sequence[ActivePhase], validation: Mapping[str, Any], score: float
) -> dict[str, Any]:
    """An epoch's record in the history, without `best`."""
    sums = position.sums
    measures = means(sums, "measure")
    return {
        "stage": stage.name,
        "epoch": position.epoch,
        "updates": {active.phase.name: active.updates for active in phases},
        "learning_rate": {active.phase.name: active.learning_rate for active in phases},
        "losses": means(sums),
        "gradient_norms": means(sums, "gradient_norm"),
        "gradient_share": means(sums, "gradient_share"),
        **({"measures": measures} if measures else {}),
        **validation,
        "score": score,
    }


@dataclass
class Position:
    """Position in the training, part of the checkpoint."""

    stage: int = 0
    started: bool = False
    """True if the stage's `start` has been called."""
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    """Seconds of training in this epoch, including those before a stop."""
    best: float = -math.inf
    best_epoch: int = -1
    history_lines: int = 0
    sums: Sums = field(default_factory=dict)

    def is_patience_over(self, stage: Stage) -> bool:
        """True if there was no better score for the stage's patience."""
        return stage.patience is not None and self.epoch - self.best_epoch > stage.patience

    def next_epoch(self) -> None:
        """The beginning of the next epoch."""
        self.epoch, self.batch, self.seconds, self.sums = self.epoch + 1, 0, 0.0, {}

    def next_stage(self, goes_on: bool = False) -> Position:
        """The beginning of the next stage; a stage that goes on has the same best score to reach."""
        best = self.best if goes_on else -math.inf
        return Position(stage=self.stage + 1, history_lines=self.history_lines, best=best)
