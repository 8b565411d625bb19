"""Parts of task `text`: from files, in memory or on disk, from Reuters-21578 and from the sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from spen_plugins.builtin.tasks.labels import reuters_parts
from spen_plugins.builtin.tasks.labels.label_task import LabelTask
from spen_plugins.builtin.tasks.labels.reuters_parts import Document, sgm_files
from spen_plugins.builtin.tasks.labels.text_on_disk import TextMaker, text_index
from spen_plugins.data.catalogue import locate
from spen_plugins.data.disk.on_disk import Index, OnDisk
from spen_plugins.data.disk.shards import checksum
from spen_plugins.data.equal_inputs import digest, shared_inputs, warn_of_shared
from spen_plugins.data.parts.file_parts import named_files, stays_on_disk
from spen_plugins.data.parts.gold import needs_memory
from spen_plugins.data.tables.label_cells import SEPARATOR, joined_label
from spen_plugins.data.tables.label_columns import lists_names, number_labels, read_names
from spen_plugins.data.text import sha256
from spen_plugins.data.texts.labelled_texts import TextFile, read_texts
from spen_plugins.data.texts.text_columns import Layout, Row
from spen_plugins.data.texts.words import is_unspaced, words_of
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.spaces import LabelSet
from spen_plugins.task import TextInputs


@dataclass(eq=False)
class Example:
    """A text and its label indices, None without gold."""

    text: str
    gold: np.ndarray | None
    items: dict[str, Any] = field(default_factory=dict)
    """Output of each indexer for the text, by the indexer's name."""
    weight: float = 1.0
    """The weight of its loss."""


class TextParts(LabelTask):
    """Texts with label sets, and their known words and labels."""

    inputs: TextInputs
    kind = "texts"

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._index: Index | None = None  # of a training part on disk
        self._unspaced = False  # true if the training texts are in such a script
        self._label_numbers: dict[str, int] = {}  # by name, and by number in a file of names
        self._label_file: str | None = None  # the file of label names in the setting `labels`
        for name in ("text", "labels"):
            column = getattr(config, name)
            if isinstance(column, int) and column < 1:
                raise ConfigError(f"task.{name}: found {column}; expected a name, or a number from 1")

    def _finish(self) -> None:
        """Checks the parts, and sets the facts about their words and labels."""
        self._notes.append(self._name_labels())
        self._warn_of_similar_labels()
        self._leave_out_empty_sets()
        if self._index is None:
            self._detect_script(example.text for example in self._parts["train"])
            self._hide_gold()
            self._check_parts()
            counts = Counter(word for example in self._parts["train"] for word in self.words(example.text))
        else:
            self._check_parts({self._label_numbers[name] for name in self._index.values["labels"]})
            counts = Counter(dict(zip(self._index.values["words"], self._index.counts["words"].tolist(), strict=True)))
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        self.inputs = TextInputs([word for word, count in ordered if count >= self.config.min_count])
        self._describe_labels()

    def _warn_of_similar_labels(self) -> None:
        """Warns of a label that consists of others, and of labels that differ only in capitals."""
        names = self.space.labels
        joined_name = next(filter(None, (joined_label(names, {*names}, separator) for separator in ";|")), None)
        if joined_name is not None and self.config.separator is None:
            self._notes.append(f"warning: label {joined_name!r} consists of other labels; pass one list item per label")
        folded = {name.lower(): name for name in names}
        if twin := next((name for name in names if folded[name.lower()] != name), None):
            pair = f"{twin!r} and {folded[twin.lower()]!r}"
            self._notes.append(f"warning: labels {pair} differ only in capitals; they count as two labels")

    def _leave_out_empty_sets(self) -> None:
        """Leaves out texts without any label, unless the setting keeps them."""
        if not self.config.keep_empty:
            for name, examples in self._parts.items():
                if not isinstance(examples, OnDisk):  # indexed without them
                    self._parts[name] = [e for e in examples if e.gold is None or len(e.gold)]
            self._split += "; texts without any label are left out"
        elif self.config.reuters:
            self._split += "; documents with none of these topics stay, with no gold label"

    def _detect_script(self, texts: Iterable[str]) -> None:
        self._unspaced = self.config.words == "rule" and is_unspaced(texts)
        if self._unspaced:
            self._notes.append("each character of Han, Kana, Thai, Lao, Khmer and Myanmar is a separate word")

    def words(self, text: str) -> list[str]:
        """A text's words, normalised for the look-up."""
        return words_of(text, self.config, self._unspaced)

    def _make_key(self, text: str) -> bytes:
        """A key that texts with equal words share."""
        return digest(*self.words(text))

    def _uses_padding(self) -> bool:
        return any(indexer.pads for indexer in self.indexers.values())

    def _load_sample(self) -> None:
        from spen_plugins.samples import labels as sample

        self._set_labels(sample.labels())
        self._parts = {name: [Example(*pair) for pair in pairs] for name, pairs in sample.texts().items()}
        self._split = "the sample corpus's own (synthetic)"

    def _load_files(self) -> None:
        c = self.config
        if c.reuters:
            self._load_reuters()
            return
        names = {key: name for key, name in named_files(c).items() if key != "split"}
        paths = {key: locate(name) for key, name in names.items()}
        if lists_names(c.labels):
            self._set_labels(read_names(locate(c.labels)), c.labels)
            self._files[c.labels] = sha256(locate(c.labels))
        on_disk = stays_on_disk(c, named_files(c), needs_memory(c))
        memory_paths = {key: path for key, path in paths.items() if key != "train" or not on_disk}
        files = {key: read_texts(path, self._make_layout()) for key, path in memory_paths.items()}
        if on_disk:
            self._index_texts(paths["train"], next(iter(files.values())))
        if not self._label_file:
            self._set_labels(self._list_file_labels(files))
        if not self.space.labels:
            raise DataError(c.file or c.train, None, "no label in any line", "some labels (labels= names their column)")
        self._notes += [f"{names[key]}: read as {file.note}" for key, file in files.items()]
        self._set_parts({key: self._make_examples(paths[key], file.rows) for key, file in files.items()})
        if self._index is not None:
            self._warn_of_indexed(self._index)
            maker = TextMaker(self._index, self._label_numbers, self._restore_example)
            self._parts["train"] = OnDisk(self._index, maker, self._read_lengths)

    def _set_parts(self, examples: Mapping[str, Sequence[Example]]) -> None:
        """Divides the examples of each file into parts."""
        gold = {key: [example.gold for example in file_examples] for key, file_examples in examples.items()}
        inputs = {
            key: [self._make_key(example.text) for example in file_examples] for key, file_examples in examples.items()
        }
        parts = self._divide(gold, inputs)
        self._warn_of_shared(parts, inputs)
        self._parts = {part: [examples[key][row] for row in rows] for part, (key, rows) in parts.items()}
        self._weigh_examples(parts)

    def _index_texts(self, train: Path, other_file: TextFile) -> None:
        """Indexes the training part on disk; its script is detected in another part's texts."""
        self._detect_script(row.text for row in other_file.rows)
        check = self._number_labels if self._label_file else None
        self._files[self.config.train] = checksum(train)
        self._index, note = text_index(self.config, self._make_layout(), self.words, check, self._files, self._unspaced)
        self._notes.append(note)

    def _list_file_labels(self, files: Mapping[str, TextFile]) -> list[str]:
        """Names of all labels in these files, and on disk."""
        labels = {label for file in files.values() for row in file.rows for label in row.labels or ()}
        return sorted(labels.union(() if self._index is None else self._index.values["labels"]))

    def _warn_of_indexed(self, index: Index) -> None:
        """Notes parts in memory that share inputs with the training part on disk."""
        words = {part: [self.words(example.text) for example in examples] for part, examples in self._parts.items()}
        counts = {part: int(index.contains({"words": part_words}).sum()) for part, part_words in words.items()}
        self._notes += warn_of_shared(
            ("train", part, counts[part], len(part_words)) for part, part_words in words.items()
        )

    def _read_lengths(self) -> np.ndarray:
        """`length` of each text on disk, `(example,)`."""
        assert self._index is not None
        return self._index.whole_numbers("length") if self._uses_padding() else np.ones(len(self._index), dtype=np.int8)

    def _restore_example(self, words: Sequence[str], gold: np.ndarray) -> Example:
        """The example of a text on disk, where only its words are stored."""
        items = {name: indexer.index(words) for name, indexer in self.indexers.items()}
        return Example(" ".join(words), gold, items)

    def _load_reuters(self) -> None:
        folder = locate(self.config.reuters)
        labels, parts, self._split = reuters_parts.read_parts(folder)
        self._set_labels(labels)
        self._parts = {part: self._make_document_examples(documents) for part, documents in parts.items()}
        self._notes += shared_inputs(
            {name: [self._make_key(e.text) for e in examples] for name, examples in self._parts.items()}
        )
        self._files = {f"{self.config.reuters}/{file.name}": sha256(file) for file in sgm_files(folder)}

    def _set_labels(self, names: Sequence[str], file: str | None = None) -> None:
        self.space, self._label_file = LabelSet(list(names)), file
        numbers = {str(i): i for i in range(len(names))} if file else {}
        self._label_numbers = numbers | {name: i for i, name in enumerate(names)}

    def _number_labels(self, names: Sequence[str], path: object, line: int | None) -> np.ndarray:
        kind = f"known labels{', or its number' * (self._label_file is not None)}"
        return number_labels(names, self._label_numbers, self.space.labels, kind, path, line)

    def _make_layout(self) -> Layout:
        c = self.config
        fallback = SEPARATOR if self._label_file else None  # other labels than those named are errors anyway
        labels = None if c.labels == self._label_file else c.labels
        return Layout(
            c.text or Layout.text, labels or Layout.labels, c.separator or fallback, c.header, tuple(c.unused)
        )

    def _make_examples(self, path: Path, rows: Iterable[Row]) -> list[Example]:
        indices = self._number_labels
        return [Example(row.text, None if row.labels is None else indices(row.labels, path, row.line)) for row in rows]

    def _make_document_examples(self, documents: Sequence[Document]) -> list[Example]:
        """Documents with the topics that the task knows."""
        known_topics = self._label_numbers.keys()
        topics = [[topic for topic in d.topics if topic in known_topics] if d.indexed else None for d in documents]
        golds = [None if names is None else self._number_labels(names, "", None) for names in topics]
        return [Example(d.text, gold) for d, gold in zip(documents, golds, strict=True)]
