"""Feature networks `words` and `labels_as_words`: whole texts, which any network for sentences reads."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from spen_plugins import Config, ConfigError, FeatureNetwork, Indexer, LabelSet, Task, TextInputs, WordInputs, X
from spen_plugins.nn import take_vectors

IS_LABEL, WHICH_LABEL = "label", "which_label"
"""Marks of words: 1 for words that stand for a label, and the number of the label, from 1."""


class ReadingConfig(Config):
    """Settings of both networks."""

    longest: int | None = Field(None, ge=1)
    """Words of a text that are read, the first ones; null: all."""


class TextIndexer(Indexer):
    """A text's words, and a word for each label after them, for the indexers of the network that reads them.

    A batch has `NAME.words` `(batch, word)`, 0 on padding and 1 for unknown words and labels; `NAME.count` `(batch,)`,
    the number of words before the labels; and the tensors of the other indexers, with `NAME.` before their names.
    """

    pads = True

    def __init__(self, words: Sequence[str], others: Mapping[str, Indexer], longest: int | None, labels: int) -> None:
        self._numbers = {word: i for i, word in enumerate(words, 2)}
        self.others, self._longest, self._labels = others, longest, labels
        parts = [str(longest), str(labels), *sorted(others)]
        self.name = "text:" + "+".join(parts).replace("%", "%25").replace(".", "%2E")

    def index(self, words: Sequence[str]) -> tuple[list[int], dict[str, Any]]:
        words = list(words)[: self._longest] or [""]  # a network for sentences needs a word
        numbers = [self._numbers.get(word, 1) for word in words] + [1] * self._labels
        words += ["label"] * self._labels
        return numbers, {name: other.index(words) for name, other in self.others.items()}

    def length(self, item: tuple[list[int], dict[str, Any]]) -> int:
        return len(item[0])

    def collate(self, items: Sequence[tuple[list[int], dict[str, Any]]]) -> dict[str, Tensor]:
        longest = max(len(numbers) for numbers, _ in items)
        words = torch.tensor([numbers + [0] * (longest - len(numbers)) for numbers, _ in items])
        count = torch.tensor([len(numbers) - self._labels for numbers, _ in items])
        inputs = {"words": words, "count": count}
        for name, other in self.others.items():
            inputs.update(other.collate([parts[name] for _, parts in items]))
        return {f"{self.name}.{name}": value for name, value in inputs.items()}


class TextReader(FeatureNetwork, ABC):
    """Base of networks over a `reader`, a network for sentences (`bilstm`, `encoder`, `transformer`)."""

    parts: ClassVar[Mapping[str, str]] = {"reader": "features"}
    Config = ReadingConfig

    def __init__(self, config: Any, task: Task, reader: FeatureNetwork | None = None, labels: int = 0) -> None:
        super().__init__(config, task)
        if not isinstance(task.inputs, TextInputs):
            raise ConfigError(
                f"features {type(self).__name__!r} requires texts as inputs (task 'text'); found "
                f"{type(task.inputs).__name__}. Use a network for these, such as 'mlp'"
            )
        if reader is None:
            raise ConfigError(
                f"features {type(self).__name__!r} requires a reader, a network for sentences, such as "
                '"reader": {"type": "bilstm"}'
            )
        self.reader, self.labels = reader, labels
        self.output_dim, self.large = reader.output_dim, reader.large
        indexers = (part.indexer() for part in reader.modules() if isinstance(part, FeatureNetwork))
        self._indexer = TextIndexer(task.inputs.words, dict(filter(None, indexers)), config.longest, labels)

    @classmethod
    def make_inner_task(cls, task: Task) -> Task:
        """The task with sentences as inputs, which have the words of the texts."""
        if not isinstance(task.inputs, TextInputs):
            return task
        inner_task = copy(task)
        inner_task.inputs = WordInputs(["", "", *task.inputs.words], cls.marks(task))
        inner_task.indexers = {}
        return inner_task

    @classmethod
    def marks(cls, task: Task) -> dict[str, int]:
        """`WordInputs.marks` of the sentences."""
        return {}

    def indexer(self) -> tuple[str, Indexer]:
        return self._indexer.name, self._indexer

    def read(self, x: X) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors of words and labels `(batch, word, output_dim)`, their mask, and the number of words of each text."""
        prefix = f"{self._indexer.name}."
        inputs = {name.removeprefix(prefix): value for name, value in x.inputs.items() if name.startswith(prefix)}
        count, mask = inputs.pop("count"), inputs["words"] > 0
        if self.labels:
            label_numbers = torch.arange(mask.shape[1], device=mask.device) - count.unsqueeze(1) + 1
            inputs[WHICH_LABEL] = label_numbers.clamp(min=0) * mask
            inputs[IS_LABEL] = (inputs[WHICH_LABEL] > 0).long()
        return self.reader(X(inputs, mask, x.size)), mask, count


class TextWordsConfig(ReadingConfig):
    """Settings of `words`."""

    pooling: Literal["none", "mean", "max"] = "none"
    """Vector of a text: the words' vectors themselves, for `decoders.sequence`; their mean, or in each dimension the
    largest, for nets that want one."""


class TextWords(TextReader):
    """Texts -> vectors of their words, `(batch, word, output_dim)`, zero on padding; with `pooling`
    `(batch, output_dim)`."""

    Config = TextWordsConfig

    def forward(self, x: X) -> Tensor:
        words, mask, count = self.read(x)
        if self.config.pooling == "none":
            return words * mask.unsqueeze(2)
        if self.config.pooling == "mean":
            return (words * mask.unsqueeze(2)).sum(1) / count.unsqueeze(1)
        return words.masked_fill(~mask.unsqueeze(2), -torch.inf).amax(1)


class LabelsAsWords(TextReader):
    """Texts -> vectors of the labels, `(batch, label, output_dim)`: after its words a text has a word for each label,
    all read together (SeqTag and LACO; Zhang et al. 2021).

    All labels have the same word, marked by a vector for each label; as in the released code, the label's name is not
    used. An encoder with token types uses the second one for labels.
    """

    def __init__(self, config: Any, task: Task, reader: FeatureNetwork | None = None) -> None:
        if not isinstance(task.space, LabelSet):
            raise ConfigError(
                f"features 'decoders.labels_as_words' requires label sets as outputs; found {type(task.space).__name__}"
            )
        super().__init__(config, task, reader, len(task.space.labels))

    @classmethod
    def marks(cls, task: Task) -> dict[str, int]:
        return {IS_LABEL: 2, WHICH_LABEL: len(task.space.labels) + 1}

    def forward(self, x: X) -> Tensor:
        return self.split(x)[2]

    def split(self, x: X) -> tuple[Tensor, Tensor, Tensor]:
        """Vectors of the words, zero elsewhere, `(batch, word, output_dim)`, their mask, and vectors of the labels."""
        vectors, mask, count = self.read(x)
        positions = torch.arange(mask.shape[1], device=mask.device)
        is_word = positions < count.unsqueeze(1)
        places = count.unsqueeze(1) + torch.arange(self.labels, device=mask.device)
        labels = take_vectors(vectors, places)
        return vectors * is_word.unsqueeze(2), is_word, labels


def read_words(features: FeatureNetwork, x: X) -> tuple[Tensor, Tensor]:
    """Vectors of words and their mask, `(batch, word, dim)` and `(batch, word)`; one vector for x is one word.

    Raises:
        ConfigError: the network's vectors are neither of words nor of x.
    """
    if isinstance(features, TextWords) and features.config.pooling == "none":
        words, mask, _ = features.read(x)
        return words, mask
    vectors = features(x)
    if vectors.dim() != 2:
        raise ConfigError(
            "inference_net 'decoders.sequence' requires features 'decoders.words', or features with one vector per "
            f"text; found {type(features).__name__} with vectors of shape {tuple(vectors.shape[1:])}"
        )
    return vectors.unsqueeze(1), torch.ones_like(vectors[:, :1], dtype=torch.bool)
