"""Task `text`: from raw texts to label sets; TSV, CSV, Parquet, JSONL and LibMultiLabel files, Reuters-21578, lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from spen_plugins.builtin.tasks.labels.label_formats import separator_of_labels
from spen_plugins.builtin.tasks.labels.label_settings import TextsConfig, check_texts
from spen_plugins.builtin.tasks.labels.label_task import LabelTask
from spen_plugins.builtin.tasks.labels.text_on_disk import TextMaker, text_index
from spen_plugins.data.catalogue import locate
from spen_plugins.data.disk.on_disk import Index, OnDisk
from spen_plugins.data.disk.shards import checksum, of_shards
from spen_plugins.data.equal_inputs import digest, shared_inputs, warn_of_shared
from spen_plugins.data.formats import head_of
from spen_plugins.data.parts import given
from spen_plugins.data.parts.carving import same_files
from spen_plugins.data.parts.file_parts import in_file_encoding, named_files, stays_on_disk
from spen_plugins.data.parts.partly_labelled import needs_memory
from spen_plugins.data.parts.stratification import stratify
from spen_plugins.data.raw_text import RawText
from spen_plugins.data.tables.label_cells import SEPARATOR, joined_label
from spen_plugins.data.tables.label_columns import lists_names
from spen_plugins.data.tables.label_names import read_names
from spen_plugins.data.text import read_lines, sha256, split_lines
from spen_plugins.data.texts.labelled_texts import has_labels, read_texts
from spen_plugins.data.texts.own_columns import Columns, columns_of_texts
from spen_plugins.data.texts.reuters import Document, read_reuters, sgm_files, shared_topics
from spen_plugins.data.texts.text_columns import Layout, Row
from spen_plugins.data.texts.words import is_unspaced, words_of
from spen_plugins.errors import ConfigError, DataError, did_you_mean
from spen_plugins.settings.facts import listed
from spen_plugins.spaces import LabelSet
from spen_plugins.task import HELD_OUT, Shown, TextInputs
from spen_plugins.task_parts import ReadsInputs, ReadsText, TakesExamples

FOLDS, SEED = 10, 0  # of the validation part of Reuters
MOD_APTE = (
    "Reuters-21578, ModApte: {train} training (validation included) and {test} test documents; the {labels} topics "
    f"both have. Validation: the first of {FOLDS} folds of the training documents by iterative stratification "
    f"(Sechidis et al. 2011), seed {SEED}: {{validation}} documents"
)


@dataclass(eq=False)
class Example:
    """A text and its label indices, None without gold."""

    text: str
    gold: np.ndarray | None
    items: dict[str, Any] = field(default_factory=dict)
    """Output of each indexer for the text, by the indexer's name."""
    weight: float = 1.0
    """The weight of its loss."""


class TextLabels(LabelTask, TakesExamples, ReadsInputs, ReadsText):
    """Multi-label classification of texts.

    Words are runs of letters and digits, including inner apostrophes, or what is between blanks; see the settings
    `words`, `punctuation`, `lowercase` and `digits`. The vocabulary is that of the training part.
    """

    inputs: TextInputs
    Config = TextsConfig
    kind = "texts"
    column_keys = ("text", "labels", "separator", "drop")

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._index: Index | None = None  # of a training part on disk
        self._unspaced = False  # unless the training texts are of such a script
        self._numbered = False  # unless labels may be given by their number in a file of names
        self._listing: str | None = None  # the file of label names that is `labels`
        for name in ("text", "labels"):
            column = getattr(config, name)
            if isinstance(column, str) and config.header is False and not lists_names(column):
                raise ConfigError(f"task.{name}: found the name {column!r}; names need task.header=true")
            if isinstance(column, int) and column < 1:
                raise ConfigError(f"task.{name}: found {column}; expected a number from 1, or a name")

    @in_file_encoding
    def load(self) -> None:
        check_texts(self.config)
        if self.config.in_memory:
            raise given.not_kept()
        if self.config.corpus:
            self._load_sample()
        elif self.config.reuters:
            self._load_reuters()
        else:
            self._load_files()
        self._learn()

    def take(self, parts: Mapping[str, Any], held_out: float = HELD_OUT, seed: int = 0) -> None:
        """Parts are pairs of texts, a list of strings, and labels: a list with each text's label names, or a matrix of
        0 and 1, `(texts, labels)`."""
        check_texts(self.config)
        found, weights = given.pairs(parts)
        labels, sets = given.label_sets({name: y for name, (_, y) in found.items()})
        self._set_labels(labels)
        texts = {name: given.texts(x, f"the texts of {name}") for name, (x, _) in found.items()}
        rows = {name: list(map(Example, some, sets[name])) for name, some in texts.items()}
        if weights is not None:
            rows["train"] = list(map(self._weighted, rows["train"], weights))
        inputs = {name: list(map(self._input, some)) for name, some in texts.items()}
        self._parts, self._split, self._notes = given.divide(rows, inputs, sets["train"], held_out, seed)
        self._files = given.checksums({n: [(e.text, e.gold) for e in some] for n, some in self._parts.items()})
        self._learn()

    def _learn(self) -> None:
        """Check the parts, and set what is known of their words."""
        self._notes.append(self._labels_named())
        names = self.space.labels
        joined = next(filter(None, (joined_label(names, {*names}, separator) for separator in ";|")), None)
        if joined is not None and self.config.separator is None:
            self._notes.append(f"warning: label {joined!r} consists of other labels; give each label apart, in a list")
        if not self.config.keep_empty:
            for name, some in self._parts.items():
                if not isinstance(some, OnDisk):  # indexed without them
                    self._parts[name] = [e for e in some if e.gold is None or len(e.gold)]
            self._split += "; texts without any label are left out"
        elif self.config.reuters:
            self._split += "; documents with none of these topics stay, with no gold label"
        if self._index is None:
            self._look_at_script(example.text for example in self._parts["train"])
            self._hide_gold(lambda example: replace(example, gold=None), lambda path: self._read(path, gold=False)[1])
            self._check_parts()
            counts = Counter(word for example in self._parts["train"] for word in self.words(example.text))
        else:
            self._check_parts({self._place[name] for name in self._index.values["labels"]})
            counts = Counter(dict(zip(self._index.values["words"], self._index.counts["words"].tolist(), strict=True)))
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        self.inputs = TextInputs([word for word, count in ordered if count >= self.config.min_count])
        self._weigh_classes()

    def _look_at_script(self, texts: Iterable[str]) -> None:
        self._unspaced = self.config.words == "rule" and is_unspaced(texts)
        if self._unspaced:
            self._notes.append("each character of Han, Kana, Thai, Lao, Khmer and Myanmar is a word of its own")

    def words(self, text: str) -> list[str]:
        """A text's words, normalised for the look-up."""
        return words_of(text, self.config, self._unspaced)

    def _input(self, text: str) -> bytes:
        """A key that texts of equal words have in common."""
        return digest(*self.words(text))

    def collate_inputs(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        for example in examples:
            if not self.indexers.keys() <= example.items.keys():
                words = self.words(example.text)
                example.items = {name: indexer.index(words) for name, indexer in self.indexers.items()}
        inputs: dict[str, Tensor] = {}
        for name, indexer in self.indexers.items():
            inputs.update(indexer.collate([example.items[name] for example in examples]))
        return inputs

    def length(self, example: Example) -> int:
        return len(example.text) if self._pads() else 1

    def _pads(self) -> bool:
        return any(indexer.pads for indexer in self.indexers.values())

    def show(self, example: Example) -> Shown:
        return Shown([example.text])

    def read(self, path: str) -> list[Example]:
        """Read a file in any of the formats, labels optional; a file of one text a line; or .sgm files of Reuters.

        All documents of a file, regardless of the split; topics unknown to the run are dropped.
        """
        return self._noted(path)

    def read_inputs(self, path: str) -> list[Example]:
        """As `read`, without gold: labels that the run doesn't know don't matter."""
        return self._noted(path, gold=False)

    def _noted(self, path: str, gold: bool = True) -> list[Example]:
        said, examples = self._read(locate(path), gold)
        if said is not None:
            self._notes = [f"{path}: read as {said} ({len(examples)} texts)"]
        self._source = None if said is None else locate(path)
        return examples

    def _read(self, where: Path, gold: bool = True) -> tuple[str | None, list[Example]]:
        """What was recognised, if it was not plain, and the texts; without gold labels aren't looked at."""
        if not of_shards(where) and (where.is_dir() or where.suffix == ".sgm"):
            return None, self._documents(read_reuters(where))
        if where.suffix == ".txt" and not has_labels(head_of(where)):
            return None, [Example(line, None) for line in read_lines(where)]
        found = read_texts(where, self._layout(), gold=False if gold else None)
        return found.said, self._rows(where, found.rows)

    def read_text(self, raw: RawText) -> list[Example]:
        """A text a line, as in a file: an empty line is a text, so that each line has its answer."""
        self._source = None
        return [Example(line.strip(), None) for line in split_lines(raw.text)]

    def _separator(self) -> str | None:
        return separator_of_labels(self._layout(), SEPARATOR)

    def _columns(self, examples: Sequence[Example]) -> Columns:
        names, rows = super()._columns(examples)
        return (names, rows) if names else (["text"], [[example.text] for example in examples])

    def _weighted(self, example: Example, weight: float) -> Example:
        return replace(example, weight=weight)

    def _own_columns(self, path: Path) -> Columns | None:
        return columns_of_texts(path, self._layout())

    def parse(self, item: Any) -> Example:
        """`{"text": "What a day!"}`, or the text alone; optional `"labels": ["joy"]` are gold."""
        item = {"text": item} if isinstance(item, str) else item
        if not isinstance(item, Mapping) or not isinstance(item.get("text"), str) or item.keys() - {"text", "labels"}:
            raise DataError("item", None, f"{item!r:.80}", 'a text, or {"text": "..."}, perhaps with "labels"')
        names = item.get("labels")
        if names is None:
            return Example(item["text"], None)
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise DataError("item", None, f"labels {names!r:.80}", 'a list of label names, as in ["a", "b"]')
        return Example(item["text"], self._numbers(names, "item", None))

    def facts(self) -> dict[str, Any]:
        return {
            "words": list(self.inputs.words),
            "labels": self.space.labels,
            "numbered": self._numbered,
            "unspaced": self._unspaced,
            **self.decoder_facts(),
            "split": self._split,
        }

    def restore(self, facts: Mapping[str, Any]) -> None:
        self._set_labels(listed(facts, "labels"), facts["numbered"])
        self._unspaced = facts.get("unspaced", False)
        self.inputs = TextInputs(listed(facts, "words"))
        self.restore_decoder(facts)
        self._split = facts["split"]

    def _load_sample(self) -> None:
        from spen_plugins.samples import labels as sample

        self._set_labels(sample.labels())
        self._parts = {name: [Example(*pair) for pair in pairs] for name, pairs in sample.texts().items()}
        self._split = "the sample corpus's own (synthetic)"

    def _load_files(self) -> None:
        c = self.config
        names = {key: name for key, name in named_files(c).items() if key != "split"}
        places = {name: locate(path) for name, path in names.items()}
        on_disk = stays_on_disk(c, named_files(c), needs_memory(c))
        if lists_names(c.labels):
            self._set_labels(read_names(locate(c.labels)), numbered=True)
            self._files[c.labels] = sha256(locate(c.labels))
        files = {n: read_texts(place, self._layout()) for n, place in places.items() if n != "train" or not on_disk}
        if on_disk:
            self._look_at_script(row.text for row in next(iter(files.values())).rows)
            check = self._numbers if self._numbered else None
            self._files[c.train] = checksum(places["train"])
            self._index, said = text_index(c, self._layout(), self.words, check, self._files, self._unspaced)
            self._notes.append(said)
        if not self._numbered:
            found = {label for file in files.values() for row in file.rows for label in row.labels or ()}
            self._set_labels(sorted(found.union(() if self._index is None else self._index.values["labels"])))
        if not self.space.labels:
            raise DataError(c.file or c.train, None, "no label in any line", "some labels (labels= is their column)")
        self._notes += [f"{names[n]}: read as {file.said} ({len(file.rows)} texts)" for n, file in files.items()]
        examples = {name: self._rows(places[name], file.rows) for name, file in files.items()}
        gold = {name: [example.gold for example in some] for name, some in examples.items()}
        inputs = {name: [self._input(example.text) for example in some] for name, some in examples.items()}
        parts = self._divide(gold, inputs)
        self._warn_of_shared(parts, inputs)
        self._parts = {part: [examples[name][row] for row in rows] for part, (name, rows) in parts.items()}
        self._weigh_examples(parts)
        if self._index is not None:
            if not same_files(names, self._files):
                words = {part: [self.words(example.text) for example in some] for part, some in self._parts.items()}
                counts = {part: int(self._index.contains({"words": some}).sum()) for part, some in words.items()}
                self._notes += warn_of_shared(("train", part, counts[part], len(some)) for part, some in words.items())
            make = TextMaker(self._index, self._place, self._stored)
            self._parts["train"] = OnDisk(self._index, make, self._lengths_on_disk)

    def _lengths_on_disk(self) -> np.ndarray:
        """`length` of each text on disk, `(example,)`."""
        assert self._index is not None
        return self._index.whole_numbers("length") if self._pads() else np.ones(len(self._index), dtype=np.int8)

    def _stored(self, words: Sequence[str], gold: np.ndarray) -> Example:
        """The example of a text on disk, of which its words are kept."""
        items = {name: indexer.index(words) for name, indexer in self.indexers.items()}
        return Example(" ".join(words), gold, items)

    def _load_reuters(self) -> None:
        folder = locate(self.config.reuters)
        documents = read_reuters(folder)
        labels = shared_topics(documents)
        if not labels:
            raise DataError(folder, None, "no topic that a training and a test document share", "the whole collection")
        self._set_labels(labels)
        train, test = (self._documents(d for d in documents if d.part == part) for part in ("train", "test"))
        gold = np.zeros((len(train), len(labels)), dtype=bool)
        for row, example in enumerate(train):
            gold[row, example.gold] = True
        held_out = stratify(gold, FOLDS, SEED) == 0  # repeated documents too go anywhere: published scores are on this
        self._parts = {
            "train": [train[i] for i in np.flatnonzero(~held_out)],
            "validation": [train[i] for i in np.flatnonzero(held_out)],
            "test": test,
        }
        self._notes += shared_inputs({name: [self._input(e.text) for e in some] for name, some in self._parts.items()})
        sizes = {"train": len(train), "test": len(test), "validation": int(held_out.sum()), "labels": len(labels)}
        self._split = MOD_APTE.format(**sizes)
        self._files = {f"{self.config.reuters}/{file.name}": sha256(file) for file in sgm_files(folder)}

    def _set_labels(self, names: Sequence[str], numbered: bool = False) -> None:
        self.space, self._numbered = LabelSet(list(names)), numbered
        self._listing = self.config.labels if numbered else None
        self._place = {str(i): i for i in range(len(names))} if numbered else {}
        self._place.update({name: i for i, name in enumerate(names)})

    def _layout(self) -> Layout:
        c = self.config
        by_names = SEPARATOR if self._numbered else None  # other labels than those named are errors anyway
        labels = None if c.labels == self._listing else c.labels
        return Layout(
            c.text or Layout.text, labels or Layout.labels, c.separator or by_names, c.header, tuple(c.unused)
        )

    def _rows(self, path: Path, rows: Iterable[Row]) -> list[Example]:
        return [
            Example(row.text, None if row.labels is None else self._numbers(row.labels, path, row.line)) for row in rows
        ]

    def _documents(self, documents: Iterable[Document]) -> list[Example]:
        known = self._place.keys()
        return [
            Example(d.text, self._numbers([t for t in d.topics if t in known], "", d.line) if d.indexed else None)
            for d in documents
        ]

    def _numbers(self, names: Sequence[str], path: object, line: int | None) -> np.ndarray:
        for name in names:
            if name not in self._place:
                near = did_you_mean(name, self.space.labels)
                wanted = f"one of the {len(self.space.labels)} labels known"
                raise DataError(path, line, f"label {name!r}", f"{wanted}{', or its number' * self._numbered}.{near}")
        return np.array(sorted({self._place[name] for name in names}), dtype=np.int32)
