"""Training parts of which some examples have gold and the rest none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import Field

from spen_plugins.data.catalogue import locate
from spen_plugins.data.disk.shards import checksum
from spen_plugins.errors import DataError
from spen_plugins.settings.config import Config
from spen_plugins.task_parts import PartlyLabelled

T = TypeVar("T")


class PartlyLabelledConfig(Config):
    """The training examples that have gold; from the others an energy learns, or teaches, by inputs alone."""

    labelled: int | None = Field(None, ge=1)
    """Number of training examples, from the first, whose gold is used; null: all."""
    rest: bool = True
    """If true, the training examples after the labelled ones are trained on without gold; else they are left out."""
    unlabelled: str | list[str] | None = None
    """A file, or several, to train on without gold; gold in it is not looked at."""
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
    """Given settings of these for which the training part has to be in memory."""
    keys = ("labelled", "unlabelled", "sample_weight")
    return [key for key in keys if getattr(config, key, None)] + ["repeat"] * (config.repeat > 1)


def hide_gold(
    config: PartlyLabelledConfig,
    where: object,
    examples: Sequence[T],
    hidden: Callable[[T], T],
    read: Callable[[Path], Sequence[T]],
    what: str = "examples",
) -> tuple[list[T], list[T], dict[str, str]]:
    """The training examples whose gold is used, the others, `hidden`, and checksums of the files of `unlabelled`."""
    count = len(examples) if config.labelled is None else config.labelled
    if len(examples) < count:
        raise DataError(where, None, f"{len(examples)} training {what}", f"at least task.labelled, {count}")
    names = [config.unlabelled] if isinstance(config.unlabelled, str) else config.unlabelled or []
    others = [*(examples[count:] if config.rest else ()), *(one for name in names for one in read(locate(name)))]
    return list(examples[:count]), list(map(hidden, others)), {name: checksum(locate(name)) for name in names}
