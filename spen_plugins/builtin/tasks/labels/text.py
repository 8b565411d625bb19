"""Task `text`: from raw texts to label sets; TSV, CSV, Parquet, JSONL and LibMultiLabel files, Reuters-21578, lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from spen_plugins.builtin.tasks.labels.label_parts import Columns, find_text_columns
from spen_plugins.builtin.tasks.labels.label_settings import TextsConfig, check_data
from spen_plugins.builtin.tasks.labels.reuters_parts import read_reuters
from spen_plugins.builtin.tasks.labels.text_parts import Example, TextParts
from spen_plugins.data.disk.shards import is_sharded
from spen_plugins.data.formats import read_head
from spen_plugins.data.parts import given
from spen_plugins.data.parts.rules import TakesRules
from spen_plugins.data.tables.label_cells import SEPARATOR
from spen_plugins.data.text import RawText, read_lines, split_lines
from spen_plugins.data.texts.labelled_texts import has_labels, read_texts
from spen_plugins.errors import DataError
from spen_plugins.files import to_json
from spen_plugins.settings.facts import listed
from spen_plugins.task import HELD_OUT, Shown, TextInputs
from spen_plugins.task_parts import ReadsText


class TextLabels(TextParts, TakesRules, ReadsText):
    """Multi-label classification of texts.

    Words are runs of letters and digits, including inner apostrophes, or the strings between blanks; see the settings
    `words`, `punctuation`, `lowercase` and `digits`. The vocabulary is that of the training part.
    """

    Config = TextsConfig
    column_keys = ("text", "labels", "separator", "drop", "header")

    def take(self, parts: Mapping[str, Any], held_out: float = HELD_OUT, seed: int = 0) -> None:
        """Parts are pairs of texts, a list of strings, and labels: a list with each text's label names, or a matrix of
        0 and 1, `(texts, labels)`."""
        self._check_config()
        pairs, weights = given.pairs(parts)
        labels, sets = given.label_sets({name: y for name, (_, y) in pairs.items()})
        self._set_labels(labels)
        texts = {name: given.texts(x, f"the texts of {name}") for name, (x, _) in pairs.items()}
        rows = {name: list(map(Example, strings, sets[name])) for name, strings in texts.items()}
        if weights is not None:
            rows["train"] = [
                replace(example, weight=weight) for example, weight in zip(rows["train"], weights, strict=True)
            ]
        inputs = {name: list(map(self._make_key, strings)) for name, strings in texts.items()}
        self._parts, self._split, self._notes = given.divide(rows, inputs, sets["train"], held_out, seed)
        self._files = given.checksums({n: [(e.text, e.gold) for e in examples] for n, examples in self._parts.items()})
        self._finish()

    def _finish(self) -> None:
        super()._finish()
        self._notes += self.apply_rules(self._find_hits, lambda example: example.gold)
        sizes = [len(example.gold) for example in self._parts["train"] if example.gold is not None]
        if self.rules is not None and 2 * sizes.count(0) > len(sizes):
            self._notes.append(
                "warning: most training texts have gold without any label (an empty cell); put unlabelled texts into a "
                "separate file, task.unlabelled=FILE"
            )

    def _find_hits(self, example: Example) -> Any:
        example.items["rules"] = self.rules.index([example.text])
        return example.items["rules"]

    def _check_config(self) -> None:
        check_data(self.config, ("corpus", "in_memory", "reuters"))

    def collate_inputs(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        for example in examples:
            if missing := self.indexers.keys() - example.items.keys():
                words = self.words(example.text)
                for name in missing:
                    example.items[name] = self.indexers[name].index([example.text] if name == "rules" else words)
        inputs: dict[str, Tensor] = {}
        for name, indexer in self.indexers.items():
            inputs.update(indexer.collate([example.items[name] for example in examples]))
        return inputs

    def length(self, example: Example) -> int:
        return len(example.text) if self._uses_padding() else 1

    def show(self, example: Example) -> Shown:
        return Shown([example.text])

    def _read(self, path: Path, gold: bool | None) -> tuple[str | None, list[Example]]:
        """A file may also have one text per line, or be Reuters' .sgm: all its documents, regardless of the split,
        without topics that the run doesn't know."""
        if not is_sharded(path) and (path.is_dir() or path.suffix == ".sgm"):
            return None, self._make_document_examples(read_reuters(path))
        if path.suffix == ".txt" and not has_labels(read_head(path)):
            return None, [Example(line, None) for line in read_lines(path)]
        file = read_texts(path, self._make_layout(), gold=gold)
        return file.note, self._make_examples(path, file.rows)

    def read_text(self, raw: RawText) -> list[Example]:
        """One text per line, as in a file; an empty line is a text, so that each line has a prediction."""
        self._source = None
        return [Example(line.strip(), None) for line in split_lines(raw.text)]

    def _find_separator(self) -> str | None:
        layout = self._make_layout()
        is_one_column = isinstance(layout.labels, int) or (
            isinstance(layout.labels, str) and not layout.labels.endswith("*")
        )
        return (layout.separator or SEPARATOR) if is_one_column else None

    def _list_columns(self, examples: Sequence[Example]) -> Columns:
        names, rows = super()._list_columns(examples)
        return (names, rows) if names else (["text"], [[example.text] for example in examples])

    def _read_own_columns(self, path: Path) -> Columns | None:
        return find_text_columns(path, self._make_layout())

    def parse(self, item: Any) -> Example:
        """`{"text": "What a day!"}`, or the text alone; optional `"labels": ["joy"]` are gold.

        In place of "text", the name of the run's own text column is a key too.
        """
        own_key = self.config.text if isinstance(self.config.text, str) else "text"
        item = {own_key: item} if isinstance(item, str) else item
        text_keys = {"text", own_key} & item.keys() if isinstance(item, Mapping) else set()
        text = item[text_keys.pop()] if len(text_keys) == 1 else None
        if not isinstance(text, str) or item.keys() - {"text", own_key, "labels"}:
            form = f'a text, or {{{to_json(own_key)}: "..."}}, optionally with "labels"'
            raise DataError("item", None, f"{item!r:.80}", form)
        names = item.get("labels")
        if names is None:
            return Example(text, None)
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise DataError("item", None, f"labels {names!r:.80}", 'a list of label names, as in ["a", "b"]')
        return Example(text, self._number_labels(names, "item", None))

    def facts(self) -> dict[str, Any]:
        return {
            "words": list(self.inputs.words),
            "labels": self.space.labels,
            "numbered": self._label_file is not None,
            "unspaced": self._unspaced,
            **self.label_facts(),
            "split": self._split,
        }

    def restore(self, facts: Mapping[str, Any]) -> None:
        self._set_labels(listed(facts, "labels"), self.config.labels if facts["numbered"] else None)
        self._unspaced = facts["unspaced"]
        self.inputs = TextInputs(listed(facts, "words"))
        self.restore_labels(facts)
        self._split = facts["split"]
