"""Nested training state <-> safetensors and JSON, and the random states. Nothing here is ever pickled."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import Tensor

from spen_plugins.errors import ConfigError, RunError


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary name to write to, renamed to `path` if all goes well and removed if not.

    Raises:
        RunError: the disk is full, read-only, or the like.
    """
    temporary = path.with_name(path.name + ".partial")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise RunError(
            f"{path} can't be written: {error.strerror or error}; what stood there before is whole"
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def save_tensors(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write safetensors under a temporary name, then rename.

    Raises:
        RunError: the file can't be written.
    """
    # Not `save_file`, which makes a file that only its owner can read.
    data = save({name: value.detach().cpu().contiguous() for name, value in tensors.items()}, metadata)
    with writing(path) as temporary:
        temporary.write_bytes(data)


def save_json(value: Any, path: Path, indent: int | None = 2) -> None:
    """Write JSON under a temporary name, then rename.

    Raises:
        RunError: the file can't be written.
    """
    with writing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=indent, ensure_ascii=False) + "\n", encoding="utf-8")


def save_text(text: str, path: Path) -> None:
    """Write a text under a temporary name, then rename; its folder is made.

    Raises:
        RunError: the file can't be written.
    """
    with writing(path) as temporary:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")


def flatten(value: Any, tensors: dict[str, Tensor], name: str = "") -> Any:
    """JSON for `value`, its tensors put into `tensors` under dotted names; one that is shared, once."""
    if isinstance(value, Tensor):
        same = (other for other, tensor in tensors.items() if _same_storage(tensor, value))
        name = next(same, name) if value.numel() else name
        tensors[name] = value
        return {"$tensor": name}
    if isinstance(value, dict):
        return {"$table": [[key, flatten(item, tensors, f"{name}.{key}")] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return [flatten(item, tensors, f"{name}.{i}") for i, item in enumerate(value)]
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
        return {key: unflatten(item, tensors) for key, item in value["$table"]}
    if isinstance(value, list):
        return [unflatten(item, tensors) for item in value]
    return value


class Checkpoint:
    """The last training state, in a folder: `state.json` names the safetensors file that belongs to it.

    The tensors are written first and the small JSON renamed over the old one last, so whenever the process dies
    a whole checkpoint is there.
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
            RunError: there is none, or it can't be read.
        """
        try:
            index = json.loads(self._index.read_text(encoding="utf-8"))
            return unflatten(index["state"], load_file(self.folder / index["tensors"]))
        except FileNotFoundError as error:
            raise RunError(f"{self.folder} has no checkpoint to resume from ({error.filename} is missing)") from error
        except Exception as error:
            raise RunError(f"the checkpoint in {self.folder} can't be read: {error}") from error

    def _number(self) -> int:
        return int(json.loads(self._index.read_text(encoding="utf-8"))["number"]) if self.exists() else 0


def random_state() -> dict[str, Any]:
    """The random states of Python, NumPy, torch and CUDA."""
    name, keys, position, has_gauss, cached = np.random.get_state()
    version, internal, gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "numpy": [str(name), torch.from_numpy(keys.astype(np.int64)), int(position), int(has_gauss), float(cached)],
        "python": [version, list(internal), gauss],
    }


def set_random_state(state: dict[str, Any]) -> None:
    """The inverse of `random_state`."""
    torch.set_rng_state(state["torch"])
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
    name, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, cached))
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def remove_partial(folder: Path) -> None:
    """Delete what a killed process had begun to write."""
    for path in folder.rglob("*.partial"):
        path.unlink()


def check_device(device: str) -> None:
    """Whether torch can compute on a device.

    Raises:
        ConfigError: it can't.
    """
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"--device {device}: {str(error).splitlines()[0]}") from error
