"""The base of the estimators: parameters, of which some are the config's, and the run that `fit` trains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from spen_plugins.runs.predict.predictor import Predictor
from spen_plugins.runs.train.preparing import Given
from spen_plugins.sklearn.stored import StoredRun


class Trained(BaseEstimator):
    """An estimator that trains a config that ships.

    Keyword arguments that are no parameter of the estimator's own are arguments or dotted keys of the config, as of
    `sp.train`; they are parameters, too, for `get_params`, `set_params` and searches. `fit` rejects unknown ones.

    Parameters
    ----------
    method : str
        A method of the config, as `spen-run --arguments` lists them.
    class_weight : "balanced", dict or None
        Weights of the classes in the cross entropy of the net.
    validation_fraction : float
        Share of the training examples that validate, where `fit` is given no validation part. Stratified.
    random_state : int, RandomState or None
        Seed of the validation part, of initial weights, row order, dropout and sampling.
    device : str or None
        "cpu", "cuda" or "mps"; None: the best available for training, the CPU for prediction. An estimator that was
        pickled predicts on the CPU.
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
        """Parameters by name, those of the config included."""
        return {**super().get_params(deep), **self._overrides}

    def set_params(self, **params: Any) -> Trained:
        """Set parameters, those of the config included."""
        own = self._get_param_names()
        for name, value in params.items():
            if name in own:
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
        """The training part, with checked weights if there are some."""
        if sample_weight is None:
            return inputs, outputs
        weights = _check_sample_weight(sample_weight, inputs, dtype=np.float64, ensure_non_negative=True)
        return inputs, outputs, weights

    def _train(self, config: str, parts: dict[str, Any], arguments: dict[str, Any]) -> None:
        """Train and keep the run as `run_`."""
        if reserved := sorted({"config", "data", "held_out", "out", "quiet"} & self._overrides.keys()):
            raise ValueError(
                f"{type(self).__name__} has no parameter {reserved[0]!r}; expected those of its docstring, or "
                "arguments and keys of the config"
            )
        seed = self.random_state
        if not isinstance(seed, int):
            seed = int(check_random_state(seed).randint(2**31 - 1))
        data = Given(parts, self.validation_fraction)
        weights = self.class_weight
        if isinstance(weights, Mapping):  # labels of an array are numbers
            weights = {str(name): float(weight) for name, weight in weights.items()}
        weighted = {} if weights is None else {"task.class_weight": weights}
        arguments = {"method": self.method, "seed": seed, **weighted, **arguments, **self._overrides}
        self.run_ = StoredRun.train(config, data, self.device, not self.verbose, arguments)
