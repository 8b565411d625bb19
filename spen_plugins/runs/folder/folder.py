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

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

import torch
from pydantic import BaseModel
from torch import Tensor, nn

from spen_plugins.data.catalogue.catalogue import DataSet
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.files import (
    append,
    is_free,
    make_folder,
    open_file,
    read_json,
    read_json_lines,
    read_tensors,
    remove_partial,
    save_json,
    save_tensors,
    to_json,
    writing,
)
from spen_plugins.loop.checkpoint import Checkpoint
from spen_plugins.model import Model
from spen_plugins.runs.folder import encoders, records, sources
from spen_plugins.runs.folder.environment import FORMAT
from spen_plugins.runs.folder.weights import narrowed, put, tensors_of

METHODS = "methods.json"
"""In a folder of runs by several methods: their names, and the one chosen."""


def methods_of(path: Path) -> dict[str, Any]:
    """What a folder of runs by several methods says of them; empty for any other folder."""
    file = path / METHODS
    return records.checked(records.Methods, read_json(file), file) if file.exists() else {}


class RunFolder:
    """A run's folder on disk.

    Args:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoint = Checkpoint(path / "checkpoint")
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
            str(path.absolute()).encode()
        except UnicodeEncodeError:
            raise ConfigError(f"the run folder {path}: found a name that is not UTF-8; choose another") from None
        try:
            free = is_free(path)
        except OSError as error:
            raise ConfigError(f"the run folder {path} can't be read: {error.strerror}") from error
        if not free:
            resume = f"spen-run --resume {quote(str(path))}" if (path / "config.json").exists() else "another --out"
            raise ConfigError(f"the run folder {path} is not empty; nothing was overwritten. Use {instead or resume}")

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run folder; of a folder of several methods the run that was chosen.

        Raises:
            ConfigError: it is no run folder, or has another format; or no method is chosen yet.
        """
        if methods := methods_of(path):
            if methods.get("run") is None:
                raise ConfigError(f"{path}: no method is chosen yet; go on with: spen-run --resume {quote(str(path))}")
            path = path / methods["run"]
        folder = cls(path)
        if not (path / "config.json").exists():
            raise ConfigError(f"{path} is not a run folder: there is no config.json in it")
        described = folder.environment()  # empty if the run was killed before it was written
        if described and described.get("format") != FORMAT:
            raise ConfigError(f"{path} {_other_format(described.get('format'))}")
        return folder

    @property
    def assets(self) -> Path:
        """The folder of its assets; of a part of a pipeline, perhaps the pipeline's.

        Raises:
            RunError: the file that names the latter is damaged.
        """
        return encoders.assets(self.path)

    @staticmethod
    def remove_unused(pipeline: Path) -> None:
        """Remove what `Predictor.save` stored apart in a pipeline's folder and no run in it names any more."""
        encoders.remove_unused(pipeline)

    def config(self) -> dict[str, Any]:
        return self._read("config.json", records.Config)

    def facts(self) -> dict[str, Any]:
        return self._read("vocabulary.json", records.Facts)

    def environment(self) -> dict[str, Any]:
        return self._optional("environment.json", records.Environment) or {}

    def metrics(self) -> dict[str, Any] | None:
        """The scores, or None before the run is finished."""
        return self._optional("metrics.json", records.Metrics)

    def unit(self) -> str:
        """The unit of the scores, such as "dB"; empty for fractions, and before the run is finished."""
        return (self.metrics() or {}).get("protocol", {}).get("unit", "")

    def calibration(self) -> dict[str, Any] | None:
        """The temperature and its fit, or None without calibration.

        Raises:
            RunError: the file is damaged.
        """
        return self._optional("calibration.json", records.Calibration)

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
        found = {
            "environment.json": self._optional("environment.json", records.Environment),
            "calibration.json": self.calibration(),
            "metrics.json": self.metrics(),
        }
        return {name: value for name, value in found.items() if value is not None}

    def save_weights(self, nets: nn.Module, dtype: torch.dtype | None = None, apart: bool = False) -> None:
        """Save all nets' weights, including a cost net's; shared tensors once, floats as `dtype` if given.

        A tensor with a number too large for `dtype` is not converted. With `apart` pretrained encoders are stored
        in `../../encoders`, an equal one of several runs once, and smaller still with a `dtype`.
        """
        tensors = tensors_of(nets)
        if apart and (index := encoders.take_out(tensors, nets, self.path, dtype is not None)):
            self.write(encoders.INDEX, index)
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
            RunError: the file is missing or damaged, or a tensor has a number that is NaN.
        """
        try:
            own = read_tensors(self.path / "weights.safetensors", infinite=True)[0]
        except FileNotFoundError as error:
            raise RunError(f"{self.path} has no weights yet (weights.safetensors is missing)") from error
        return own | encoders.read(self.path)

    def save_ratios(self, ratios: dict[str, Tensor], part: str, validation: Mapping[str, Tensor] | None = None) -> None:
        """Save `numerator` and `denominator` of the selection score of a part's examples, in file order; and of the
        validation part's, if that is another."""
        beside = {f"validation.{name}": values for name, values in (validation or {}).items()}
        save_tensors({**ratios, **beside}, self.path / "examples.safetensors", {"part": part})

    def ratios(self, part: str, beside: bool = False) -> dict[str, Tensor] | None:
        """The result of `save_ratios` for this part; None if there is none.

        Args:
            part: the part.
            beside: if true, also the validation part's that stand beside those of the test part.

        Raises:
            RunError: the file is damaged.
        """
        path = self.path / "examples.safetensors"
        try:
            tensors, metadata = read_tensors(path)
        except FileNotFoundError:
            return None
        saved = metadata.get("part")
        prefix = "validation." if beside and part == "validation" != saved else ""
        if prefix and f"{prefix}numerator" not in tensors:
            return None
        kept = {name: tensors.get(prefix + name) for name in ("numerator", "denominator")}
        shapes = [None if tensor is None else (tensor.shape, tensor.is_floating_point()) for tensor in kept.values()]
        if shapes[0] is None or shapes[0] != shapes[1] or len(shapes[0][0]) != 1 or not shapes[0][1]:
            raise RunError(f"{path} is damaged: expected numerator and denominator, a number an example each")
        return kept if prefix or saved == part else None  # type: ignore[return-value]

    def append_history(self, record: Mapping[str, Any], seconds: float) -> None:
        """Append one epoch's record; `RunError` if it can't be written."""
        time = {"stage": record["stage"], "epoch": record["epoch"], "seconds": seconds}
        try:
            for path, value in ((self._history, record), (self._times, time)):
                append(to_json(value) + "\n", path)
        except OSError as error:
            raise RunError(f"{self.path} can't be written: {error.strerror}") from error

    def truncate_history(self, lines: int) -> None:
        """Drop epochs after the checkpoint, which are run again."""
        remove_partial(self.path)
        for path in (self._history, self._times):
            if path.exists():
                with writing(path) as temporary, open_file(path) as file, temporary.open("wb") as kept:
                    kept.writelines(islice(file, lines))

    def history(self) -> list[dict[str, Any]]:
        """One record per finished epoch."""
        return [records.EPOCH | line for line in self._lines(self._history, records.Epoch)]

    def times(self) -> list[dict[str, Any]]:
        """`stage`, `epoch` and `seconds` of each finished epoch."""
        return self._lines(self._times, records.Time)

    def _lines(self, path: Path, kind: type[BaseModel]) -> list[dict[str, Any]]:
        """The lines of a .jsonl file; none without a file."""
        try:
            return [records.checked(kind, value, path, line) for line, value in read_json_lines(path)]
        except FileNotFoundError:
            return []

    def _optional(self, name: str, kind: type[BaseModel]) -> dict[str, Any] | None:
        """The content of a file, None without it."""
        try:
            return records.checked(kind, read_json(self.path / name), self.path / name)
        except FileNotFoundError:
            return None

    def _read(self, name: str, kind: type[BaseModel]) -> dict[str, Any]:
        found = self._optional(name, kind)
        if found is None:
            raise RunError(f"{self.path} is not a complete run folder: {name} is missing")
        return found


def _other_format(written: Any) -> str:
    """Message about a run folder with another format number, with a remedy."""
    if isinstance(written, int) and written > FORMAT:
        return f"has format {written}; this version reads format {FORMAT}: upgrade spen-plugins"
    found = "no format number" if written is None else f"format {written!r}"
    return (
        f"has {found}: an earlier version of spen-plugins wrote it, and this one reads format {FORMAT}; train it again"
    )
