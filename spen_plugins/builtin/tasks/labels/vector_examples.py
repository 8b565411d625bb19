"""Examples of task `multilabel`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from spen_plugins.data.table import Ragged
from spen_plugins.task import VectorInputs

SHOWN_FEATURES = 12  # most features shown if they are real, as reals are hardly ever 0


class Example(NamedTuple):
    """One row: the indices of its non-zero features, or its scaled vector; its label indices, None without gold; the
    scaled values of the non-zero features, if they are not all 1; and the weight of its loss."""

    features: np.ndarray
    gold: np.ndarray | None
    values: np.ndarray | None = None
    weight: float = 1.0


def make_example(features: Ragged | np.ndarray, gold: Sequence[np.ndarray | None], row: int) -> Example:
    """The example of a row."""
    values = None if isinstance(features, np.ndarray) or features.weight is None else features.weights(row)
    return Example(features[row], gold[row], values)


def without_gold(example: Example) -> Example:
    """The same example without gold."""
    return example._replace(gold=None)


def collate_vectors(inputs: VectorInputs, examples: Sequence[Example]) -> dict[str, Tensor]:
    """The tensors of `VectorInputs`."""
    if not inputs.listed:
        return {"vector": torch.from_numpy(np.stack([example.features for example in examples]))}
    lengths = [len(example.features) for example in examples]
    indices = np.concatenate([example.features for example in examples]).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths[:-1], dtype=np.int64)]).astype(np.int64)
    tensors = {"indices": torch.from_numpy(indices), "offsets": torch.from_numpy(offsets)}
    if inputs.sparse:
        tensors["values"] = torch.from_numpy(np.concatenate([example.values for example in examples]))
    return tensors


def name_features(example: Example, names: Sequence[str], binary: bool) -> list[str]:
    """Names of the features that are 1; for real features the largest, with their values."""
    features, values = example.features, example.values
    if binary:
        return [names[i] for i in features.tolist()]
    if values is None:
        features, values = np.flatnonzero(features), features[features != 0]
    order = np.argsort(-np.abs(values), kind="stable")[:SHOWN_FEATURES]
    return [f"{names[features[i]]} {values[i]:.3g}" for i in order.tolist()]
