"""Runs that hold an equal pretrained encoder keep one copy of it, and read a sentence of a batch once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Lock
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn

import spen_plugins as sp

PIECES = 50_000
"""Most word pieces whose vectors are kept."""
NEEDED = {"input_ids", "attention_mask"}
INPUTS = NEEDED | {"token_type_ids"}
"""Inputs of an encoder that is asked for vectors of pieces; with any other, nothing is remembered."""


class SharedEncoder:
    """An encoder of several users, runs, with the vectors of what it has read in this round.

    Every user predicts once for a batch of docs. One that predicts again begins the next batch, a new round; after the
    last user's turn nothing is kept. Vectors are found by the encoder's very inputs, so that they are right in any
    case, to rounding: in another batch the encoder's sums are of other lengths.
    """

    def __init__(self, network: sp.FeatureNetwork, device: str) -> None:
        self.network = network
        self.device = device
        self.users: WeakSet[Any] = WeakSet()
        self._served: WeakSet[Any] = WeakSet()
        self._vectors: dict[bytes, Tensor] = {}
        self._pieces = 0
        self._turn = False
        encoder: Any = network.shared_part()
        self._read = encoder.forward
        encoder.forward = self._forward  # not a wrapper, which would change the weights' names

    @contextmanager
    def turn(self, user: Any) -> Iterator[None]:
        """A user predicts for a batch."""
        if user in self._served:
            self.forget()
        self._served.add(user)
        self._turn = len(self.users) > 1
        try:
            yield
        finally:
            self._turn = False
            if len(self._served) == len(self.users):
                self.forget()

    def forget(self) -> None:
        """Drop all vectors; the next round begins."""
        self._vectors, self._pieces = {}, 0
        self._served.clear()

    def _forward(self, *args: Any, **inputs: Any) -> Any:
        if args or not self._turn or not NEEDED <= inputs.keys() <= INPUTS or torch.is_grad_enabled():
            return self._read(*args, **inputs)
        lengths = inputs["attention_mask"].sum(1).tolist()
        keys = _keys(inputs, lengths)
        known = {key: self._vectors[key] for key in keys if key in self._vectors}
        new = {key: row for row, key in enumerate(keys) if key not in known}
        if new:
            rows, width = list(new.values()), max(lengths[row] for row in new.values())
            states = self._read(**{name: value[rows, :width] for name, value in inputs.items()}).last_hidden_state
            for (key, row), vectors in zip(new.items(), states, strict=True):
                known[key] = vectors[: lengths[row]]
            self._keep({key: known[key] for key in new})
        first = next(iter(known.values()))
        states = first.new_zeros(*inputs["input_ids"].shape, first.shape[-1])
        for row, key in enumerate(keys):
            states[row, : lengths[row]] = known[key]
        return SimpleNamespace(last_hidden_state=states)

    def _keep(self, vectors: dict[bytes, Tensor]) -> None:
        for key, value in vectors.items():
            if self._pieces + len(value) <= PIECES:
                self._vectors[key] = value.clone()  # without the padding
                self._pieces += len(value)


_SHARED: WeakSet[SharedEncoder] = WeakSet()
_LOCK = Lock()


def join(user: Any, model: nn.Module, device: str) -> list[SharedEncoder]:
    """The encoders of a model, each in place of its own the equal one that is in use already, if there is one; of equal
    encoders in it one is shared. The user, who predicts with the model, isn't kept alive."""
    joined: list[SharedEncoder] = []
    for network in [part for part in model.modules() if isinstance(part, sp.FeatureNetwork)]:
        if network.shared_part() is None:
            continue
        with _LOCK:
            shared = next((one for one in _SHARED if one.device == device and _are_equal(one.network, network)), None)
            if shared in joined:
                continue
            if shared is None:
                shared = SharedEncoder(network, device)
                _SHARED.add(shared)
            else:
                network.share(shared.network)
        shared.users.add(user)
        joined.append(shared)
    return joined


@contextmanager
def turns(encoders: Sequence[SharedEncoder], user: Any) -> Iterator[None]:
    """A user's turn with all of its encoders."""
    with ExitStack() as stack:
        for encoder in encoders:
            stack.enter_context(encoder.turn(user))
        yield


def _keys(inputs: dict[str, Tensor], lengths: Sequence[int]) -> list[bytes]:
    """The encoder's input in each row, without padding, and its precision."""
    ids = inputs["input_ids"]
    types = inputs.get("token_type_ids", torch.zeros_like(ids))
    rows = torch.stack([ids, types], 1).cpu().numpy()
    half = b"half" if torch.is_autocast_enabled(ids.device.type) else b""
    return [half + row[:, :length].tobytes() for row, length in zip(rows, lengths, strict=True)]


def _are_equal(some: sp.FeatureNetwork, other: sp.FeatureNetwork) -> bool:
    """True for networks of one class whose encoders have the same architecture, weights and precision."""
    if _describe(some) != _describe(other):
        return False
    ours, theirs = some.shared_part().state_dict(), other.shared_part().state_dict()
    return ours.keys() == theirs.keys() and all(
        tensor.dtype == theirs[name].dtype and torch.equal(tensor, theirs[name]) for name, tensor in ours.items()
    )


def _describe(network: sp.FeatureNetwork) -> str:
    encoder = network.shared_part()
    settings = getattr(encoder, "config", None)
    table = {} if settings is None else {k: v for k, v in settings.to_dict().items() if k != "_name_or_path"}
    own = {key: getattr(network.config, key) for key in network.shareable if key != "model"}
    return json.dumps([repr(type(network)), table, own, repr(encoder)], sort_keys=True, default=repr)
