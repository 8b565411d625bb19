"""Training in several processes: weights, gradients, random states, rows and decisions."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np
import torch
import torch.distributed as distributed
from accelerate import Accelerator
from torch import Tensor, nn

from spen_plugins.errors import RunError
from spen_plugins.loop.ledger import Position, merge_sums
from spen_plugins.loop.recipe import Callbacks
from spen_plugins.loop.torch_modes import set_random_state
from spen_plugins.model import Model

TABLE = (4096, 2**17)
"""Rows and numbers of the smallest gradient whose rows of zeros are looked for, as those of word vectors have many."""


class ProcessLost(RunError):
    """Another process of a run has ended before this one, or can't be reached any more."""


@contextmanager
def _lost_process_errors() -> Iterator[None]:
    """Raises `ProcessLost` in place of torch's errors where a process waits for others."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        reason = re.sub(r"^\[.*?\] ", "", str(error)).partition(". ")[0]
        raise ProcessLost(
            f"another process of this run ended or can't be reached, so this one stopped ({reason:.200})"
        ) from error


def wait_for_all(accelerator: Accelerator) -> None:
    """Wait until every process is here."""
    with _lost_process_errors():
        accelerator.wait_for_everyone()


def gather(value: Any, accelerator: Accelerator) -> list[Any]:
    """The values of all processes, the main one's first."""
    values = [value] * accelerator.num_processes
    if accelerator.num_processes > 1:
        with _lost_process_errors():
            distributed.all_gather_object(values, value)
    return values


def broadcast_weights(model: Model, accelerator: Accelerator) -> None:
    """Copy the main process's weights to every process."""
    if accelerator.num_processes > 1:
        with _lost_process_errors():
            for parameter in model.parameters():
                distributed.broadcast(parameter.data, 0)


class Requests:
    """Requests to stop and to save a checkpoint, on which all processes agree.

    Attributes:
        agreed: of several processes, 1 if any is to stop, and 1 if a checkpoint is due in any, as of the last update.
    """

    def __init__(self, callbacks: Callbacks, accelerator: Accelerator) -> None:
        self.callbacks, self._is_alone = callbacks, accelerator.num_processes == 1
        self.clear()

    def clear(self) -> None:
        """Begin anew, after a checkpoint was saved."""
        self._saved_at, self.agreed = time.monotonic(), [0.0, 0.0]

    def is_due(self) -> bool:
        """True if it is time for a checkpoint here."""
        return time.monotonic() - self._saved_at >= self.callbacks.checkpoint_seconds

    def poll(self) -> list[float]:
        """The requests of this process."""
        return [self.callbacks.stop(), self.is_due()]

    def read(self) -> list[float]:
        """The requests of all processes."""
        return self.poll() if self._is_alone else self.agreed


class GradientSum:
    """Sums of gradients over the processes.

    Args:
        parameters: the same ones in every process. A wrapper around a module would miss gradients that are made by
            `autograd.grad`.
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = parameters
        self._memory = torch.empty(0)  # of the messages: new memory for each would cost more than filling it

    def add_up(self, numbers: Sequence[float]) -> list[float]:
        """Replace every process's gradients by their sum, in one message; a parameter without one anywhere stays so.

        Of a large matrix of which at most half of the rows have a gradient in any process, only those are sent; a small
        message before says which.

        Args:
            numbers: small numbers, sent with the gradients.

        Returns:
            The sums of `numbers`.
        """
        gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in self.parameters]
        rows = _choose_rows(gradients)
        pieces = [each if chosen is None else each[chosen] for each, chosen in zip(gradients, rows, strict=True)]
        has_gradient = [each.grad is not None for each in self.parameters]
        sent = [*(piece.reshape(-1) for piece in pieces), gradients[0].new_tensor([*has_gradient, *numbers])]
        message = self._join(sent)
        with _lost_process_errors():
            distributed.all_reduce(message)
        *sums, last = message.split([len(each) for each in sent])
        counts = last.tolist()
        for i, parameter in enumerate(self.parameters):
            total, chosen = sums[i].view_as(pieces[i]).to(parameter.dtype), rows[i]
            whole = total if chosen is None else gradients[i].index_copy_(0, chosen, total)
            parameter.grad = whole if counts[i] else None
        return counts[len(self.parameters) :]

    def _join(self, sent: Sequence[Tensor]) -> Tensor:
        """These vectors as one, in the widest of their precisions."""
        length, kind = sum(map(len, sent)), reduce(torch.promote_types, (each.dtype for each in sent))
        if len(self._memory) < length or self._memory.dtype != kind or self._memory.device != sent[0].device:
            self._memory = torch.empty(length, dtype=kind, device=sent[0].device)
        return torch.cat(list(sent), out=self._memory[:length])


def _choose_rows(gradients: Sequence[Tensor]) -> list[Tensor | None]:
    """Of each gradient the rows to send; None: all."""
    least, numbers = TABLE
    matrices = {i: each for i, each in enumerate(gradients) if each.ndim == 2}
    tables = {i: each for i, each in matrices.items() if len(each) >= least and each.numel() >= numbers}
    rows: list[Tensor | None] = [None] * len(gradients)
    if tables:
        reached = torch.cat([each.amax(1).ne(0) | each.amin(1).ne(0) for each in tables.values()]).to(torch.uint8)
        with _lost_process_errors():
            distributed.all_reduce(reached, distributed.ReduceOp.MAX)
        for i, part in zip(tables, reached.split([len(each) for each in tables.values()]), strict=True):
            chosen = part.nonzero().flatten()
            rows[i] = chosen if 2 * len(chosen) <= len(part) else None
    return rows


def restore_own(
    state: dict[str, Any], position: Position, seed: int, accelerator: Accelerator, say: Callable[[str], None]
) -> None:
    """Restore what differs between processes: random states, and the sums of losses.

    `state` has the main process's state "random", and those of the "others", as many as there were.
    """
    number, others = accelerator.process_index, state.get("others", [])
    if len(others) != accelerator.num_processes - 1:
        was, now = 1 + len(others), accelerator.num_processes
        say(f"note: the checkpoint was saved with processes: {was}, now: {now}; random numbers will differ")
        set_random_state(state["random"])
        if number:
            torch.manual_seed(hash((seed, number, position.stage, position.epoch, position.batch)) % 2**63)
            position.sums = {}
        else:
            position.sums = merge_sums([position.sums, *(other["sums"] for other in others)])
    elif number:
        set_random_state(others[number - 1]["random"])
        position.sums = others[number - 1]["sums"]
    else:
        set_random_state(state["random"])


def split_rows(rows: np.ndarray, accelerator: Accelerator, parts: int) -> list[list[int]]:
    """This process's rows of a batch, in at most `parts` parts, none empty."""
    mine = rows[accelerator.process_index :: accelerator.num_processes]
    split = np.array_split(mine, min(parts, max(len(mine), 1)))
    return [part for part in map(np.ndarray.tolist, split) if part]
