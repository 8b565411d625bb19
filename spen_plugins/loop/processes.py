"""Training in several processes: weights, gradients, random states, rows and decisions."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

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
"""Rows and numbers of the smallest gradient that is searched for rows of zeros; gradients of word vectors have many."""


class ProcessLost(RunError):
    """Another process of a run has ended before this one, or can't be reached any more."""


@contextmanager
def _translate_lost_processes() -> Iterator[None]:
    """Raises `ProcessLost` in place of torch's errors while a process waits for others."""
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
    """Wait until every process has reached this point."""
    with _translate_lost_processes():
        accelerator.wait_for_everyone()


def gather(value: Any, accelerator: Accelerator) -> list[Any]:
    """The values of all processes, the main one's first."""
    values = [value] * accelerator.num_processes
    if accelerator.num_processes > 1:
        with _translate_lost_processes():
            distributed.all_gather_object(values, value)
    return values


def broadcast_weights(model: Model, accelerator: Accelerator) -> None:
    """Copy the main process's weights to every process."""
    if accelerator.num_processes > 1:
        with _translate_lost_processes():
            for parameter in model.parameters():
                distributed.broadcast(parameter.data, 0)


class Requested(NamedTuple):
    """Requests of one process, or of any; numbers, so that they can be sent with gradients."""

    stop: float
    checkpoint: float


class Requests:
    """Requests to stop and to save a checkpoint, on which all processes agree.

    Attributes:
        agreed: for several processes, the requests of any, as of the last update.
    """

    def __init__(self, callbacks: Callbacks, accelerator: Accelerator) -> None:
        self.callbacks, self._is_alone = callbacks, accelerator.num_processes == 1
        self.clear()

    def clear(self) -> None:
        """Start again, after a checkpoint was saved."""
        self._saved_at, self.agreed = time.monotonic(), Requested(False, False)

    def is_due(self) -> bool:
        """True if it is time for a checkpoint in this process."""
        return time.monotonic() - self._saved_at >= self.callbacks.checkpoint_seconds

    def agree(self, stop: float, checkpoint: float) -> None:
        """Set the requests of all processes."""
        self.agreed = Requested(stop, checkpoint)

    def poll(self) -> Requested:
        """The requests of this process."""
        return Requested(self.callbacks.stop(), self.is_due())

    def read(self) -> Requested:
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
        self._buffer = torch.empty(0)  # of the messages: new memory for each would cost more than filling it

    def add_up(self, numbers: Sequence[float]) -> list[float]:
        """Replace every process's gradients by their sum, in one message; a parameter that no process has a gradient
        for still has none.

        If at most half of the rows of a large matrix have a gradient in any process, only these rows are sent; a small
        message beforehand says which.

        Args:
            numbers: small numbers, sent with the gradients.

        Returns:
            The sums of `numbers`.
        """
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        rows = _choose_rows(gradients)
        pieces = [
            gradient if indices is None else gradient[indices]
            for gradient, indices in zip(gradients, rows, strict=True)
        ]
        has_gradient = [parameter.grad is not None for parameter in self.parameters]
        vectors = [*(piece.reshape(-1) for piece in pieces), gradients[0].new_tensor([*has_gradient, *numbers])]
        message = self._join(vectors)
        with _translate_lost_processes():
            distributed.all_reduce(message)
        *sums, last = message.split([len(vector) for vector in vectors])
        counts = last.tolist()
        for i, parameter in enumerate(self.parameters):
            total, indices = sums[i].view_as(pieces[i]).to(parameter.dtype), rows[i]
            gradient = total if indices is None else gradients[i].index_copy_(0, indices, total)
            parameter.grad = gradient if counts[i] else None
        return counts[len(self.parameters) :]

    def _join(self, vectors: Sequence[Tensor]) -> Tensor:
        """These vectors joined into one, in the widest of their precisions."""
        length, dtype = sum(map(len, vectors)), reduce(torch.promote_types, (vector.dtype for vector in vectors))
        if len(self._buffer) < length or self._buffer.dtype != dtype or self._buffer.device != vectors[0].device:
            self._buffer = torch.empty(length, dtype=dtype, device=vectors[0].device)
        return torch.cat(list(vectors), out=self._buffer[:length])


def _choose_rows(gradients: Sequence[Tensor]) -> list[Tensor | None]:
    """The rows to send of each gradient; None: all."""
    least_rows, least_numbers = TABLE
    matrices = {i: matrix for i, matrix in enumerate(gradients) if matrix.ndim == 2}
    tables = {i: table for i, table in matrices.items() if len(table) >= least_rows and table.numel() >= least_numbers}
    rows: list[Tensor | None] = [None] * len(gradients)
    if tables:
        masks = torch.cat([table.amax(1).ne(0) | table.amin(1).ne(0) for table in tables.values()]).to(torch.uint8)
        with _translate_lost_processes():
            distributed.all_reduce(masks, distributed.ReduceOp.MAX)
        for i, mask in zip(tables, masks.split([len(table) for table in tables.values()]), strict=True):
            indices = mask.nonzero().flatten()
            rows[i] = indices if 2 * len(indices) <= len(mask) else None
    return rows


def restore_own(
    state: dict[str, Any], position: Position, seed: int, accelerator: Accelerator, say: Callable[[str], None]
) -> None:
    """Restore the state that differs between processes: random states, and the sums of losses.

    `state` has the main process's state "random", and the states of all "others" that took part.
    """
    process, other_states = accelerator.process_index, state.get("others", [])
    if len(other_states) != accelerator.num_processes - 1:
        saved_count, count = 1 + len(other_states), accelerator.num_processes
        say(f"note: the checkpoint was saved with processes: {saved_count}, now: {count}; random numbers will differ")
        set_random_state(state["random"])
        if process:
            torch.manual_seed(hash((seed, process, position.stage, position.epoch, position.batch)) % 2**63)
            position.sums = {}
        else:
            position.sums = merge_sums([position.sums, *(other["sums"] for other in other_states)])
    elif process:
        set_random_state(other_states[process - 1]["random"])
        position.sums = other_states[process - 1]["sums"]
    else:
        set_random_state(state["random"])


def split_rows(rows: np.ndarray, accelerator: Accelerator, parts: int) -> list[list[int]]:
    """This process's rows of a batch, in at most `parts` parts, none empty."""
    own_rows = rows[accelerator.process_index :: accelerator.num_processes]
    pieces = np.array_split(own_rows, min(parts, max(len(own_rows), 1)))
    return [part for part in map(np.ndarray.tolist, pieces) if part]
