"""Toy tasks with random data in memory, one for each kind of output, and a feature network for labels and tags."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spen_plugins.batch import Batch, X
from spen_plugins.errors import ConfigError
from spen_plugins.features import FeatureNetwork
from spen_plugins.file_task import FileTask
from spen_plugins.settings.config import Config
from spen_plugins.spaces import BinaryGrid, LabelSet, Proposal, RealGrid, TagSequence
from spen_plugins.task import PARTS, ImageInputs, Metric, Task, VectorInputs, WordInputs


class MeanScore(Metric):
    """The space's soft score of decoded outputs, mean over examples."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.total, self.seen = 0.0, 0

    def update(self, proposal: Proposal, batch: Batch) -> None:
        if batch.gold is None:
            return
        scores = self._task.space.score(self._task.decode(proposal), batch.gold, batch.x.mask)[:, 0]
        self.total += float((scores * batch.labelled).sum())
        self.seen += int(batch.labelled.sum())

    def compute(self) -> dict[str, Any]:
        return {"score": self.total / max(self.seen, 1)}


class _Toy(FileTask):
    """Base of the toy tasks: random examples with their own seed, and no files."""

    Config = Config

    def __init__(self, config: Config | None = None, examples: int = 12, seed: int = 0) -> None:
        super().__init__(config or Config())
        self._size, self._seed = examples, seed
        self.load()

    def load(self) -> None:
        self.restore({})
        generator = torch.Generator().manual_seed(self._seed)
        self.parts = {part: [self._make_example(generator) for _ in range(self._size)] for part in PARTS}

    def read(self, path: str) -> Sequence[Any]:
        return self.part("test")

    def parse(self, item: Any) -> Any:
        return item

    @abstractmethod
    def _make_example(self, generator: torch.Generator) -> Any:
        """A random example."""


class ToyLabels(_Toy):
    """Vectors with label sets. An example is `(vector, labels)`, two lists of numbers; labels may be None.

    Args:
        labels, size: number of labels, and size of the vectors.
        binary: if true, vectors are binary, and feature networks get the indices of the ones.
    """

    def __init__(self, labels: int = 4, size: int = 5, binary: bool = False, **options: Any) -> None:
        self._labels, self._width, self._binary = labels, size, binary
        super().__init__(**options)

    def set_up(self) -> None:
        self.space = LabelSet([f"label{i}" for i in range(self._labels)])
        self.inputs = VectorInputs(self._width, self._binary)

    def _make_example(self, generator: torch.Generator) -> Any:
        vector = torch.randn(self._width, generator=generator)
        if self._binary:
            vector = (vector > 0).float()
        return vector.tolist(), (torch.rand(self._labels, generator=generator) < 0.5).float().tolist()

    def collate(self, examples: Sequence[Any], rows: Sequence[int] | None = None) -> Batch:
        vectors = torch.tensor([vector for vector, _ in examples])
        inputs = {"vector": vectors}
        if self._binary:
            lengths = (vectors > 0).sum(1)
            inputs = {"indices": vectors.nonzero()[:, 1], "offsets": lengths.cumsum(0) - lengths}
        gold = [labels if labels is not None else [0.0] * self._labels for _, labels in examples]
        labelled = [labels is not None for _, labels in examples]
        return Batch.of(inputs, None, torch.tensor(gold).unsqueeze(1), labelled, rows)


class ToyTags(_Toy):
    """Sentences with BIO tags. An example is `(words, marks, tags)`, lists of equal length; tags: indices or None."""

    WORDS: ClassVar = ["<padding>", "<unknown>", "dogs", "chase", "cats", "and", "quickly", "flee"]
    TAGS: ClassVar = ["O", "B-A0", "I-A0", "B-A1"]

    def set_up(self) -> None:
        self.space = TagSequence(self.TAGS, "bio")
        self.inputs = WordInputs(self.WORDS, {"predicate": 2})

    def _make_example(self, generator: torch.Generator) -> Any:
        length = int(torch.randint(2, 7, (), generator=generator))
        numbers = torch.rand(length, 2, generator=generator)
        words = [self.WORDS[2 + int(u * (len(self.WORDS) - 2))] for u in numbers[:, 0]]
        marks = [int(i == length // 2) for i in range(length)]
        return words, marks, [int(u * len(self.TAGS)) for u in numbers[:, 1]]

    def length(self, example: Any) -> int:
        return len(example[0])

    def collate(self, examples: Sequence[Any], rows: Sequence[int] | None = None) -> Batch:
        tokens = max(len(words) for words, _, _ in examples)
        mask = torch.tensor([[i < len(words) for i in range(tokens)] for words, _, _ in examples])
        labelled = torch.tensor([tags is not None for _, _, tags in examples])
        numbers = {word: i for i, word in enumerate(self.WORDS)}
        inputs = {
            "words": _pad([[numbers.get(word, 1) for word in words] for words, _, _ in examples], tokens),
            "predicate": _pad([marks for _, marks, _ in examples], tokens),
        }
        inputs |= self.index([words for words, _, _ in examples])
        tags = _pad([tags or [] for _, _, tags in examples], tokens)
        gold = self.space.one_hot(tags.unsqueeze(1), mask & labelled.unsqueeze(1))
        return Batch.of(inputs, mask, gold, labelled.tolist(), rows)


class _ToyGrids(_Toy):
    """Base of the toy tasks of images. An example is an image and its gold, which may be None.

    Args:
        padded: if true, sizes differ and batches have a mask; otherwise all images have one size, and masks are None.
    """

    selection: ClassVar[str] = "score"

    def __init__(self, padded: bool = True, **options: Any) -> None:
        self._is_padded = padded
        super().__init__(**options)

    def _draw(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """A noisy and a clean image."""
        size, is_wide = torch.randint(3, 7, (), generator=generator), torch.randint(2, (), generator=generator)
        rows, columns = (int(size + 1 - is_wide), int(size + is_wide)) if self._is_padded else (5, 6)
        clean = torch.rand(rows, columns, generator=generator)
        return clean + 0.5 * torch.randn(rows, columns, generator=generator), clean

    def length(self, example: Any) -> int:
        return sum(example[0].shape[-2:])

    def metric(self) -> Metric:
        return MeanScore(self)

    def collate(self, examples: Sequence[Any], rows: Sequence[int] | None = None) -> Batch:
        height, width = (max(noisy.shape[axis] for noisy, _ in examples) for axis in (-2, -1))

        def pad(images: Sequence[Tensor]) -> Tensor:
            return torch.stack([F.pad(i, (0, width - i.shape[-1], 0, height - i.shape[-2])) for i in images])

        labelled = [clean is not None for _, clean in examples]
        mask = pad([torch.ones(noisy.shape[-2:]) for noisy, _ in examples]).bool() if self._is_padded else None
        gold = pad([torch.zeros(noisy.shape[-2:]) if clean is None else clean for noisy, clean in examples])
        inputs = {"image": pad([noisy for noisy, _ in examples])}
        return Batch.of(inputs, mask, gold.unsqueeze(1), labelled, rows)


class ToyImages(_ToyGrids):
    """Noisy images with clean ones. An example is `(noisy, clean)`, two tensors `(row, column)`; clean may be None."""

    def set_up(self) -> None:
        self.space = RealGrid()
        self.inputs = ImageInputs()

    def _make_example(self, generator: torch.Generator) -> Any:
        return self._draw(generator)


class ToyMasks(_ToyGrids):
    """Images of two channels with masks of their bright pixels. An example is `(image, mask)`, tensors `(channel, row,
    column)` and `(row, column)`; the mask may be None."""

    def set_up(self) -> None:
        self.space = BinaryGrid()
        self.inputs = ImageInputs(channels=2)

    def _make_example(self, generator: torch.Generator) -> Any:
        noisy, clean = self._draw(generator)
        return torch.stack([noisy, noisy.square()]), (clean > 0.5).float()


class ToyFeatures(FeatureNetwork):
    """A small smooth feature network for vectors and sentences; it encodes each token of a sentence separately."""

    output_dim = 3
    contextual = False

    def __init__(self, task: Task) -> None:
        super().__init__(Config(), task)
        if not isinstance(task.inputs, (VectorInputs, WordInputs)):
            raise ConfigError(f"ToyFeatures reads vectors and words, but the inputs are {type(task.inputs).__name__}")
        has_words = isinstance(task.inputs, WordInputs)
        self.table = nn.Embedding(len(task.inputs.words), self.output_dim) if has_words else None
        self.linear = nn.Linear(self.output_dim if has_words else task.inputs.size, self.output_dim)

    def forward(self, x: X) -> Tensor:
        return torch.tanh(self.linear(x.inputs["vector"] if self.table is None else self.table(x.inputs["words"])))


def _pad(rows: Sequence[Sequence[int]], tokens: int) -> Tensor:
    return torch.tensor([[*row, *[0] * (tokens - len(row))] for row in rows])
