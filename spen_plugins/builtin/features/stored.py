"""States of an encoder's frozen layers, computed once for each input."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from spen_plugins.builtin.features.reading import Reading
from spen_plugins.data.text import shorten
from spen_plugins.errors import ConfigError

ENTRY = 500
"""Approximate number of bytes that an entry of a store takes besides its numbers."""


@dataclass
class Stored:
    """Vectors by their inputs, in main memory, up to a maximal size. A copy is empty.

    Args:
        gib: the maximal size, in GiB; later vectors are computed each time.
    """

    gib: float
    _states: dict[bytes, Tensor] = field(default_factory=dict)
    _bytes_left: float = field(init=False)
    _has_warned: bool = False

    def __post_init__(self) -> None:
        self._bytes_left = self.gib * 2**30

    def __reduce__(self) -> tuple[Any, ...]:
        return Stored, (self.gib,)

    def __bool__(self) -> bool:
        return bool(self._states)

    def clear(self) -> None:
        self._states.clear()
        self.__post_init__()

    def compute(self, batch: Reading, compute: Callable[[Reading], Tensor], kind: str = "") -> list[Tensor]:
        """The result of `compute` for each example by itself, without gradient; `kind` distinguishes the results of
        tasks that share an encoder.

        Examples are computed one at a time, in full precision whatever the batch's is: a vector doesn't depend on the
        batch that first needs it, so a resumed run has the same vectors.
        """
        return [self._compute_one(batch.example(i), compute, kind.encode()) for i in range(len(batch.ids))]

    def _compute_one(self, example: Reading, compute: Callable[[Reading], Tensor], kind: bytes) -> Tensor:
        tensors = [example.ids, example.owner, example.first, *example.marks.values()]
        sizes = [example.windows.shape[1], *(values.shape[1] for values in tensors)]
        key = b"%s %s " % (kind, str(sizes).encode()) + torch.cat(tensors, 1).cpu().numpy().tobytes()
        if key not in self._states:
            with torch.no_grad(), torch.autocast(example.ids.device.type, enabled=False):
                states = compute(example).cpu()
            size = states.nbytes + len(key) + ENTRY
            if size > self._bytes_left:
                self._warn_full()
                return states.to(example.ids.device)
            self._bytes_left -= size
            self._states[key] = states
        return self._states[key].to(example.ids.device)

    def _warn_full(self) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        warnings.warn(
            f"features.store_gib={self.gib:g} is full with {len(self._states):,} inputs; the others are encoded one by "
            "one each time, which is slower than features.store_gib=0: increase it if there is enough main memory",
            stacklevel=2,
        )


class _ReachedError(Exception):
    """Ends an encoder's forward at a layer, with the layer's states."""


def compute_states(encoder: nn.Module, layers: Sequence[nn.Module], inputs: Mapping[str, Tensor]) -> Tensor:
    """The output of the last of `layers`, the encoder's lowest: states `(row, piece, dim)`."""

    def stop(module: nn.Module, args: Any, output: Any) -> None:
        raise _ReachedError(output if isinstance(output, Tensor) else output[0])

    hook = layers[-1].register_forward_hook(stop)
    try:
        encoder(**inputs)
    except _ReachedError as reached:
        return reached.args[0]
    finally:
        hook.remove()
    raise AssertionError("an encoder's forward calls its layers")


@contextmanager
def replace_states(layers: Sequence[nn.Module], states: Tensor, others: int | None) -> Iterator[None]:
    """Makes these layers return `states` within the context, whatever their inputs are.

    Args:
        others: as `check_upper` returns it.
    """
    output = states if others is None else (states, *[None] * others)
    for layer in layers:
        layer.forward = lambda *_, **__: output
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def check_upper(
    encoder: nn.Module, frozen: Sequence[nn.Module], layers: Sequence[nn.Module], ids: Tensor
) -> int | None:
    """Checks that the states of frozen layers can be stored; returns the number of outputs of a layer besides its
    states, or None if it returns the states alone and not in a tuple.

    Args:
        frozen: all frozen modules, which have no dropout in training.
        layers: the layers among them, the lowest first.
        ids: `(1, piece)` pieces of a sentence.

    Raises:
        ConfigError: the states change in training, or the upper layers take more from the lower ones than their states.
    """
    others: list[int | None] = []

    def count_others(module: nn.Module, args: Any, output: Any) -> None:
        others.append(None if isinstance(output, Tensor) else len(output) - 1)

    hook = layers[-1].register_forward_hook(count_others)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    training = encoder.training
    try:
        _check_steady(encoder, frozen, layers, inputs)
        encoder.eval()
        with torch.no_grad():
            expected = encoder(**inputs).last_hidden_state
            with replace_states(layers, compute_states(encoder, layers, inputs), others[-1]):
                actual = encoder(**inputs).last_hidden_state
        reason = None if torch.allclose(expected, actual, atol=1e-4) else "the vectors differ"
    except (TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
        reason = str(error)
    finally:
        hook.remove()
        encoder.train(training)
    if reason:
        kind = f"the upper layers of {encoder.config.model_type!r}"
        raise _describe_unfit(f"{kind} depend on more than the vectors of the lower ones ({shorten(reason, 100)})")
    return others[-1]


def _check_steady(
    encoder: nn.Module, frozen: Sequence[nn.Module], layers: Sequence[nn.Module], inputs: Mapping[str, Tensor]
) -> None:
    """Checks that in training the layers return the same states each time, from weights that aren't trained."""
    encoder.train()
    for module in frozen:
        module.eval()
    first, second = (compute_states(encoder, layers, inputs) for _ in range(2))
    kind = encoder.config.model_type
    if first.shape[:2] != inputs["input_ids"].shape:
        raise _describe_unfit(f"{kind!r} pads its own inputs")
    if first.requires_grad or not torch.equal(first, second):
        raise _describe_unfit(f"the states of the frozen layers of {kind!r} change in training")


def _describe_unfit(reason: str) -> ConfigError:
    return ConfigError(f"features.store_gib: {reason}; expected frozen='all', or store_gib 0")
