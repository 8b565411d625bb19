"""Feature network `bag`: the inputs themselves, for linear models: vectors as they are, texts as tf-idf of n-grams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from spen_plugins.batch import X
from spen_plugins.builtin.features.ngrams import Grams, NgramIndexer
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.task import Indexer, Task, TextInputs, VectorInputs


class Bag(FeatureNetwork):
    """`(batch, size)`: the vector; or of a text the values of its n-grams, times their idf, of norm 1.

    It has no parameters. idf is ln((1 + n) / (1 + n with the n-gram)) + 1 over the texts of `learn`, before that 1.
    """

    class Config(Grams):
        buckets: int = Field(2**17, ge=0)
        """Number of entries shared by hashed n-grams of texts."""

    def __init__(self, config: Any, task: Task) -> None:
        super().__init__(config, task)
        self._indexer: NgramIndexer | None = None
        if isinstance(task.inputs, VectorInputs):
            self.output_dim = task.inputs.size
        elif isinstance(task.inputs, TextInputs):
            plain = config.model_copy(update={"norm": "none"})  # of norm 1 after idf
            self._indexer = NgramIndexer(task.inputs.words if config.vocabulary else None, plain)
            self.output_dim = self._indexer.size
            self.register_buffer("idf", torch.ones(self.output_dim))
        else:
            raise ConfigError("features 'bag' takes vectors or texts, and this task's inputs are others")

    def indexer(self) -> tuple[str, Indexer] | None:
        return None if self._indexer is None else (self._indexer.name, self._indexer)

    def learn(self, batches: Iterable[X]) -> None:
        """Set the idf of texts' n-grams from training texts."""
        if self._indexer is None:
            return
        texts, having = 0, np.zeros(self.output_dim)
        for x in batches:
            texts += x.size
            having += np.bincount(x.inputs[f"{self._indexer.name}.rows"].cpu().numpy(), minlength=self.output_dim)
        self.idf.copy_(torch.from_numpy(np.log((1 + texts) / (1 + having)) + 1))

    def lists(self, x: X) -> tuple[Tensor, Tensor, Tensor]:
        """Rows of a batch as lists of entries: `row`, `column` and `value` of each, `(total,)`."""
        names = ("indices", "offsets", "values")
        if self._indexer is not None:
            names = tuple(f"{self._indexer.name}.{part}" for part in ("rows", "offsets", "values"))
        column, offsets = x.inputs[names[0]], x.inputs[names[1]]
        value = x.inputs.get(names[2], torch.ones_like(column, dtype=torch.float32))
        lengths = torch.diff(offsets, append=offsets.new_tensor([len(column)]))
        row = torch.repeat_interleave(torch.arange(x.size, device=column.device), lengths)
        if self._indexer is not None:
            value = value.to(self.idf.dtype) * self.idf[column]
            square = value.new_zeros(x.size).index_add(0, row, value.square())
            value = value / square.clamp(min=1e-12).sqrt()[row]
        return row, column, value

    def forward(self, x: X) -> Tensor:
        if "vector" in x.inputs:
            return x.inputs["vector"]
        row, column, value = self.lists(x)
        return value.new_zeros(x.size, self.output_dim).index_put((row, column), value, accumulate=True)
