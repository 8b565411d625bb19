"""Gold of the training part: the examples that have some, and the weights of labels and tags in the cross entropy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from spen_plugins.data.catalogue import locate
from spen_plugins.data.disk.shards import checksum
from spen_plugins.errors import ConfigError, DataError, did_you_mean
from spen_plugins.settings.config import Config
from spen_plugins.task_parts import PartlyLabelled

T = TypeVar("T")


class PartlyLabelledConfig(Config):
    """The training examples that have gold; from the others an energy learns, or teaches, by inputs alone."""

    labelled: int | None = Field(None, ge=1)
    """Number of training examples whose gold is used, counted from the first of the training part; null: all.
    `spen rules` counts from the first example of its file, which it does not divide."""
    rest: bool = True
    """If true, training examples after the labelled ones are trained on without gold; otherwise they are ignored."""
    unlabelled: str | list[str] | None = None
    """One or several files to train on without gold; gold in them is ignored."""
    repeat: int = Field(1, ge=1)
    """Number of times that an epoch has each labelled training example; those without gold come once."""


class WithoutGold(PartlyLabelled):
    """Base of tasks whose config is a `PartlyLabelledConfig`."""

    config: PartlyLabelledConfig

    @property
    def keys_without_gold(self) -> list[str]:
        unlabelled = ["task.unlabelled"] * bool(self.config.unlabelled)
        return unlabelled + ["task.labelled"] * (self.config.labelled is not None and self.config.rest)


def needs_memory(config: PartlyLabelledConfig) -> list[str]:
    """The settings in a config that are set and require the training part in memory."""
    keys = ("labelled", "unlabelled", "sample_weight", "rules")
    return [key for key in keys if getattr(config, key, None)] + ["repeat"] * (config.repeat > 1)


def hide_gold(
    config: PartlyLabelledConfig,
    source: object,
    examples: Sequence[T],
    hidden: Callable[[T], T],
    read: Callable[[Path], tuple[Sequence[T], str]],
    noun: str = "examples",
) -> tuple[list[T], list[T], dict[str, str], list[str]]:
    """Returns the training examples whose gold is used; the others, changed by `hidden`; and checksums and notes of the
    files of `unlabelled`, which `read` reads and describes."""
    count = len(examples) if config.labelled is None else config.labelled
    if len(examples) < count:
        raise DataError(source, None, f"{len(examples)} training {noun}", f"at least task.labelled={count}")
    names = [config.unlabelled] if isinstance(config.unlabelled, str) else config.unlabelled or []
    files = {name: read(locate(name)) for name in names}
    others = [*(examples[count:] if config.rest else ()), *(example for name in names for example in files[name][0])]
    notes = [f"{name}: {description}" for name, (_, description) in files.items()]
    checksums = {name: checksum(locate(name)) for name in names}
    return list(examples[:count]), list(map(hidden, others)), checksums, notes


Weight = Annotated[float, Field(ge=0)]


class ClassWeightConfig(Config):
    """Weights of labels and tags in the loss."""

    class_weight: Literal["balanced"] | dict[str, Weight] | None = None
    """Weights in the net's cross entropy: a table {name: weight}, with 1 for other names; or "balanced": examples /
    (classes · examples of the class), counted in the training part. Each label is a problem of two classes, so that
    its presence weighs n / (2 n₁) and its absence n / (2 n₀); a table's weight is that of its presence. Tags are the
    classes of one problem, counted in words; tags of spans are weighted by type (PER), including O. null: none."""


def weigh_labels(setting: Any, labels: Sequence[str], examples: Sequence[Any]) -> Tensor | None:
    """Weights `(2, label)` of absent and present labels; None without `task.class_weight`."""
    if setting is None:
        return None
    if isinstance(setting, Mapping):
        present = _look_up(setting, labels, "labels")
        return torch.from_numpy(np.stack([np.ones_like(present), present]))
    count, total = np.zeros(len(labels)), 0.0
    for example in examples:
        if example.gold is not None:
            count[example.gold] += example.weight
            total += example.weight
    counts = np.stack([total - count, count])
    has_both = (counts > 0).all(0)  # other labels have one class, of weight 1
    return torch.from_numpy(np.divide(total, 2 * counts, out=np.ones_like(counts), where=has_both).astype(np.float32))


def weigh_tags(setting: Any, tags: Sequence[str], spans: bool, examples: Sequence[Any]) -> Tensor | None:
    """Weights `(tag,)` of tags; with `spans`, tags of one type share a weight. None without `task.class_weight`."""
    if setting is None:
        return None
    names = [tag[2:] if spans and tag != "O" else tag for tag in tags]
    classes = list(dict.fromkeys(names))
    class_numbers = np.array([classes.index(name) for name in names])
    if isinstance(setting, Mapping):
        weights = _look_up(setting, classes, "entity types and O" if spans else "tags")
    else:
        count = np.zeros(len(tags))
        for example in examples:
            if example.tags is not None:
                count += example.weight * np.bincount(example.tags, minlength=len(tags))
        count = np.bincount(class_numbers, count, len(classes))
        occurs = count > 0
        weights = np.divide(count.sum(), occurs.sum() * count, out=np.ones_like(count), where=occurs).astype(np.float32)
    return torch.from_numpy(weights[class_numbers])


def _look_up(setting: Mapping[str, float], names: Sequence[str], kind: str) -> np.ndarray:
    for name in setting:
        if name not in names:
            sample = ", ".join(names[:10]) + ", …" * (len(names) > 10)
            raise ConfigError(
                f"task.class_weight: found {name!r}; expected some of the {len(names)} {kind} ({sample})."
                f"{did_you_mean(name, names)}"
            )
    return np.array([setting.get(name, 1.0) for name in names], dtype=np.float32)


def collate_weights(examples: Sequence[Any]) -> Tensor | None:
    """`Batch.weights` of examples; None if no weight differs from 1."""
    weights = [example.weight for example in examples]
    return None if all(weight == 1 for weight in weights) else torch.tensor(weights)
