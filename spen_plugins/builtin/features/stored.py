"""What the frozen layers of an encoder say of each input, computed once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from spen_plugins.data.text import shorten
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


ENTRY = 500
"""Bytes that an entry of a store takes besides its numbers, about."""


@dataclass
class Stored:
    """Vectors by what they are of, in main memory, until it is full. A copy of it is empty.

    Args:
        gib: most of them, in GiB; what comes later is computed each time.
    """

    gib: float
    _found: dict[bytes, Tensor] = field(default_factory=dict)
    _left: float = field(init=False)
    _said: bool = False

    def __post_init__(self) -> None:
        self._left = self.gib * 2**30

    def __reduce__(self) -> tuple[Any, ...]:
        return Stored, (self.gib,)

    def __bool__(self) -> bool:
        return bool(self._found)

    def clear(self) -> None:
        self._found.clear()
        self.__post_init__()

    def of(self, batch: Reading, compute: Callable[[Reading], Tensor], kind: str = "") -> list[Tensor]:
        """What `compute` has for each example by itself, without gradient; `kind` tells apart what tasks that share an
        encoder compute.

        Examples are computed one at a time, in full precision whatever the batch is in: a vector doesn't depend on what
        asked for it, so a resumed run has the same.
        """
        return [self._of(batch.one(i), compute, kind.encode()) for i in range(len(batch.ids))]

    def _of(self, one: Reading, compute: Callable[[Reading], Tensor], kind: bytes) -> Tensor:
        read = [one.ids, one.owner, one.first, *one.marks.values()]
        sizes = [one.windows.shape[1], *(values.shape[1] for values in read)]
        key = b"%s %s " % (kind, str(sizes).encode()) + torch.cat(read, 1).cpu().numpy().tobytes()
        if key not in self._found:
            with torch.no_grad(), torch.autocast(one.ids.device.type, enabled=False):
                found = compute(one).cpu()
            size = found.nbytes + len(key) + ENTRY
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
def replaced(layers: Sequence[nn.Module], states: Tensor, others: int | None) -> Iterator[None]:
    """Within it, these layers have `states` to say, whatever they see.

    Args:
        others: as `check_upper`.
    """
    said = states if others is None else (states, *[None] * others)
    for layer in layers:
        layer.forward = lambda *_, **__: said
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def check_upper(
    encoder: nn.Module, frozen: Sequence[nn.Module], layers: Sequence[nn.Module], ids: Tensor
) -> int | None:
    """Check that the states of frozen layers can be stored; how many other things a layer returns beside its states, in
    a tuple, or None if it returns these alone.

    Args:
        frozen: all modules that are, which have no dropout in training.
        layers: those of them that are layers, the lowest first.
        ids: `(1, piece)` pieces of a sentence.

    Raises:
        ConfigError: what the layers say changes in training, or the upper ones take more from them than their states.
    """
    found: list[int | None] = []

    def look(module: nn.Module, args: Any, output: Any) -> None:
        found.append(None if isinstance(output, Tensor) else len(output) - 1)

    hook = layers[-1].register_forward_hook(look)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    training = encoder.training
    try:
        _check_steady(encoder, frozen, layers, inputs)
        encoder.eval()
        with torch.no_grad():
            whole = encoder(**inputs).last_hidden_state
            with replaced(layers, states_of(encoder, layers, inputs), found[-1]):
                again = encoder(**inputs).last_hidden_state
        reason = None if torch.allclose(whole, again, atol=1e-4) else "other vectors come out"
    except (TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
        reason = str(error)
    finally:
        hook.remove()
        encoder.train(training)
    if reason:
        kind = f"the upper layers of {encoder.config.model_type!r}"
        raise _unfit(f"{kind} take more from the lower ones than their vectors ({shorten(reason, 100)})")
    return found[-1]


def _check_steady(
    encoder: nn.Module, frozen: Sequence[nn.Module], layers: Sequence[nn.Module], inputs: Mapping[str, Tensor]
) -> None:
    """Check that in training the layers say the same each time, by weights that aren't trained."""
    encoder.train()
    for module in frozen:
        module.eval()
    first, second = (states_of(encoder, layers, inputs) for _ in range(2))
    kind = encoder.config.model_type
    if first.shape[:2] != inputs["input_ids"].shape:
        raise _unfit(f"{kind!r} pads its inputs by itself")
    if first.requires_grad or not torch.equal(first, second):
        raise _unfit(f"what the frozen layers of {kind!r} say changes in training, by weights or dropout below them")


def _unfit(why: str) -> ConfigError:
    return ConfigError(f"features.store_gib: {why}; expected frozen='all', or store_gib 0")
