"""Run folders: the results of a run, and all that prediction needs.

config.json          the evaluated config, complete
environment.json     format, versions, plugins, seed, git commit, checksums of the files read
vocabulary.json      the task's facts: vocabulary, labels, scaling, threshold
weights.safetensors  the nets of the best epoch
examples.safetensors numerator and denominator of the selection score, for each example of the part that its metadata
                     names: test, or validation without a test part
metrics.json         scores with their protocol, after the run is finished
calibration.json     the temperature of the reported probabilities, and its fit
history.jsonl        one line per epoch; times.jsonl: its seconds, which differ between equal runs
assets/              files of feature networks besides weights (a tokeniser), if any
checkpoint/          the last training state, and within a stage the one before
.lock                while a process trains here: its number, machine and start
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from spen_plugins.datasets.catalogue import DataSet
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.files import append, is_free, make_folder, remove_partial, save_json, save_tensors, writing
from spen_plugins.loop.checkpoint import Checkpoint
from spen_plugins.model import Model
from spen_plugins.runs import sources
from spen_plugins.runs.environment import FORMAT
from spen_plugins.runs.weights import narrowed, put, tensors_of


class RunFolder:
    """A run's folder on disk.

    Args:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoint = Checkpoint(path / "checkpoint")
        self.assets = path / "assets"
        self._history, self._times = path / "history.jsonl", path / "times.jsonl"

    @classmethod
    def create(cls, path: Path, config: Mapping[str, Any], instead: str | None = None) -> RunFolder:
        """A new folder with its config.

        Args:
            path: the folder, new or empty, but for what a killed process had begun to write.
            config: the evaluated config.
            instead: remedy in the message for a folder that is not empty; by default to resume, or another --out.

        Raises:
            ConfigError: the folder is not empty, or can't be created.
        """
        cls.check_free(path, instead)
        try:
            make_folder(path)
            remove_partial(path)
            save_json(config, path / "config.json")
        except (OSError, RunError) as error:
            raise ConfigError(f"the run folder {path} can't be written: {error}") from error
        return cls(path)

    @staticmethod
    def check_free(path: Path, instead: str | None = None) -> None:
        """Raise a ConfigError unless a folder is new or empty, but for what a killed process had begun to write."""
        try:
            free = is_free(path)
        except OSError as error:
            raise ConfigError(f"the run folder {path} can't be read: {error.strerror}") from error
        if not free:
            resume = f"spen-run --resume {path}" if (path / "config.json").exists() else "another --out"
            raise ConfigError(f"the run folder {path} is not empty; nothing was overwritten. Use {instead or resume}")

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run folder.

        Raises:
            ConfigError: it is no run folder, or has another format.
        """
        folder = cls(path)
        if not (path / "config.json").exists():
            raise ConfigError(f"{path} is not a run folder: there is no config.json in it")
        described = folder.environment()  # empty if the run was killed before it was written
        if described and described.get("format") != FORMAT:
            raise ConfigError(f"{path} {_other_format(described.get('format'))}")
        return folder

    def config(self) -> dict[str, Any]:
        return self._read("config.json")

    def facts(self) -> dict[str, Any]:
        return self._read("vocabulary.json")

    def environment(self) -> dict[str, Any]:
        return self._read("environment.json") if (self.path / "environment.json").exists() else {}

    def metrics(self) -> dict[str, Any] | None:
        """The scores, or None before the run is finished."""
        return self._read("metrics.json") if (self.path / "metrics.json").exists() else None

    def unit(self) -> str:
        """The unit of the scores, such as "dB"; empty for fractions, and before the run is finished."""
        return (self.metrics() or {}).get("protocol", {}).get("unit", "")

    def calibration(self) -> dict[str, Any] | None:
        """The temperature and its fit, or None without calibration.

        Raises:
            RunError: the file is damaged.
        """
        path = self.path / "calibration.json"
        if not path.exists():
            return None
        found = self._read("calibration.json")
        temperature = found.get("temperature")
        if not isinstance(temperature, (int, float)) or isinstance(temperature, bool) or not 0 < temperature < inf:
            raise RunError(f"{path} is damaged: temperature {temperature!r}; expected a number above 0")
        return found

    def data_sets(self) -> list[DataSet]:
        """The known data sets in the config, vectors and clusters included."""
        return sources.data_sets(self.config())

    def own_files(self) -> list[str]:
        """The training, validation and test files that belong to no known data set, as named in the config."""
        return sources.own_files(self.config())

    def write(self, name: str, value: Any) -> None:
        """Write a JSON file of the folder, atomically."""
        save_json(value, self.path / name)

    def records(self) -> dict[str, dict[str, Any]]:
        """Existing records that an exported folder should also hold, by file name."""
        names = ("environment.json", "calibration.json", "metrics.json")
        return {name: self._read(name) for name in names if (self.path / name).exists()}

    def save_weights(self, nets: nn.Module, dtype: torch.dtype | None = None) -> None:
        """Save all nets' weights, including a cost net's; shared tensors once, floats as `dtype` if given.

        A tensor with a number too large for `dtype` is not converted.
        """
        tensors = tensors_of(nets)
        if dtype is not None:
            tensors = {name: narrowed(tensor.detach(), dtype) for name, tensor in tensors.items()}
        save_tensors(tensors, self.path / "weights.safetensors")

    def load_weights(self, model: Model) -> None:
        """Load the saved weights into `model`.

        Raises:
            RunError: they are missing, damaged, or don't fit.
        """
        put(self.weights(), tensors_of(model), self.path)

    def weights(self) -> dict[str, Tensor]:
        """All saved tensors by name.

        Raises:
            RunError: the file is missing or damaged.
        """
        path = self.path / "weights.safetensors"
        try:
            return load_file(path)
        except FileNotFoundError as error:
            raise RunError(f"{self.path} has no weights yet (weights.safetensors is missing)") from error
        except SafetensorError as error:
            raise RunError(f"{path} is damaged and can't be read: {error}") from error

    def save_ratios(self, ratios: dict[str, Tensor], part: str) -> None:
        """Save `numerator` and `denominator` of the selection score of a part's examples, in file order."""
        save_tensors(ratios, self.path / "examples.safetensors", {"part": part})

    def ratios(self, part: str) -> dict[str, Tensor] | None:
        """The result of `save_ratios` for this part; None if there is none.

        Raises:
            RunError: the file is damaged.
        """
        path = self.path / "examples.safetensors"
        if not path.exists():
            return None
        try:
            with safe_open(path, "pt") as file:
                kept = {name: file.get_tensor(name) for name in ("numerator", "denominator")}
                return kept if (file.metadata() or {}).get("part") == part else None
        except SafetensorError as error:
            raise RunError(f"{path} is damaged and can't be read: {error}") from error

    def append_history(self, record: Mapping[str, Any], seconds: float) -> None:
        """Append one epoch's record; `RunError` if it can't be written."""
        time = {"stage": record["stage"], "epoch": record["epoch"], "seconds": seconds}
        try:
            for path, value in ((self._history, record), (self._times, time)):
                append(json.dumps(value) + "\n", path)
        except OSError as error:
            raise RunError(f"{self.path} can't be written: {error.strerror}") from error

    def truncate_history(self, lines: int) -> None:
        """Drop epochs after the checkpoint, which are run again."""
        remove_partial(self.path)
        for path in (self._history, self._times):
            if path.exists():
                kept = path.read_text(encoding="utf-8").splitlines(keepends=True)[:lines]
                with writing(path) as temporary:
                    temporary.write_text("".join(kept), encoding="utf-8")

    def history(self) -> list[dict[str, Any]]:
        """One record per finished epoch."""
        return _records(self._history)

    def times(self) -> list[dict[str, Any]]:
        """`stage`, `epoch` and `seconds` of each finished epoch."""
        return _records(self._times)

    def _read(self, name: str) -> dict[str, Any]:
        path = self.path / name
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise RunError(f"{self.path} is not a complete run folder: {name} is missing") from error
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise RunError(f"{path} is damaged: {error}") from error
        if not isinstance(value, dict):
            raise RunError(f"{path} is damaged: found a {type(value).__name__}; expected a table")
        return value


def _other_format(written: Any) -> str:
    """Message about a run folder with another format number, with a remedy."""
    if isinstance(written, int) and written > FORMAT:
        return f"has format {written}; this version reads format {FORMAT}: upgrade spen-plugins"
    found = "no format number" if written is None else f"format {written!r}"
    return (
        f"has {found}: an earlier version of spen-plugins wrote it, and this one reads format {FORMAT}; train it again"
    )


def _records(path: Path) -> list[dict[str, Any]]:
    """The lines of a .jsonl file; none without a file.

    Raises:
        RunError: one of them is damaged.
    """
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    except ValueError as error:
        raise RunError(f"{path} is damaged: {error}") from error
