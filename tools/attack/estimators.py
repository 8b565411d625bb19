"""Strange arrays and sentences through scikit-learn's interface, with clones and pickles of the fitted estimators."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import inputs
import numpy as np
import scipy.sparse
from sklearn.base import clone
from tries import Try

from spen_plugins.sklearn import MultiLabelClassifier, SequenceTagger

TOTAL = 600
FEW = {"trainer.epochs": 1, "trainer.epoch_updates": 1, "trainer.batch_size": 8}
ODD = (None, np.nan, np.inf, -1, 2, 1e300, 1 << 70, "", "nan", "x", "é\udc80", b"b", [], [1], {}, True, 1 + 1j, "\0")
"""Values in place of a number, a word or a tag."""


def make_try(name: str, draw: random.Random) -> Try:
    """An estimator that is fitted to strange input."""
    act = draw.choice((_fit_classifier, _fit_classifier, _fit_tagger))(draw)
    return Try(f"{name}-{act.__name__}", act)


def _call_or_exit(call: Callable[[], Any]) -> Any:
    """Returns the call's value. An error that users of scikit-learn expect ends the try with exit status 2."""
    try:
        return call()
    except (ValueError, TypeError) as error:
        if not str(error).strip():
            raise AssertionError(f"{type(error).__name__} that says nothing") from error
        print(f"error: {error}")
        raise SystemExit(2) from None


def _check_copies(fitted: Any, X: Any, equal: Callable[[Any, Any], bool]) -> None:
    """Checks that pickles predict the same, and that a clone has the same parameters."""
    predictions = _call_or_exit(lambda: fitted.predict(X))
    for copy in (pickle.loads(pickle.dumps(fitted)), pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(fitted))))):
        if not equal(copy.predict(X), predictions):
            raise AssertionError("a pickle predicts otherwise")
    if repr(clone(fitted).get_params()) != repr(fitted.get_params()):
        raise AssertionError("a clone has other parameters")


def _fit_classifier(draw: random.Random) -> Callable[[Path], None]:
    rng = np.random.default_rng(draw.randrange(1 << 30))
    X: Any = rng.normal(size=(draw.choice((2, 3, 30)), draw.choice((1, 5))))
    y: Any = (rng.random((len(X), draw.choice((1, 3)))) < draw.choice((0.1, 0.5, 0.9))).astype(
        draw.choice((int, float))
    )
    y[:2] = draw.choice(([[0], [1]], [[0], [1]], [[0], [1]], [[1], [1]]))
    place, odd_value = draw.choice("Xy---"), draw.choice(ODD)
    if place != "-":
        array = (X if place == "X" else y).astype(object)
        array[draw.randrange(len(array)), 0] = odd_value
        X, y = (array, y) if place == "X" else (X, array)
    shapes = (*["array"] * 8, "float16", "int8", "U5", "csr", "list", "frame", "1d", "3d", "fortran")
    X, y = _convert(X, draw.choice(shapes)), _convert(y, draw.choice((*shapes, *["array"] * 20)))
    settings = {"method": draw.choice(("nce", "cross_entropy")), **FEW}
    settings |= draw.choice(
        ({}, {}, {}, {}, {}, {"threshold": odd_value}, {"random_state": odd_value}, {"validation_fraction": odd_value})
    )

    def labels(folder: Path) -> None:
        fitted = _call_or_exit(lambda: MultiLabelClassifier(**settings).fit(X, y))
        probabilities = _call_or_exit(lambda: fitted.predict_proba(X))
        if (
            probabilities.shape != (np.shape(X)[0], len(fitted.labels_))
            or not ((probabilities >= 0) & (probabilities <= 1)).all()
        ):
            raise AssertionError(
                f"probabilities of shape {probabilities.shape} from {probabilities.min()} to {probabilities.max()}"
            )
        _check_copies(fitted, X, lambda first, second: bool((first == second).all()))

    return labels


def _convert(array: Any, kind: str) -> Any:
    """Returns the array as another type, or unchanged where that is impossible."""
    import pandas

    conversions: dict[str, Callable[[], Any]] = {
        "csr": lambda: scipy.sparse.csr_matrix(array),
        "list": array.tolist,
        "frame": lambda: pandas.DataFrame(array, columns=[f"c{i}" for i in range(array.shape[1])]),
        "1d": array.ravel,
        "3d": lambda: array[None],
        "fortran": lambda: np.asfortranarray(array)[::-1],
    }
    try:
        return array if kind == "array" else conversions.get(kind, lambda: array.astype(kind))()
    except (ValueError, TypeError, OverflowError):
        return array


def _fit_tagger(draw: random.Random) -> Callable[[Path], None]:
    X, y = inputs.lists(inputs.tagged(draw.randrange(99), 16, draw.random() < 0.7))
    for _ in range(draw.choice((0, 0, 1, 2))):
        sequences: Any = draw.choice((X, y))
        row = draw.randrange(len(sequences))
        if draw.random() < 0.6 and isinstance(sequences[row], list):
            sequences[row][draw.randrange(len(sequences[row]))] = draw.choice(ODD)
        else:
            sequences[row] = draw.choice((*ODD, ["a"], (), np.array(sequences[row], dtype=object)))
    sentences = [*X]

    def tags(folder: Path) -> None:
        fitted = _call_or_exit(lambda: SequenceTagger("cross_entropy", **FEW).fit(X, y))
        predictions = _call_or_exit(lambda: fitted.predict(sentences))
        training_tags = {tag for row in y for tag in row}
        # a scheme's tags, each with each type
        training_tags |= {"I" + tag[1:] for tag in training_tags if tag.startswith("B-")}
        if not set(fitted.classes_) <= training_tags or any(not set(row) <= training_tags for row in predictions):
            raise AssertionError(f"tags that were not trained on: {sorted(set(fitted.classes_) - training_tags)}")
        if [len(row) for row in predictions] != [len(row) for row in sentences]:
            raise AssertionError("another number of tags than of words")
        _check_copies(fitted, sentences, lambda first, second: bool((first == second).all()))

    return tags
