"""What the frozen layers of an encoder say of each input, computed once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from spen_plugins.errors import ConfigError


@dataclass(frozen=True)
class Reading:
    """A batch as an encoder reads it: in word pieces, one or more windows to an example.

    Args:
        ids: `(batch, window * piece)` ids of pieces.
        owner: `(batch, window * piece)` word of each piece, -1 of special ones, -2 of padding.
        first: `(batch, token)` first piece of each word, -1 on padding.
        windows: `(batch, window)`, 1 for those that exist.
        marks: by name, `(batch, window * piece)`.
    """

    ids: Tensor
    owner: Tensor
    first: Tensor
    windows: Tensor
    marks: Mapping[str, Tensor]

    @property
    def width(self) -> int:
        """Pieces of a window, with padding."""
        return self.ids.shape[1] // self.windows.shape[1]

    def rows(self, values: Tensor) -> Tensor:
        """`(batch, window * piece, …)` -> `(row, piece, …)`, a row for each window that exists."""
        if self.windows.shape[1] == 1:
            return values
        return values.reshape(-1, self.width, *values.shape[2:])[self.windows.flatten() > 0]

    def together(self, states: Tensor) -> Tensor:
        """Vectors of the rows, `(row, piece, dim)` -> `(batch, window * piece, dim)`, 0 where there is no window."""
        if self.windows.shape[1] == 1:
            return states
        there = self.windows.flatten() > 0
        full = states.new_zeros(len(there), self.width, states.shape[-1])
        return full.index_put((there.nonzero()[:, 0],), states).reshape(len(self.ids), -1, states.shape[-1])

    def one(self, i: int) -> Reading:
        """Example `i` by itself, without padding."""
        there = self.owner[i] > -2
        count = int(self.windows[i].sum())
        own = int(there.sum()) // count
        first = self.first[i][self.first[i] >= 0]
        return Reading(
            self.ids[i][there][None],
            self.owner[i][there][None],
            (first // self.width * own + first % self.width)[None],
            self.windows[i][None, :count],
            {name: values[i][there][None] for name, values in self.marks.items()},
        )


@dataclass
class Stored:
    """Vectors by what they are of, in main memory, until it is full.

    Args:
        gib: most of them, in GiB; what comes later is computed each time.
    """

    gib: float
    _found: dict[bytes, Tensor] = field(default_factory=dict)
    _left: float = field(init=False)
    _said: bool = False

    def __post_init__(self) -> None:
        self._left = self.gib * 2**30

    def of(self, batch: Reading, compute: Callable[[Reading], Tensor], kind: str = "") -> list[Tensor]:
        """What `compute` has for each example by itself, without gradient; `kind` tells apart what tasks that share an
        encoder compute.

        Examples are computed one at a time: a vector doesn't depend on its batch, so a resumed run has the same.
        """
        return [self._of(batch.one(i), compute, kind.encode()) for i in range(len(batch.ids))]

    def _of(self, one: Reading, compute: Callable[[Reading], Tensor], kind: bytes) -> Tensor:
        key = kind + torch.cat([one.ids, one.owner, *one.marks.values()], 1).cpu().numpy().tobytes()
        if key not in self._found:
            with torch.no_grad():
                found = compute(one).cpu()
            size = found.nbytes + len(key)
            if size > self._left:
                self._say_full()
                return found.to(one.ids.device)
            self._left -= size
            self._found[key] = found
        return self._found[key].to(one.ids.device)

    def _say_full(self) -> None:
        if self._said:
            return
        self._said = True
        warnings.warn(
            f"features.store_gib={self.gib:g} is full with {len(self._found):,} inputs; the others are read by "
            "themselves each time, which is slower than features.store_gib=0: give it more, if main memory has it",
            stacklevel=2,
        )


class _ReachedError(Exception):
    """The states of the layer that was waited for."""


def states_of(encoder: nn.Module, layers: Sequence[nn.Module], inputs: Mapping[str, Tensor]) -> Tensor:
    """The states, `(row, piece, dim)`, that come out of the last of `layers`, the encoder's lowest."""

    def stop(module: nn.Module, args: Any, found: Any) -> None:
        raise _ReachedError(found if isinstance(found, Tensor) else found[0])

    hook = layers[-1].register_forward_hook(stop)
    try:
        encoder(**inputs)
    except _ReachedError as reached:
        return reached.args[0]
    finally:
        hook.remove()
    raise AssertionError("an encoder's forward calls its layers")


@contextmanager
def replaced(layers: Sequence[nn.Module], states: Tensor, alone: bool) -> Iterator[None]:
    """Within it, these layers have `states` to say, whatever they see.

    Args:
        alone: whether a layer of this encoder returns its states alone, and not in a tuple.
    """
    for layer in layers:
        layer.forward = lambda *_, **__: states if alone else (states,)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def returns_alone(encoder: nn.Module, layers: Sequence[nn.Module], ids: Tensor) -> bool:
    """Whether the layers return their states alone, and not in a tuple.

    Args:
        ids: `(1, piece)` pieces of a sentence.

    Raises:
        ConfigError: the encoder's upper layers take more from the lower ones than their states.
    """
    found: list[bool] = []
    hook = layers[-1].register_forward_hook(lambda module, args, output: found.append(isinstance(output, Tensor)))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    training = encoder.training
    encoder.eval()
    try:
        with torch.no_grad():
            whole = encoder(**inputs).last_hidden_state
            with replaced(layers, states_of(encoder, layers, inputs), found[0]):
                again = encoder(**inputs).last_hidden_state
        same = torch.allclose(whole, again, atol=1e-4)
    except (TypeError, ValueError, IndexError, AttributeError, RuntimeError):
        same = False
    finally:
        hook.remove()
        encoder.train(training)
    if not same:
        raise ConfigError(
            f"features.store_gib: the upper layers of {encoder.config.model_type!r} take more from the lower ones than "
            "their vectors; expected frozen='all', or store_gib 0"
        )
    return found[0]
