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
"""Maximal number of word pieces whose vectors are kept."""
NEEDED = {"input_ids", "attention_mask"}
INPUTS = NEEDED | {"token_type_ids"}
"""Inputs of an encoder for vectors of pieces; with any other input, nothing is kept."""


class SharedEncoder:
    """An encoder of several users, which are runs, with the vectors of the inputs that it has read in this round.

    Every user predicts once for a batch of docs. A user that predicts again begins the next batch, and a new round;
    after the last user's turn, no vectors are kept. The keys of vectors are the encoder's inputs, so that vectors are
    always right, up to rounding: in another batch the encoder's sums have other lengths.
    """

    def __init__(self, network: sp.FeatureNetwork, device: str) -> None:
        self.network = network
        self.device = device
        self.users: WeakSet[Any] = WeakSet()
        self._served: WeakSet[Any] = WeakSet()
        self._vectors: dict[bytes, Tensor] = {}
        self._pieces = 0
        self._is_active = False
        encoder: Any = network.shared_part()
        self._read = encoder.forward
        encoder.forward = self._forward  # not a wrapper, which would change the weights' names

    @contextmanager
    def turn(self, user: Any) -> Iterator[None]:
        """The turn of a user, which predicts for a batch."""
        if user in self._served:
            self.forget()
        self._served.add(user)
        self._is_active = len(self.users) > 1
        try:
            yield
        finally:
            self._is_active = False
            if len(self._served) == len(self.users):
                self.forget()

    def forget(self) -> None:
        """Drops all vectors, and begins the next round."""
        self._vectors, self._pieces = {}, 0
        self._served.clear()

    def _forward(self, *args: Any, **inputs: Any) -> Any:
        if args or not self._is_active or not NEEDED <= inputs.keys() <= INPUTS or torch.is_grad_enabled():
            return self._read(*args, **inputs)
        lengths = inputs["attention_mask"].sum(1).tolist()
        keys = _make_keys(inputs, lengths)
        states_by_key = {key: self._vectors[key] for key in keys if key in self._vectors}
        new_rows = {key: row for row, key in enumerate(keys) if key not in states_by_key}
        if new_rows:
            rows, width = list(new_rows.values()), max(lengths[row] for row in new_rows.values())
            states = self._read(**{name: value[rows, :width] for name, value in inputs.items()}).last_hidden_state
            for (key, row), vectors in zip(new_rows.items(), states, strict=True):
                states_by_key[key] = vectors[: lengths[row]]
            self._keep({key: states_by_key[key] for key in new_rows})
        example = next(iter(states_by_key.values()))
        states = example.new_zeros(*inputs["input_ids"].shape, example.shape[-1])
        for row, key in enumerate(keys):
            states[row, : lengths[row]] = states_by_key[key]
        return SimpleNamespace(last_hidden_state=states)

    def _keep(self, vectors: dict[bytes, Tensor]) -> None:
        for key, value in vectors.items():
            if self._pieces + len(value) <= PIECES:
                self._vectors[key] = value.clone()  # without the padding
                self._pieces += len(value)


_SHARED: WeakSet[SharedEncoder] = WeakSet()
_LOCK = Lock()


def join(user: Any, model: nn.Module, device: str) -> list[SharedEncoder]:
    """The encoders of a model. An equal encoder that is in use already takes the place of the model's own, and equal
    encoders in the model become one. The user, which predicts with the model, isn't kept alive."""
    joined: list[SharedEncoder] = []
    for network in [part for part in model.modules() if isinstance(part, sp.FeatureNetwork)]:
        if network.shared_part() is None:
            continue
        with _LOCK:
            shared = next(
                (encoder for encoder in _SHARED if encoder.device == device and _are_equal(encoder.network, network)),
                None,
            )
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


def _make_keys(inputs: dict[str, Tensor], lengths: Sequence[int]) -> list[bytes]:
    """The encoder's input in each row, without padding, and its precision."""
    ids = inputs["input_ids"]
    types = inputs.get("token_type_ids", torch.zeros_like(ids))
    rows = torch.stack([ids, types], 1).cpu().numpy()
    half = b"half" if torch.is_autocast_enabled(ids.device.type) else b""
    return [half + row[:, :length].tobytes() for row, length in zip(rows, lengths, strict=True)]


def _are_equal(network: sp.FeatureNetwork, other: sp.FeatureNetwork) -> bool:
    """True for networks of one class whose encoders have the same architecture, weights and precision."""
    if _describe(network) != _describe(other):
        return False
    state, other_state = network.shared_part().state_dict(), other.shared_part().state_dict()
    return state.keys() == other_state.keys() and all(
        tensor.dtype == other_state[name].dtype and torch.equal(tensor, other_state[name])
        for name, tensor in state.items()
    )


def _describe(network: sp.FeatureNetwork) -> str:
    encoder = network.shared_part()
    config = getattr(encoder, "config", None)
    architecture = {} if config is None else {k: v for k, v in config.to_dict().items() if k != "_name_or_path"}
    options = {key: getattr(network.config, key) for key in network.shareable if key != "model"}
    return json.dumps([repr(type(network)), architecture, options, repr(encoder)], sort_keys=True, default=repr)
