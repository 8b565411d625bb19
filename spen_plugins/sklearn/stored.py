"""A finished run inside an estimator."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spen_plugins.errors import ConfigError, DataError, Interrupted, PluginError
from spen_plugins.runs.predict.predictor import Predictor, load
from spen_plugins.runs.train.preparing import Given
from spen_plugins.runs.train.training import train


class StoredRun:
    """A run in a temporary folder of its own, which lives as long as this object.

    Pickled as the bytes of the files that prediction needs (config, vocabulary, scores, weights as safetensors), and
    loaded from them at first use, on the CPU.
    """

    def __init__(self, predictor: Predictor, place: TemporaryDirectory) -> None:
        self._predictor, self._place = predictor, place
        self._files: dict[str, bytes] = {}

    @classmethod
    def train(cls, config: str, data: Given, device: str | None, quiet: bool, arguments: dict[str, Any]) -> StoredRun:
        """Train on the examples; errors as in `value_errors`, and KeyboardInterrupt if the user stops it."""
        place = TemporaryDirectory(prefix="spen-")
        out = Path(place.name) / "run"
        try:
            with value_errors():
                predictor = train(
                    config, data=data.parts, out=out, device=device, quiet=quiet, held_out=data.held_out, **arguments
                )
        except Interrupted:  # to searches an Exception is a fit that failed, and they go on
            raise KeyboardInterrupt from None  # the folder to resume from is a temporary one
        shutil.rmtree(predictor.folder.path / "checkpoint", ignore_errors=True)
        return cls(predictor, place)

    @property
    def predictor(self) -> Predictor:
        """The run, ready to predict."""
        if self._predictor is None:
            self._place = TemporaryDirectory(prefix="spen-")
            for name, data in self._files.items():
                path = Path(self._place.name) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            self._predictor, self._files = load(self._place.name), {}
        return self._predictor

    def __getstate__(self) -> dict[str, dict[str, bytes]]:
        if self._predictor is None:
            return {"files": self._files}
        with TemporaryDirectory(prefix="spen-") as name:
            folder = Path(name)
            self._predictor.save(folder)
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            return {"files": {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}}

    def __setstate__(self, state: dict[str, dict[str, bytes]]) -> None:
        self._predictor, self._place, self._files = None, None, state["files"]


@contextmanager
def value_errors() -> Iterator[None]:
    """Wrong settings and examples as a ValueError, which is what scikit-learn raises."""
    try:
        yield
    except (ConfigError, DataError, PluginError) as error:
        raise ValueError(str(error)) from error
