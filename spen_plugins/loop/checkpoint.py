"""Nested training state <-> safetensors and JSON. Nothing here is ever pickled."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from spen_plugins.errors import RunError
from spen_plugins.files import check_kind, read_json, read_tensors, save_json, save_tensors
from spen_plugins.model import Model


def flatten(value: Any, tensors: dict[str, Tensor], name: str = "") -> Any:
    """JSON for `value`, with its tensors put into `tensors` under dotted names, shared ones once."""
    if isinstance(value, Tensor):
        same = (other for other, tensor in tensors.items() if _same_storage(tensor, value))
        name = next(same, name) if value.numel() else name
        tensors[name] = value
        return {"$tensor": name}
    if isinstance(value, dict):
        return {"$table": [[key, flatten(item, tensors, f"{name}.{key}")] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return [flatten(item, tensors, f"{name}.{i}") for i, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):  # the best score before the first one; no JSON
        return {"$number": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"training state {name!r} holds a {type(value).__name__}, which can't be saved")


def _same_storage(a: Tensor, b: Tensor) -> bool:
    return a.data_ptr() == b.data_ptr() and a.shape == b.shape and a.dtype == b.dtype and a.stride() == b.stride()


def unflatten(value: Any, tensors: dict[str, Tensor]) -> Any:
    """The inverse of `flatten` (tuples come back as lists)."""
    if isinstance(value, dict):
        if "$tensor" in value:
            return tensors[value["$tensor"]]
        if "$number" in value:
            return float(value["$number"])
        return {key: unflatten(item, tensors) for key, item in value["$table"]}
    if isinstance(value, list):
        return [unflatten(item, tensors) for item in value]
    return value


class Checkpoint:
    """The last training state, in a folder: `state.json` names the safetensors file that belongs to it.

    The tensors are written first and the small JSON replaces the old one last, so a complete checkpoint exists whenever
    the process dies.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index = folder / "state.json"

    def exists(self) -> bool:
        return self._index.exists()

    def save(self, state: dict[str, Any]) -> None:
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise RunError(f"{self.folder} can't be made: {error.strerror}") from error
        tensors: dict[str, Tensor] = {}
        table = flatten(state, tensors, "state")
        number = self._number() + 1
        save_tensors(tensors, self.folder / f"state-{number}.safetensors")
        save_json({"tensors": f"state-{number}.safetensors", "number": number, "state": table}, self._index, None)
        for old in self.folder.glob("state-*.safetensors*"):
            if old.name != f"state-{number}.safetensors":
                old.unlink()

    def load(self) -> dict[str, Any]:
        """The saved state, tensors on the CPU.

        Raises:
            RunError: it is missing or can't be read, or a tensor has a number that is NaN or infinite.
        """
        try:
            index = read_json(self._index, constants=True)
            return unflatten(index["state"], read_tensors(self.folder / Path(index["tensors"]).name)[0])
        except FileNotFoundError as error:
            raise RunError(f"{self.folder} has no checkpoint to resume from ({error.filename} is missing)") from error
        except RunError:
            raise
        except Exception as error:
            raise RunError(f"the checkpoint in {self.folder} can't be read: {error}") from error

    def _number(self) -> int:
        return int(read_json(self._index, constants=True)["number"]) if self.exists() else 0


def put_weights(model: Model, tensors: dict[str, Tensor]) -> None:
    """Copy a checkpoint's tensors into a model; a `ValueError` if one is of another kind."""
    for name, wanted in model.state_dict().items():
        if name in tensors:
            check_kind(name, tensors[name], wanted)
    model.load_state_dict(tensors)


def put_phases(state: dict[str, Any], phases: Iterable[Any], scaler: Any, folder: Path) -> None:
    """Give phases, and the scaler of half precision, what a checkpoint has for them; `RunError` as `fitting`."""
    with fitting(folder):
        if state["scaler"] and scaler is not None:
            scaler.load_state_dict(state["scaler"])
        for active in phases:
            if active.phase.name in state["phases"]:
                active.load_state_dict(state["phases"][active.phase.name])


@contextmanager
def fitting(folder: Path) -> Iterator[None]:
    """What Python and torch raise for a state that isn't this run's, as a `RunError`."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as error:
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]:.200}"
        raise RunError(f"the checkpoint in {folder} doesn't fit this run ({reason})") from error


class Store(Protocol):
    """The loop's interface of a run folder."""

    path: Path
    checkpoint: Checkpoint

    def save_weights(self, model: Model) -> None: ...

    def load_weights(self, model: Model) -> None: ...

    def append_history(self, record: dict[str, Any], seconds: float) -> None: ...

    def truncate_history(self, lines: int) -> None: ...
