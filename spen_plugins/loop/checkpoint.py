"""Nested training state <-> safetensors and JSON. Nothing here is ever pickled."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from spen_plugins.data.text import sha256
from spen_plugins.errors import RunError
from spen_plugins.files import check_finite, check_kind, make_folder, read_json, read_tensors, save_json, save_tensors
from spen_plugins.model import Model

_OURS = re.compile(r"state(-\d+)?\.(json|safetensors)")
"""Names of the files of a state."""


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
    """The last training state, in a folder: `state-7.json` names the safetensors file that belongs to it.

    A state is on the disk, its tensors first, before an older one is removed, so a complete one exists whenever the
    process or the machine dies. The one before stays until the next is saved, for a disk that loses what it has said to
    have written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._good: set[str] = set()  # names of the files of the last state that was saved or read

    def exists(self) -> bool:
        return bool(self._indices())

    def save(self, state: dict[str, Any], alone: bool = False) -> None:
        """Save a state.

        Args:
            state: nested tables and lists of tensors, numbers and texts.
            alone: if true, the state before is removed.

        Raises:
            RunError: the disk is full or read-only, for example; the state before is whole.
        """
        try:
            make_folder(self.folder)
        except OSError as error:
            raise RunError(f"{self.folder} can't be made: {error.strerror}") from error
        tensors: dict[str, Tensor] = {}
        table = flatten(state, tensors, "state")
        name = f"state-{1 + max(map(_number, self.folder.glob('state-*')), default=0)}"
        file = self.folder / f"{name}.safetensors"
        save_tensors(tensors, file)
        save_json({"tensors": file.name, "sha256": sha256(file), "state": table}, self.folder / f"{name}.json", None)
        new = {file.name, f"{name}.json"}
        for old in self.folder.glob("state*"):
            if _OURS.fullmatch(old.name) and old.name not in (new if alone else new | self._good):
                with suppress(OSError):
                    old.unlink()
        self._good = new

    def load(self, say: Callable[[str], None] = lambda sentence: None) -> dict[str, Any]:
        """The last saved state that can be read, tensors on the CPU.

        Args:
            say: called with a sentence if it is not the last one.

        Raises:
            RunError: there is none, or a tensor has a number that is NaN.
        """
        damaged = []
        for index in self._indices():
            try:
                found = self._read(index)
            except Exception as error:
                damaged.append(f"{index.name}: {error}")
                continue
            if damaged:
                said = f"the last checkpoint in {self.folder} can't be read ({'; '.join(damaged)})"
                say(f"{said}; training goes on from the one before")
            return found
        if not damaged:
            raise RunError(f"{self.folder} has no checkpoint to resume from (state-*.json is missing)")
        raise RunError(
            f"the checkpoint in {self.folder} can't be read: {'; '.join(damaged)}. "
            "Without that folder, resuming trains from the beginning"
        )

    def _indices(self) -> list[Path]:
        """The JSON files, newest first; earlier versions wrote one `state.json`."""
        indices = (path for path in self.folder.glob("state*.json") if _OURS.fullmatch(path.name))
        return sorted(indices, key=_number, reverse=True)

    def _read(self, path: Path) -> dict[str, Any]:
        index = read_json(path, constants=True)
        file = self.folder / Path(index["tensors"]).name
        if "sha256" in index and sha256(file) != index["sha256"]:
            raise ValueError(f"{file.name} is not what was written")
        state = unflatten(index["state"], read_tensors(file, infinite=True)[0])
        self._good = {path.name, file.name}
        return state


def _number(path: Path) -> int:
    """The number in the name of a state's file; 0 without one."""
    found = re.match(r"state-(\d+)\.", path.name)
    return int(found[1]) if found else 0


def put_weights(model: Model, tensors: dict[str, Tensor]) -> None:
    """Copy a checkpoint's tensors into a model; a `ValueError` if one is of another kind, or infinite where the model's
    own is not."""
    for name, wanted in model.state_dict().items():
        if name in tensors and tensors[name].shape == wanted.shape:  # others are an error of what loads them
            check_kind(name, tensors[name], wanted)
            check_finite(name, tensors[name], wanted)
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
