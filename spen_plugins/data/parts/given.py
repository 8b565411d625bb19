"""Examples given in Python: pairs of inputs and outputs, label sets, and a validation part carved off."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from spen_plugins.data.equal_inputs import describe_repeats, number_inputs, shared_inputs
from spen_plugins.data.parts.stratification import carve
from spen_plugins.data.tables.label_columns import number_labels
from spen_plugins.data.tables.matrix import Matrix, is_matrix
from spen_plugins.data.tables.table_columns import Columns
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.task import PARTS

T = TypeVar("T")
SOURCE = "given in Python"


def not_kept() -> ConfigError:
    """The error of `load` for a task whose examples were given in Python."""
    return ConfigError(
        "task.in_memory: the examples were given in Python, and the run folder does not contain them; pass them to "
        "sp.train again, or name a file"
    )


def pairs(parts: Mapping[str, Any]) -> tuple[dict[str, tuple[Any, Any]], list[float] | None]:
    """Inputs and outputs of each part, and the weights of the training examples if they have some.

    Weights are divided by their mean, so that their scale doesn't change the learning rate; examples of weight 0 are
    dropped.
    """
    if not isinstance(parts, Mapping) or "train" not in parts or not parts.keys() <= set(PARTS):
        problem = ", ".join(map(repr, parts)) if isinstance(parts, Mapping) else type(parts).__name__
        raise DataError("data", None, f"{problem or 'no part'}", f"'train', maybe 'validation' and 'test', each {PAIR}")
    examples = {}
    for name, pair in parts.items():
        if not isinstance(pair, (tuple, list)) or len(pair) not in (2, 3):
            raise DataError(f"data[{name!r}]", None, f"a {type(pair).__name__}", PAIR)
        inputs, outputs, *weights = pair
        sizes = [size(values, f"data[{name!r}]") for values in (inputs, outputs)]
        if sizes[0] != sizes[1] or not sizes[0]:
            raise DataError(f"data[{name!r}]", None, "{} inputs and {} outputs".format(*sizes), "equal numbers above 0")
        if weights and name != "train":
            raise DataError(f"data[{name!r}]", None, "weights", "weights for the training examples only")
        examples[name] = inputs, outputs
    if len(parts["train"]) == 2 or parts["train"][2] is None:
        return examples, None
    count = size(examples["train"][0], "data['train']")
    weights = checked_weights(parts["train"][2], count, "the weights of train")
    rows = np.flatnonzero(weights)
    if len(rows) < len(weights):
        examples["train"] = tuple(_take_rows(values, rows) for values in examples["train"])
    return examples, weights[rows].tolist()


PAIR = "a pair (inputs, outputs), or (inputs, outputs, weights) for 'train'"


def checked_weights(values: Any, count: int, source: str) -> np.ndarray:
    """Weights of `count` examples, `(count,)` float64, divided by the mean of those above 0."""
    try:
        weights = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(source, None, f"{values!r:.80}", "one number per example") from None
    if weights.shape != (count,):
        raise DataError(source, None, f"an array of shape {weights.shape}", f"one number for each of {count} examples")
    invalid = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(invalid):
        raise DataError(f"{source}, row {invalid[0]}", None, f"{weights[invalid[0]]:g}", "a finite number, at least 0")
    if not weights.any():
        raise DataError(source, None, "0 for every example", "at least one above 0")
    return weights / weights[weights > 0].mean()


def _take_rows(values: Any, rows: np.ndarray) -> Any:
    if isinstance(values, Matrix):
        return replace(values, values=values.values[rows])
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if hasattr(values, "tocsr"):
        return values.tocsr()[rows]
    return values[rows] if hasattr(values, "shape") else [values[row] for row in rows.tolist()]


def size(values: Any, source: str) -> int:
    """Number of examples in inputs or outputs."""
    if hasattr(values, "shape") and values.shape:
        return int(values.shape[0])
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__"):
        raise DataError(source, None, f"a {type(values).__name__}", "a list or an array")
    return len(values)


def label_sets(outputs: Mapping[str, Any]) -> tuple[list[str], dict[str, list[np.ndarray]]]:
    """Label names, and for each part the numbers of each example's labels.

    Outputs are a matrix `(examples, labels)` of 0 and 1 (its columns' names, or numbers from 0, are the labels), or a
    list of each example's label names.
    """
    if not is_matrix(outputs["train"]) and not _has_number_rows(outputs["train"]):
        return _number_named_sets(outputs)
    expected = "a 0/1 matrix or lists of label names (strings)"
    matrices = {part: Matrix.from_data(values, f"the labels of {part}", expected) for part, values in outputs.items()}
    train = matrices["train"]
    names = list(train.names or map(str, range(train.width)))
    sets: dict[str, list[np.ndarray]] = {}
    for part, matrix in matrices.items():
        source = f"the labels of {part}"
        matrix = matrix.ordered(names, source)
        if (cell := matrix.not_binary()) is not None:
            raise DataError(source, None, f"{cell[0]:g} for label {names[cell[1]]!r}", "0 or 1")
        label_numbers = matrix.on()
        sets[part] = [label_numbers[i] for i in range(len(label_numbers))]
    return names, sets


def _has_number_rows(values: Any) -> bool:
    """True for a list of lists or arrays of numbers."""
    row = next((row for row in values if hasattr(row, "__len__") and len(row)), "")
    return not isinstance(row, (str, Mapping)) and not isinstance(next(iter(row)), str)


def _number_named_sets(outputs: Mapping[str, Any]) -> tuple[list[str], dict[str, list[np.ndarray]]]:
    for part, values in outputs.items():
        for row, names in enumerate(values):
            if not hasattr(names, "__len__") or isinstance(names, str) or not all(isinstance(n, str) for n in names):
                raise DataError(f"the labels of {part}, row {row}", None, f"{names!r:.80}", "a list of label names")
    labels = sorted({name for names in outputs["train"] for name in names})
    if not labels:
        raise DataError("the labels of train", None, "no label in any row", "at least one")
    numbers, kind = {name: i for i, name in enumerate(labels)}, "labels of the training part"
    return labels, {
        part: [
            number_labels(names, numbers, labels, kind, f"the labels of {part}, row {row}", None)
            for row, names in enumerate(values)
        ]
        for part, values in outputs.items()
    }


def texts(values: Any, source: str) -> list[str]:
    """A list, array or Series of strings."""
    strings = list(values)
    for row, text in enumerate(strings):
        if not isinstance(text, str):
            raise DataError(f"{source}, row {row}", None, f"{text!r:.80}", "a string")
    return strings


def rows(
    parts: Mapping[str, Any],
) -> tuple[dict[str, Matrix], dict[str, list[np.ndarray]], Columns, list[float] | None]:
    """Vectors and label numbers of each part, their common columns, and the weights that `pairs` returns."""
    examples, weights = pairs(parts)
    matrices = {name: Matrix.from_data(x, f"the vectors of {name}") for name, (x, _) in examples.items()}
    train = matrices["train"]
    names = train.names or tuple(f"x{i}" for i in range(train.width))
    matrices = {name: matrix.ordered(names, f"the vectors of {name}") for name, matrix in matrices.items()}
    labels, sets = label_sets({name: y for name, (_, y) in examples.items()})
    if is_binary := train.not_binary() is None:
        for name, matrix in matrices.items():
            matrix.check_binary(names, f"the vectors of {name}")
    features = dict.fromkeys(names, ("0", "1") if is_binary else ())
    return matrices, sets, Columns(features, tuple(labels), sparse=train.sparse and not is_binary), weights


def divide(
    examples: Mapping[str, Sequence[T]],
    inputs: Mapping[str, Sequence[Hashable]],
    strata: Sequence[Collection[Hashable]],
    share: float,
    seed: int,
) -> tuple[dict[str, list[T]], str, list[str]]:
    """The parts' examples; a sentence about their source, for `Task.protocol`; and notes for the user.

    Without a validation part, a `share` of the training part is carved off, stratified by `strata`; equal inputs, which
    have equal keys in `inputs`, stay together.
    """
    parts = {part: list(part_examples) for part, part_examples in examples.items()}
    if "validation" in parts:
        return parts, SOURCE, shared_inputs(inputs)
    if not isinstance(share, Real) or not 0 < share <= 0.5:
        raise ConfigError(f"the validation share: found {share!r}; expected a number above 0, at most 0.5")
    train, keys = parts["train"], inputs["train"]
    carved = carve(strata, "data['train']", share=float(share), seed=seed, inputs=keys)
    rows = {"train": carved.train, "validation": carved.validation}
    parts |= {part: [train[i] for i in part_rows] for part, part_rows in rows.items()}
    repeats = describe_repeats(number_inputs(keys))
    note = (
        f"validation: {len(carved.validation)} of the {len(train)} training examples, {carved.folds} by iterative "
        f"stratification (Sechidis et al. 2011), seed {seed}{repeats}"
    )
    shared = shared_inputs({**inputs, **{part: [keys[i] for i in part_rows] for part, part_rows in rows.items()}})
    return parts, f"{SOURCE}; {note}", [note] * bool(repeats) + shared


def checksums(parts: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """sha256 of each part's values, by its name and source; arrays count by their bytes, other values by `repr`."""
    digests = {}
    for part, values in parts.items():
        digest = hashlib.sha256()
        for value in values:
            arrays = value if isinstance(value, tuple) else (value,)
            for array in arrays:
                digest.update(
                    np.ascontiguousarray(array).tobytes() if hasattr(array, "__array__") else repr(array).encode()
                )
        digests[f"{part}, {SOURCE}"] = digest.hexdigest()
    return digests
