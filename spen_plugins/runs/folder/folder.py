"""Run folders: the results of a run, and everything that prediction needs.

config.json          the evaluated config, complete
environment.json     format, versions, plugins, seed, git commit, checksums of the files read
vocabulary.json      the task's facts: vocabulary, labels, scaling, threshold
weights.safetensors  the nets of the best epoch
examples.safetensors numerator and denominator of the selection score of each test (or else validation) example
metrics.json         scores with their protocol, after the run is finished
calibration.json     the temperature of the reported probabilities, and its fit
history.jsonl        one line per epoch; times.jsonl: its seconds, which differ between equal runs
assets/              files of feature networks besides weights (a tokeniser), if any
checkpoint/          the last training state, and within a stage the one before
.lock                while a process trains here: its number, machine and start
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

import torch
from torch import Tensor, nn

from spen_plugins.data.catalogue import DataSet
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.files import (
    append,
    is_free,
    make_folder,
    open_file,
    read_tensors,
    remove_partial,
    save_json,
    save_tensors,
    to_json,
    writing,
)
from spen_plugins.files.lock import check_unused
from spen_plugins.loop.checkpoint import Checkpoint
from spen_plugins.model import Model
from spen_plugins.runs.folder import encoders, sources
from spen_plugins.runs.folder.environment import FORMAT
from spen_plugins.runs.folder.kinds import read_table, read_tables
from spen_plugins.runs.folder.weights import copy_tensors, list_tensors, narrow

METHODS = "methods.json"
"""File in a folder of runs by several methods: the methods' names, and the chosen one."""
MEAN = "mean-of-runs"
"""Run folder in such a folder: the mean of its runs, if the folder predicts with it."""
EPOCH = {"score": None, "best": False, "validation": {}, "updates": {}, "losses": {}, "gradient_norms": {}}
"""Keys of every record of a history, with their defaults for lines that lack them."""


def read_methods(path: Path) -> dict[str, Any]:
    """The names of the methods in a folder of their runs, and the chosen one; empty for any other folder."""
    return read_table(path / METHODS) or {}


class RunFolder:
    """A run's folder on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoint = Checkpoint(path / "checkpoint")
        self._history, self._times = path / "history.jsonl", path / "times.jsonl"

    @classmethod
    def create(cls, path: Path, config: Mapping[str, Any], instead: str | None = None) -> RunFolder:
        """A new folder with its config; `instead` is the remedy in the message for a folder that is not empty."""
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
        """Raise a ConfigError unless a folder is new or empty; partial files of a killed process don't count."""
        try:
            if is_free(path):
                return
        except OSError as error:
            raise ConfigError(f"the run folder {path} can't be read: {error.strerror}") from error
        check_unused(path)
        is_unfinished = (path / "config.json").exists() and not (path / "metrics.json").exists()
        resume = f"spen-run --resume {quote(str(path))}" if is_unfinished else "another --out"
        problem = "is not empty" if path.is_dir() else "is a file"
        raise ConfigError(f"the run folder {path} {problem}; nothing was overwritten. Use {instead or resume}")

    @classmethod
    def open(cls, path: Path, mean: bool = False) -> RunFolder:
        """An existing run folder; for a folder of several methods, the chosen run.

        Args:
            path: the folder.
            mean: if true, and a folder of several methods predicts with a mean of runs, the run of that mean.

        Raises:
            ConfigError: the path is no run folder, or has another format; or no method is chosen yet.
        """
        if methods := read_methods(path):
            if methods.get("run") is None:
                raise ConfigError(f"{path}: no method is chosen yet; resume with: spen-run --resume {quote(str(path))}")
            path = path / (MEAN if mean and methods.get("mean") else methods["run"])
        folder = cls(path)
        if not (path / "config.json").exists():
            problem = "it is a file; name its folder" if path.exists() else "it does not exist"
            problem = "there is no config.json in it" if path.is_dir() else problem
            if run_paths := sorted(quote(str(config_path.parent)) for config_path in path.glob("*/config.json")):
                problem += f"; the runs in it are {', '.join(run_paths[:5])}{', …' * (len(run_paths) > 5)}"
            raise ConfigError(f"{path} is not a run folder: {problem}")
        environment = folder.environment()  # empty if the run was killed before it wrote this file
        if environment and (found := environment.get("format")) != FORMAT:
            raise ConfigError(f"{path} has format {found!r}; this version of spen-plugins reads format {FORMAT}")
        return folder

    @property
    def assets(self) -> Path:
        """The folder of the run's assets; a part of a pipeline may use the pipeline's folder."""
        return encoders.assets(self.path)

    remove_unused = staticmethod(encoders.remove_unused)

    def config(self) -> dict[str, Any]:
        return self._read_table("config.json")

    def facts(self) -> dict[str, Any]:
        return self._read_table("vocabulary.json")

    def environment(self) -> dict[str, Any]:
        return read_table(self.path / "environment.json") or {}

    def metrics(self) -> dict[str, Any] | None:
        """The scores, or None before the run is finished."""
        return read_table(self.path / "metrics.json")

    def warn_if_unfinished(self) -> None:
        """Warn if the run has training state but no scores, because it isn't trained to the end."""
        if self.checkpoint.exists() and self.metrics() is None:
            resume = f"spen-run --resume {quote(str(self.path))}"
            warnings.warn(f"{self.path} isn't trained to the end; resume with: {resume}", stacklevel=3)

    def unit(self) -> str:
        """The unit of the scores, such as "dB"; empty for fractions, and before the run is finished."""
        return (self.metrics() or {}).get("protocol", {}).get("unit", "")

    def calibration(self) -> dict[str, Any] | None:
        """The temperature and its fit, or None without calibration."""
        return read_table(self.path / "calibration.json")

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
        """Existing records that an exported folder also gets, by file name."""
        names = ("environment.json", "calibration.json", "metrics.json")
        return {name: value for name in names if (value := read_table(self.path / name)) is not None}

    def save_weights(self, nets: nn.Module, dtype: torch.dtype | None = None, apart: bool = False) -> None:
        """Save all nets' weights, including a cost net's; shared tensors once, floats as `dtype` if it can hold them.

        With `apart`, pretrained encoders are stored in `../../encoders`, once for several runs with equal ones.
        """
        tensors = list_tensors(nets)
        if apart and (index := encoders.take_out(tensors, nets, self.path, dtype is not None)):
            self.write(encoders.INDEX, index)
        if dtype is not None:
            tensors = {name: narrow(tensor.detach(), dtype) for name, tensor in tensors.items()}
        save_tensors(tensors, self.path / "weights.safetensors")

    def load_weights(self, model: Model) -> None:
        """Load the saved weights into `model`; raises a `RunError` if they are missing, damaged, or don't fit."""
        copy_tensors(self.weights(), list_tensors(model), self.path)

    def weights(self) -> dict[str, Tensor]:
        """All saved tensors by name; raises a `RunError` if they are missing or damaged."""
        path = self.path / "weights.safetensors"
        if not path.exists():
            raise RunError(f"{self.path} has no weights yet (weights.safetensors is missing)")
        return read_tensors(path, infinite=True)[0] | encoders.read(self.path)

    def save_ratios(self, ratios: dict[str, Tensor], part: str, validation: Mapping[str, Tensor] | None = None) -> None:
        """Save the selection score's `numerator` and `denominator` for a part's examples, in order, and those of the
        validation part."""
        validation_tensors = {f"validation.{name}": values for name, values in (validation or {}).items()}
        save_tensors({**ratios, **validation_tensors}, self.path / "examples.safetensors", {"part": part})

    def ratios(self, part: str, beside: bool = False) -> dict[str, Tensor] | None:
        """Ratios that `save_ratios` wrote for this part; with `beside`, also next to another part's; None without."""
        try:
            tensors, metadata = read_tensors(self.path / "examples.safetensors")
        except FileNotFoundError:
            return None
        prefix = "" if metadata.get("part") == part else f"{part}."
        if prefix and not (beside and f"{prefix}numerator" in tensors):
            return None
        return {name: tensors[prefix + name] for name in ("numerator", "denominator")}

    def append_history(self, record: Mapping[str, Any], seconds: float) -> None:
        """Append one epoch's record; raises a `RunError` if it can't be written."""
        time = {"stage": record["stage"], "epoch": record["epoch"], "seconds": seconds}
        try:
            for path, value in ((self._history, record), (self._times, time)):
                append(to_json(value) + "\n", path)
        except OSError as error:
            raise RunError(f"{self.path} can't be written: {error.strerror}") from error

    def truncate_history(self, lines: int) -> None:
        """Drop epochs after the checkpoint, which will run again."""
        remove_partial(self.path)
        for path in (self._history, self._times):
            if path.exists():
                with writing(path) as temporary_path, open_file(path) as file, temporary_path.open("wb") as output:
                    output.writelines(islice(file, lines))

    def history(self) -> list[dict[str, Any]]:
        """One record per finished epoch."""
        return [EPOCH | line for line in read_tables(self._history)]

    def times(self) -> list[dict[str, Any]]:
        """`stage`, `epoch` and `seconds` of each finished epoch."""
        return read_tables(self._times)

    def _read_table(self, name: str) -> dict[str, Any]:
        if (content := read_table(self.path / name)) is None:
            raise RunError(f"{self.path} is not a complete run folder: {name} is missing")
        return content


def open_runs(path: Path) -> list[RunFolder]:
    """The run in a folder, or the runs in its subfolders."""
    if (path / "config.json").exists():
        return [RunFolder.open(path)]
    return [RunFolder.open(child.parent) for child in sorted(path.glob("*/config.json"))]
