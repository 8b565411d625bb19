"""The base of the estimators: parameters, some of them from the config, and the run that `fit` trains."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from spen_plugins.errors import ConfigError, DataError, Interrupted, PluginError
from spen_plugins.runs.predict.predictor import Predictor, load
from spen_plugins.runs.train.preparing import Given
from spen_plugins.runs.train.training import train

RESERVED = {"config", "data", "held_out", "out", "quiet"}
RESERVED |= {"split", "validation", "test", "labels", "label_count", "text", "separator", "drop"}
"""Arguments of training that `fit` sets, or that say how files are read."""


class StoredRun:
    """A run in its own temporary folder, which lives as long as this object.

    A pickle holds the bytes of the files that prediction needs (config, vocabulary, scores, weights as safetensors).
    The run is loaded from them at first use, on the CPU.
    """

    def __init__(self) -> None:
        self._predictor: Predictor | None = None
        self._files: dict[str, bytes] = {}

    @classmethod
    def train(cls, config: str, data: Given, device: str | None, quiet: bool, arguments: dict[str, Any]) -> StoredRun:
        """Train on the examples; raises the errors of `value_errors`, and KeyboardInterrupt if the user stops it."""
        run = cls()
        out = run._make_folder() / "run"
        try:
            with value_errors():
                predictor = train(
                    config, data=data.parts, out=out, device=device, quiet=quiet, held_out=data.held_out, **arguments
                )
        except Interrupted:  # searches treat an Exception as a failed fit and continue
            raise KeyboardInterrupt from None  # the run can't be resumed: its folder is temporary
        shutil.rmtree(predictor.folder.path / "checkpoint", ignore_errors=True)
        run._predictor = predictor
        return run

    def _make_folder(self) -> Path:
        """A temporary folder, removed with this object or at exit."""
        directory = TemporaryDirectory(prefix="spen-")
        weakref.finalize(self, directory.cleanup)  # otherwise it warns of an implicit clean-up
        return Path(directory.name)

    @property
    def predictor(self) -> Predictor:
        """The run, ready to predict."""
        if self._predictor is None:
            folder = self._make_folder()
            for name, data in self._files.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            self._predictor, self._files = load(folder), {}
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
        self._predictor, self._files = None, state["files"]


@contextmanager
def value_errors() -> Iterator[None]:
    """Raises a ValueError, as scikit-learn does, for wrong settings and examples."""
    try:
        yield
    except (ConfigError, DataError, PluginError) as error:
        raise ValueError(str(error)) from error


class Trained(BaseEstimator):
    """An estimator that trains a shipped config.

    Keyword arguments other than the estimator's own parameters are arguments or dotted keys of the config, as for
    `sp.train`. `get_params`, `set_params` and searches treat them as parameters. `fit` rejects unknown ones.

    Parameters
    ----------
    method : str
        A method of the config, as `spen-run --arguments` lists them.
    class_weight : "balanced", dict or None
        Weights of the classes in the cross entropy of the net.
    validation_fraction : float
        Share of the training examples used for validation if `fit` gets no validation part. Stratified.
    random_state : int, RandomState or None
        Seed of the validation part, of initial weights, row order, dropout and sampling.
    device : str or None
        "cpu", "cuda" or "mps"; None: the best available for training, the CPU for prediction. An unpickled estimator
        predicts on the CPU.
    verbose : bool
        Print epochs and scores.
    overrides : dict
        Other arguments and dotted keys of the config.

    Attributes
    ----------
    predictor_ : Predictor
        The run; its `save` writes a folder for `sp.load` and the commands.
    """

    def __init__(
        self,
        method: str,
        class_weight: Any,
        validation_fraction: float,
        random_state: Any,
        device: str | None,
        verbose: bool,
        overrides: dict[str, Any],
    ) -> None:
        self.method = method
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self._overrides = overrides

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, including those of the config."""
        return {**super().get_params(deep), **self._overrides}

    def set_params(self, **params: Any) -> Trained:
        """Set parameters, including those of the config."""
        parameter_names = self._get_param_names()
        for name, value in params.items():
            if name in parameter_names:
                setattr(self, name, value)
            else:
                self._overrides[name] = value
        return self

    @property
    def predictor_(self) -> Predictor:
        """The trained run."""
        check_is_fitted(self, "run_")
        return self.run_.predictor

    def _add_weights(self, inputs: Any, outputs: Any, sample_weight: Any) -> tuple[Any, ...]:
        """The training part, with checked weights if there are any."""
        if sample_weight is None:
            return inputs, outputs
        weights = _check_sample_weight(sample_weight, inputs, dtype=np.float64, ensure_non_negative=True)
        return inputs, outputs, weights

    def _train(self, config: str, parts: dict[str, Any], arguments: dict[str, Any]) -> None:
        """Train and store the run in `run_`."""
        if reserved_names := sorted(RESERVED & self._overrides.keys()):
            raise ValueError(
                f"{type(self).__name__} has no parameter {reserved_names[0]!r}; expected those of its docstring, or "
                "arguments and keys of the config"
            )
        seed = self.random_state
        if not isinstance(seed, int):
            seed = int(check_random_state(seed).randint(2**31 - 1))
        data = Given(parts, self.validation_fraction)
        weights = self.class_weight
        if isinstance(weights, Mapping):  # labels of an array are numbers
            weights = {str(name): float(weight) for name, weight in weights.items()}
        weight_settings = {} if weights is None else {"task.class_weight": weights}
        arguments = {"method": self.method, "seed": seed, **weight_settings, **arguments, **self._overrides}
        self.run_ = StoredRun.train(config, data, self.device, not self.verbose, arguments)
