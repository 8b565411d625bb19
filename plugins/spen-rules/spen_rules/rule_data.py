"""Examples on which rules are shown, with gold where their file has it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import spen_plugins as sp
from spen_plugins.sentences import with_file_encoding
from spen_rules.files import Rule
from spen_rules.vote_energy import find_kind

_TASKS = {"names": "tagging", "tags": "tagging", "texts": "text"}
_JSON = '{"text": "What a day!", "labels": ["joy"]}'


class RuleData:
    """The examples of a file.

    Args:
        kind: "names", "tags" or "texts".
        file: the file, as a task's config names it.
        names: the labels, tags or types of the rules, which are the outputs if the file has no gold.
        scheme: tagging scheme of names; None: "bio".
        settings: further settings of the task, `NAME=VALUE`.

    Attributes:
        task: the task; `load` sets its outputs: those of the gold, or else the rules'.
        examples: the task's examples.
        notes: sentences for the user about the file.

    Raises:
        ConfigError: a setting is wrong.
    """

    def __init__(
        self, kind: str, file: str, names: Iterable[str], scheme: str | None = None, settings: Sequence[str] = ()
    ) -> None:
        spec = {"type": _TASKS[kind], **_parse_settings(settings), "on_disk": False}
        if kind == "texts":
            spec |= {"train": file, "validation": file}
        elif kind == "names":
            spec["scheme"] = scheme or "bio"
        cls, self.config = sp.Registry().parse("task", spec, "task", "spen rules")
        self.kind, self.file, self.task = kind, file, cls(self.config)
        self._names = sorted({*names})
        self.examples: Sequence[Any] = []

    @property
    def has_spans(self) -> bool:
        """True if outputs are spans."""
        return self.kind == "names"

    @property
    def values(self) -> Sequence[str]:
        """The tags or labels of the output space."""
        return self.task.space.labels if self.kind == "texts" else self.task.space.tags

    @property
    def notes(self) -> list[str]:
        return [note for note in self.task.notes() if note.startswith(f"{self.file}: read as")][:1]

    @with_file_encoding
    def load(self) -> None:
        """Reads the file.

        Raises:
            DataError: it has no examples of the kind.
        """
        self.examples = self._read_texts() if self.kind == "texts" else self._read_sentences()

    def items(self, example: Any) -> dict[str, Any]:
        """The outputs of an example's indexers, by name."""
        return example.items if self.kind == "texts" else example.entry.items

    def words(self, example: Any) -> Sequence[str]:
        """A sentence's words, or a text as the only item."""
        return [example.text] if self.kind == "texts" else example.entry.words

    def gold(self, example: Any) -> Any:
        """Indices of a sentence's tags, one per word, or of a text's labels; None if there are none."""
        return example.gold if self.kind == "texts" else example.tags

    def _read_sentences(self) -> list[Any]:
        self._restore_tags(self._names)
        examples = self.task.read(self.file)
        count = len(examples) if self.config.labelled is None else self.config.labelled
        if tags := {tag for example in examples[:count] for tag in example.names or ()}:
            self._restore_tags(tags)
            examples = self.task.read(self.file)
        unlabelled = [replace(example, names=None, tags=None, spans=frozenset()) for example in examples[count:]]
        return [*examples[:count], *(unlabelled if self.config.rest else ())]

    def _restore_tags(self, names: Iterable[str]) -> None:
        tags = sorted(names)
        if self.has_spans:
            encoding = self.config.encoding or ("bioes" if self.config.scheme == "bioes" else "bio")
            prefixes = {"bio": "BI", "bioes": "BEIS"}[encoding]
            kinds = sorted({find_kind(name) for name in names} - {"O"})
            tags = ["O", *(f"{prefix}-{kind}" for kind in kinds for prefix in prefixes)]
        self.task.restore({"words": [], "columns": {name: [] for name in self.config.columns}, "tags": tags})

    def _read_texts(self) -> Sequence[Any]:
        """The training part; if not all texts have labels, the texts of a file to predict."""
        try:
            self.task.load()
            return self.task.part("train")
        except sp.DataError as error:
            if self.config.labelled is not None:
                raise
            try:
                return self._read_partly_labelled()
            except sp.DataError:
                raise error from None

    def _read_partly_labelled(self) -> Sequence[Any]:
        labels = self.config.labels
        if isinstance(labels, str) and sp.locate(labels).is_file() and hasattr(self.task, "space"):  # a file of names
            self._restore_labels(self.task.space.labels, True)
            return self.task.read(self.file)
        self._restore_labels({*self._names, *self._list_labels()})
        examples = self.task.read(self.file)
        if gold_labels := {
            self.values[i] for example in examples if example.gold is not None for i in example.gold.tolist()
        }:
            self._restore_labels(gold_labels)
            examples = self.task.read(self.file)
        return examples

    def _restore_labels(self, labels: Iterable[str], numbered: bool = False) -> None:
        names = list(labels) if numbered else sorted(labels)
        facts = {"words": [], "unspaced": False, "threshold": 0.5, "split": ""}
        self.task.restore({**facts, "labels": names, "numbered": numbered})

    def _list_labels(self) -> set[str]:
        """The labels in a file of JSON lines; the empty set for another format."""
        keys = [self.config.labels] if isinstance(self.config.labels, str) else ["labels", "label"]
        labels: set[str] = set()
        with suppress(sp.DataError, TypeError, ValueError):  # `read` reports these errors
            for _, item in sp.read_json_lines(sp.locate(self.file), _JSON, dict):
                values = next((item[key] for key in keys if item.get(key) is not None), [])
                labels |= {str(value) for value in (values if isinstance(values, list) else [values])}
        return labels


def describe_votes(rule: Rule) -> str:
    """The names that a rule votes for, or "not" and the names that it votes against."""
    return "not " * rule.is_against + ", ".join(rule.names)


def cut_text(text: str, length: int) -> str:
    """The text with at most this number of characters, the last "…" if it is cut."""
    return text if len(text) <= length else text[: length - 1] + "…"


def _parse_settings(words: Sequence[str]) -> dict[str, Any]:
    """Settings by name; a value is JSON, or else a text."""
    settings: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not (name and equals):
            raise sp.ConfigError(f"found {word!r}; expected NAME=VALUE, such as tags=-1")
        try:
            settings[name] = json.loads(text)
        except ValueError:
            settings[name] = text
    return settings
