"""Feature network `one_reading`: each sentence is read once, and a small head marks each of its predicates."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from spen_plugins.batch import X
from spen_plugins.builtin.features.bilstm import drop_words, make_lstms, run_lstms
from spen_plugins.builtin.features.words import token_mask
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.sentences.batches import WHOLE
from spen_plugins.settings.config import Config
from spen_plugins.task import Task, WordInputs
from spen_plugins.task_parts import SharesSentences


class OneReading(FeatureNetwork):
    """Sentences with a marked word -> `(batch, token, output_dim)`, zero on padding.

    The reader encodes each sentence of the batch once, without the mark: s_t. A head runs for each mark (predicate) p:
    relu(U s_t + V s_p + d(t − p)), where d is a table of distances, under bidirectional LSTMs over the tokens. A task
    that `SharesSentences` says which rows share a sentence; for any other task, the reader encodes each row.
    """

    parts: ClassVar[Mapping[str, str]] = {"reader": "features"}

    class Config(Config):
        dim: int = Field(128, ge=1)
        """Width of a token's vector after it is combined with the predicate's; the input of the LSTMs."""
        hidden: int = Field(64, ge=1)
        """Width of one direction of one LSTM layer of the head."""
        layers: int = Field(1, ge=0, le=1000)
        """LSTM layers of the head; 0 for none."""
        far: int = Field(16, ge=1)
        """Distance from the predicate, in words, from which the head treats all distances alike."""
        dropout: float = Field(0.3, ge=0, lt=1)
        """Dropout of the head; one mask for all tokens of a sentence."""

    def __init__(self, config: Any, task: Task, reader: FeatureNetwork | None = None) -> None:
        super().__init__(config, task)
        marks = list(task.inputs.marks) if isinstance(task.inputs, WordInputs) else []
        if len(marks) != 1:
            raise ConfigError(
                "features 'one_reading' requires sentences with one kind of mark, the predicate (task 'srl'); this "
                f"task's inputs have {len(marks)}"
            )
        if reader is None:
            raise ConfigError(
                'features \'one_reading\' found no reader; expected one, as in "reader": {"type": "bilstm"}'
            )
        [self._mark] = marks
        self.reader = reader
        self.token_part = nn.Linear(reader.output_dim, config.dim)
        self.mark_part = nn.Linear(reader.output_dim, config.dim, bias=False)
        self.distances = nn.Embedding(2 * config.far + 1, config.dim)
        nn.init.normal_(self.distances.weight, std=0.1)
        self.forwards, self.backwards = make_lstms(config.dim, config.hidden, config.layers)
        self.output_dim = 2 * config.hidden if config.layers else config.dim

    @classmethod
    def make_inner_task(cls, task: Task) -> Task:
        """The task without its mark, with the indexers of whole sentences."""
        if not isinstance(task.inputs, WordInputs):
            return task
        inner = copy(task)
        inner.inputs = replace(task.inputs, marks={})
        if isinstance(task, SharesSentences):
            inner.indexers = task.sentence_indexers()
        return inner

    def forward(self, x: X) -> Tensor:
        mask = token_mask(x)
        sentences, row = _find_sentences(x)
        states = self.reader(sentences)
        positions = (x.inputs[self._mark] > 0).int().argmax(1)
        limit = self.config.far
        distance = torch.arange(mask.shape[1], device=mask.device) - positions.unsqueeze(1)
        combined = self.token_part(states)[row] + self.mark_part(states[row, positions]).unsqueeze(1)
        h = torch.relu(combined + self.distances(distance.clamp(-limit, limit) + limit))
        p = self.config.dropout if self.training else 0.0
        return run_lstms(h, mask, self.forwards, self.backwards, partial(drop_words, p=p)) * mask.unsqueeze(-1)


def _find_sentences(x: X) -> tuple[X, Tensor]:
    """The distinct sentences of a batch, and the index of each row's, `(batch,)`; all rows if `x` has no sentences."""
    if "sentence" not in x.inputs:
        return x, torch.arange(x.size, device=x.inputs["words"].device)
    inputs = {name.removeprefix(WHOLE): value for name, value in x.inputs.items() if name.startswith(WHOLE)}
    words = inputs["words"]
    return X(inputs, words > 0, len(words)), x.inputs["sentence"]
