"""`MultiLabelClassifier`: config `labels` as an estimator of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from scipy.special import logit
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from spen_plugins.data.tables.matrix import Matrix
from spen_plugins.scores.calibration import LabelConfidences
from spen_plugins.scores.label_decoding import between
from spen_plugins.sklearn.base import Trained, value_errors
from spen_plugins.task_parts import parse_all

NUMBERS = {"accept_sparse": "csr", "dtype": np.float32, "ensure_all_finite": "allow-nan"}
SURE = 1e-12  # probabilities nearer to 0 or 1 have the logit of this one


class MultiLabelClassifier(ClassifierMixin, Trained):
    """Multi-label classification by a net that an energy teaches, or by any other method of the config `labels`.

    If all features are 0 or 1 in training, they are binary, and must be binary in prediction, too. Otherwise all are
    scaled to mean 0 and deviation 1. A sparse matrix stays sparse: it is scaled by one number.

    Parameters
    ----------
    method : str
        "nce" (SEAL with noise-contrastive estimation), "cross_entropy" and others: `spen-run --arguments labels`.
    threshold : float or "validation"
        A label is predicted if its probability before calibration is above this number; "validation": the number with
        the best `task.selection`, by default F1, on the validation part. `threshold_` is the threshold for the
        calibrated probabilities of `predict_proba`, usually another number.
    decode : str
        "threshold"; "expected_f1": the label set of highest expected F1 under the net's distribution, at a temperature
        chosen on the validation part; "validation": whichever scores better there, or the threshold if it is a number.
        If labels are independent, a row's predicted labels are the most probable ones by `predict_proba`, but not
        simply those above 0.5 or, without a `threshold_`, above any single number.
    hierarchy : dict, str or None
        A dict {child: parent} of labels, by name or column number, or a file of lines `child parent`. For methods that
        use a hierarchy, such as "hierarchy", which predicts each label's parent with it.
    class_weight : "balanced", dict or None
        A dict {label: weight} of the presence of labels, by name or column number; "balanced": n / (2 n_c) for the
        presence and the absence of each label.
    validation_fraction, random_state, device, verbose
        As in `Trained`. The validation part picks the epoch, the threshold and the temperature of the probabilities.
    **overrides
        Other arguments and dotted keys of the config: `**{"trainer.epochs": 30, "features.hidden": [100]}`. With
        `**{"task.selection": "accuracy"}` they are chosen for whole label sets, which `score` measures; if each row has
        a label, add `**{"task.nonempty": True}`.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The labels' numbers from 0. The dtype is object: scikit-learn would take two integers for the classes of one
        label.
    labels_ : array of shape (n_labels,)
        Names of the labels: the columns of a DataFrame, or numbers from 0.
    threshold_ : float or None
        The threshold after calibration: `predict` returns the labels whose `predict_proba` is above it, except for
        methods that choose label sets by their energy. None if `predict` returns the sets of highest expected F1 or
        the most probable sets, or if `task.nonempty` fills empty sets.
    n_features_in_, feature_names_in_, predictor_
        As in scikit-learn and in `Trained`.
    """

    def __init__(
        self,
        method: str = "nce",
        *,
        threshold: Any = "validation",
        decode: str = "validation",
        hierarchy: Any = None,
        class_weight: Any = None,
        validation_fraction: float = 0.2,
        random_state: Any = 0,
        device: str | None = None,
        verbose: bool = False,
        **overrides: Any,
    ) -> None:
        super().__init__(method, class_weight, validation_fraction, random_state, device, verbose, overrides)
        self.threshold = threshold
        self.decode = decode
        self.hierarchy = hierarchy

    def fit(
        self, X: Any, y: Any, validation: tuple[Any, Any] | None = None, sample_weight: Any = None
    ) -> MultiLabelClassifier:
        """Train.

        Parameters
        ----------
        X : array, matrix of scipy.sparse or DataFrame of shape (n_samples, n_features)
            Numbers; NaN is a missing value, which a sparse matrix can't have.
        y : array or DataFrame of shape (n_samples, n_labels)
            0 and 1.
        validation : pair (X, y) or None
            Examples to validate on; None: `validation_fraction` of the others. The columns of a DataFrame y are matched
            by name, in any order; those of an array by position.
        sample_weight : array of shape (n_samples,) or None
            Weights of the training examples; their scale doesn't matter, and 0 leaves an example out. Scores on the
            validation part are not weighted.

        Raises
        ------
        ValueError
            X has infinite values; labels are not 0 and 1, or all the same; there are fewer than two rows; an argument,
            key or label is unknown; the validation part has other columns; weights are negative, all 0 or of the wrong
            number.
        TypeError
            y is sparse.
        """
        rows, labels = self._check_examples(X, y, reset=True)
        names = labels.names or tuple(map(str, range(labels.width)))
        parts = {"train": self._add_weights(rows, Matrix(labels.values, names), sample_weight)}
        self.labels_ = np.array(names)
        if validation is not None:
            rows, labels = validation
            rows, labels = self._check_examples(rows, labels, reset=False)
            with value_errors():
                parts["validation"] = rows, labels.ordered(names, "y of validation")
        is_threshold_fixed = self.decode == "validation" and self.threshold != "validation"
        decode = "threshold" if is_threshold_fixed else self.decode
        hierarchy = self.hierarchy
        if isinstance(hierarchy, Mapping):  # labels of an array are numbers
            hierarchy = {str(child): str(parent) for child, parent in hierarchy.items()}
        hierarchy_settings = {} if hierarchy is None else {"task.hierarchy": hierarchy}
        self._train("labels", parts, {"threshold": self.threshold, "decode": decode, **hierarchy_settings})
        self.classes_ = np.arange(len(self.labels_), dtype=object)
        task = self.run_.predictor.task
        self.threshold_ = None
        if task.decoder.labelwise:
            self.threshold_ = float(LabelConfidences(np.array(task.threshold)).at(task.temperature))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Labels of each row, 0 or 1, of shape (n_samples, n_labels)."""
        probabilities, outputs = self._compute_predictions(X)
        return (probabilities > self.threshold_ if outputs is None else outputs).astype(np.int64)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Calibrated probability of each label, of shape (n_samples, n_labels)."""
        return self._compute_predictions(X)[0]

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of each label minus those of the threshold, of shape (n_samples, n_labels); above 0: predicted.

        Without a threshold, minus those half-way between the row's last predicted label and the next.
        """
        p, predicted = self._compute_predictions(X)
        logits = logit(p.astype(np.float64).clip(SURE, 1 - SURE))
        if self.threshold_ is None:
            is_predicted = predicted > 0
            values = logits - between(torch.from_numpy(logits), torch.from_numpy(is_predicted)).numpy()
            # Labels that depend on each other need not be predicted in the order of their probabilities.
            return np.where((values > 0) == is_predicted, values, np.where(is_predicted, SURE, -SURE))
        return logits - logit(np.float64(self.threshold_).clip(SURE, 1 - SURE))

    def _check_examples(self, X: Any, y: Any, reset: bool) -> tuple[Matrix, Matrix]:
        """Examples in the task's form, with the names of X's columns, and of y's columns if y is a DataFrame."""
        target = y if y is None else "no_validation"  # without y scikit-learn says that it is missing
        X = validate_data(self, X, target, reset=reset, ensure_min_samples=2 if reset else 1, **NUMBERS)
        kind = type_of_target(y, input_name="y")
        check_classification_targets(y)
        dtype = None if np.asarray(y).dtype.kind in "US" else "numeric"  # names of labels are an error below
        labels = check_array(y, dtype=dtype, ensure_2d=False, ensure_min_samples=1, input_name="y", estimator=self)
        check_consistent_length(X, labels)
        if labels.ndim != 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}, of shape {labels.shape}; "
                "expected label sets, not one class per row: a 0/1 matrix (n_samples, n_labels), as returned by "
                "sklearn.preprocessing.MultiLabelBinarizer for label sets, and by LabelBinarizer for classes"
            )
        values = np.unique(labels)
        if not np.isin(values, (0, 1)).all():
            expected = "0 or 1 for each label of a row, as sklearn.preprocessing.MultiLabelBinarizer returns"
            raise ValueError(f"y has the values {values[:5].tolist()}; expected {expected}")
        if reset and len(values) < 2:
            raise ValueError(f"y has one class only: every label of every row is {values[0]}")
        names = tuple(map(str, y.columns)) if hasattr(y, "columns") else None
        features = getattr(self, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])
        with value_errors():
            rows = Matrix(Matrix.from_data(X, "X").values, tuple(map(str, features)))
            return rows, Matrix(Matrix.from_data(labels, "y").values, names)

    def _compute_predictions(self, X: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Calibrated probabilities, and the outputs if no threshold decides; each `(n_samples, n_labels)`."""
        predictor = self.predictor_
        X = validate_data(self, X, reset=False, **NUMBERS)
        with value_errors():
            examples = parse_all(predictor.task, Matrix.from_data(X, "X"))
        probabilities = np.empty((X.shape[0], len(self.labels_)), dtype=np.float64)
        outputs = None
        for proposal, _, rows in predictor.proposals(examples):
            probabilities[rows] = proposal.mean[:, 0].detach().float().cpu().numpy()
            if proposal.chosen is not None or self.threshold_ is None:
                outputs = np.empty(probabilities.shape, dtype=np.int64) if outputs is None else outputs
                outputs[rows] = predictor.task.decode(proposal)[:, 0].cpu().numpy()
        return LabelConfidences(probabilities).at(predictor.task.temperature), outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.target_tags.required = tags.target_tags.multi_output = tags.target_tags.two_d_labels = True
        tags.target_tags.single_output = tags.target_tags.one_d_labels = False
        tags.classifier_tags.multi_label, tags.classifier_tags.multi_class = True, False
        return tags
