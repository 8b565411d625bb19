"""What the estimators share: parameters, of which some are the config's, and the run that `fit` trains."""

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

INSTEAD = {
    "config": "'method', and dotted keys of the config",
    "data": "the arguments of fit",
    "held_out": "'validation_fraction'",
    "out": "predictor_.save(folder) after fit",
    "quiet": "'verbose'",
    "seed": "'random_state'",
}
"""Arguments of `sp.train` that are no overrides, and what has their place."""


class Trained(BaseEstimator):
    """Base of estimators that train a config that ships.

    Keyword arguments that are no parameter of the estimator's own are arguments or dotted keys of the config, as of
    `sp.train`; they are parameters, too, for `get_params`, `set_params` and searches. `fit` says which are unknown,
    or have another name here.
    """

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
        """The trained run: `predictor_.save("runs/mine")` writes it to a folder for `sp.load` and the commands."""
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
        for name in INSTEAD.keys() & self._overrides.keys():
            raise ValueError(f"{type(self).__name__} has no parameter {name!r}; expected {INSTEAD[name]} in its place")
        seed = self.random_state
        if not isinstance(seed, int):
            seed = int(check_random_state(seed).randint(2**31 - 1))
        given = Given(parts, self.validation_fraction)
        weights = self.class_weight
        if isinstance(weights, Mapping):  # labels of an array are numbers
            weights = {str(name): float(weight) for name, weight in weights.items()}
        weighted = {} if weights is None else {"task.class_weight": weights}
        arguments = {"method": self.method, "seed": seed, **weighted, **arguments, **self._overrides}
        self.run_ = StoredRun.train(config, given, self.device, not self.verbose, arguments)
