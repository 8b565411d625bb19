"""Strange arrays and sentences through scikit-learn's interface, with clones and pickles of what was fitted."""

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
    act = draw.choice((_labels, _labels, _tags))(draw)
    return Try(f"{name}-{act.__name__}", act)


def _told(call: Callable[[], Any]) -> Any:
    """Returns the call's value; an error that users of scikit-learn expect ends the try as an error."""
    try:
        return call()
    except (ValueError, TypeError) as error:
        if not str(error).strip():
            raise AssertionError(f"{type(error).__name__} that says nothing") from error
        print(f"error: {error}")
        raise SystemExit(2) from None


def _again(fitted: Any, X: Any, equal: Callable[[Any, Any], bool]) -> None:
    """Prediction, a pickle of it, and a clone's settings."""
    before = _told(lambda: fitted.predict(X))
    for copy in (pickle.loads(pickle.dumps(fitted)), pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(fitted))))):
        if not equal(copy.predict(X), before):
            raise AssertionError("a pickle predicts otherwise")
    if repr(clone(fitted).get_params()) != repr(fitted.get_params()):
        raise AssertionError("a clone has other parameters")


def _labels(draw: random.Random) -> Callable[[Path], None]:
    rng = np.random.default_rng(draw.randrange(1 << 30))
    X: Any = rng.normal(size=(draw.choice((2, 3, 30)), draw.choice((1, 5))))
    y: Any = (rng.random((len(X), draw.choice((1, 3)))) < draw.choice((0.1, 0.5, 0.9))).astype(
        draw.choice((int, float))
    )
    y[:2] = draw.choice(([[0], [1]], [[0], [1]], [[0], [1]], [[1], [1]]))
    place, odd = draw.choice("Xy---"), draw.choice(ODD)
    if place != "-":
        array = (X if place == "X" else y).astype(object)
        array[draw.randrange(len(array)), 0] = odd
        X, y = (array, y) if place == "X" else (X, array)
    shapes = (*["array"] * 8, "float16", "int8", "U5", "csr", "list", "frame", "1d", "3d", "fortran")
    X, y = _shaped(X, draw.choice(shapes)), _shaped(y, draw.choice((*shapes, *["array"] * 20)))
    settings = {"method": draw.choice(("nce", "cross_entropy")), **FEW}
    settings |= draw.choice(
        ({}, {}, {}, {}, {}, {"threshold": odd}, {"random_state": odd}, {"validation_fraction": odd})
    )

    def labels(folder: Path) -> None:
        fitted = _told(lambda: MultiLabelClassifier(**settings).fit(X, y))
        found = _told(lambda: fitted.predict_proba(X))
        if found.shape != (np.shape(X)[0], len(fitted.labels_)) or not ((found >= 0) & (found <= 1)).all():
            raise AssertionError(f"probabilities of shape {found.shape} from {found.min()} to {found.max()}")
        _again(fitted, X, lambda one, other: bool((one == other).all()))

    return labels


def _shaped(array: Any, how: str) -> Any:
    """The array as another type; where that is impossible, as it is."""
    import pandas

    ways: dict[str, Callable[[], Any]] = {
        "csr": lambda: scipy.sparse.csr_matrix(array),
        "list": array.tolist,
        "frame": lambda: pandas.DataFrame(array, columns=[f"c{i}" for i in range(array.shape[1])]),
        "1d": array.ravel,
        "3d": lambda: array[None],
        "fortran": lambda: np.asfortranarray(array)[::-1],
    }
    try:
        return array if how == "array" else ways.get(how, lambda: array.astype(how))()
    except (ValueError, TypeError, OverflowError):
        return array


def _tags(draw: random.Random) -> Callable[[Path], None]:
    X, y = inputs.lists(inputs.tagged(draw.randrange(99), 16, draw.random() < 0.7))
    for _ in range(draw.choice((0, 0, 1, 2))):
        some: Any = draw.choice((X, y))
        row = draw.randrange(len(some))
        if draw.random() < 0.6 and isinstance(some[row], list):
            some[row][draw.randrange(len(some[row]))] = draw.choice(ODD)
        else:
            some[row] = draw.choice((*ODD, ["a"], (), np.array(some[row], dtype=object)))
    given = [*X]

    def tags(folder: Path) -> None:
        fitted = _told(lambda: SequenceTagger("cross_entropy", **FEW).fit(X, y))
        found = _told(lambda: fitted.predict(given))
        known = {tag for row in y for tag in row}
        known |= {"I" + tag[1:] for tag in known if tag.startswith("B-")}  # a scheme's tags, each with each type
        if not set(fitted.classes_) <= known or any(not set(row) <= known for row in found):
            raise AssertionError(f"tags that were not trained on: {sorted(set(fitted.classes_) - known)}")
        if [len(row) for row in found] != [len(row) for row in given]:
            raise AssertionError("another number of tags than of words")
        _again(fitted, given, lambda one, other: bool((one == other).all()))

    return tags
