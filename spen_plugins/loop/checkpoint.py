"""Nested training state <-> safetensors and JSON. Nothing here is ever pickled."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from torch import Tensor

from spen_plugins.data.text import sha256
from spen_plugins.errors import RunError
from spen_plugins.files import make_folder, read_json, read_tensors, save_json, save_tensors

_NAME = re.compile(r"state-(\d+)\.(json|safetensors)")
"""Names of the files of a state, with its number."""


def flatten(value: Any, tensors: dict[str, Tensor], name: str = "") -> Any:
    """JSON for `value`, with its tensors put into `tensors` under dotted names, shared ones once."""
    if isinstance(value, Tensor):
        shared_names = (other for other, tensor in tensors.items() if _share_storage(tensor, value))
        name = next(shared_names, name) if value.numel() else name
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


def _share_storage(a: Tensor, b: Tensor) -> bool:
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

    A state is on the disk, its tensors first, before an older one is removed, so a complete state exists whenever the
    process or the machine dies. The previous state stays until the next is saved, in case the disk loses data that it
    reported as written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._good_number = 0  # number of the last state that was saved or read

    def exists(self) -> bool:
        return bool(self._find_indices())

    def save(self, state: dict[str, Any], removes_previous: bool = False) -> None:
        """Save a state.

        Args:
            state: nested tables and lists of tensors, numbers and texts.
            removes_previous: if true, the previous state is removed.

        Raises:
            RunError: the disk is full or read-only, for example; the previous state stays complete.
        """
        try:
            make_folder(self.folder)
        except OSError as error:
            raise RunError(f"{self.folder} can't be created: {error.strerror}") from error
        tensors: dict[str, Tensor] = {}
        table = flatten(state, tensors, "state")
        paths = self._find_paths()
        number = 1 + max(paths.values(), default=0)
        file = self.folder / f"state-{number}.safetensors"
        save_tensors(tensors, file)
        save_json({"tensors": file.name, "sha256": sha256(file), "state": table}, file.with_suffix(".json"), None)
        for path, other_number in paths.items():
            if removes_previous or other_number != self._good_number:
                with suppress(OSError):
                    path.unlink()
        self._good_number = number

    def load(self, say: Callable[[str], None] = lambda sentence: None) -> dict[str, Any]:
        """The last saved state that can be read, tensors on the CPU.

        Args:
            say: called with a sentence if it is not the last saved state.

        Raises:
            RunError: no state can be read, or a tensor has a number that is NaN.
        """
        problems = []
        for index in self._find_indices():
            try:
                state = self._read(index)
            except Exception as error:  # whatever a library raises for a damaged file
                problems.append(f"{index.name}: {error}")
                continue
            if problems:
                reason = f"the last checkpoint in {self.folder} can't be read ({'; '.join(problems)})"
                say(f"{reason}; resuming from the previous one")
            return state
        raise RunError(
            f"the checkpoint in {self.folder} can't be read ({'; '.join(problems) or 'no state-*.json'}). "
            "To train from the beginning, remove that folder and resume"
        )

    def _find_paths(self) -> dict[Path, int]:
        """The files of all states and their numbers."""
        matches = ((path, _NAME.fullmatch(path.name)) for path in self.folder.glob("state-*"))
        return {path: int(match[1]) for path, match in matches if match}

    def _find_indices(self) -> list[Path]:
        """The JSON files, newest first."""
        paths = self._find_paths()
        return sorted((path for path in paths if path.suffix == ".json"), key=paths.__getitem__, reverse=True)

    def _read(self, path: Path) -> dict[str, Any]:
        index, file = read_json(path), path.with_suffix(".safetensors")
        if sha256(file) != index["sha256"]:
            raise ValueError(f"{file.name} does not match its checksum")
        state = unflatten(index["state"], read_tensors(file, infinite=True)[0])
        self._good_number = self._find_paths()[path]
        return state


def put_phases(state: dict[str, Any], phases: Iterable[Any], scaler: Any, folder: Path) -> None:
    """Restore phases, and the scaler of half precision, from a checkpoint; raises a `RunError` if it misfits."""
    with translate_misfits(folder):
        if state["scaler"] and scaler is not None:
            scaler.load_state_dict(state["scaler"])
        for active in phases:
            if active.phase.name in state["phases"]:
                active.load_state_dict(state["phases"][active.phase.name])


def translate_misfits(folder: Path) -> AbstractContextManager[None]:
    """Raises a `RunError` in place of the errors that a state of another run causes."""
    return translate_damage(f"the checkpoint in {folder} doesn't fit this run")


@contextmanager
def translate_damage(problem: str) -> Iterator[None]:
    """Raises a `RunError` in place of the errors of Python and torch for content that no run of this config has."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise RunError(f"{problem}: {type(error).__name__}: {reason:.200}") from error
