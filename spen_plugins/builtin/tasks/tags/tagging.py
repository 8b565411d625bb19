"""Task `tagging`: a tag for every word: parts of speech, or spans (names, chunks) in BIO or BIOES."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spen_plugins.batch import Batch
from spen_plugins.builtin.tasks.span_task import SpanTask
from spen_plugins.builtin.tasks.tags.tagging_metric import SPAN_DEFINITIONS, TAG_DEFINITIONS, SpanMetric, TagMetric
from spen_plugins.builtin.tasks.tags.tagging_parts import (
    TagEncoding,
    TaggingConfig,
    span_predictions,
    tag_formats,
    tag_predictions,
)
from spen_plugins.data.catalogue import locate
from spen_plugins.data.disk.on_disk import Index, OnDisk
from spen_plugins.data.parts.file_parts import FileParts, with_file_encoding
from spen_plugins.data.parts.gold import WithoutGold, collate_weights, weigh_tags
from spen_plugins.data.parts.rules import TakesRules
from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.data.sentences.items import parse_tagged, wrap_words
from spen_plugins.data.sentences.tagged import read_tagged, read_words
from spen_plugins.data.text import RawText
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.scores.calibration import Decisions, rounded, tag_confidences
from spen_plugins.scores.span_decoding import SpanFit
from spen_plugins.scores.spans import SpanTable
from spen_plugins.sentences import tag_parts, tag_warnings
from spen_plugins.sentences.batches import (
    PADDING,
    UNKNOWN,
    SentenceBatch,
    TaggedExample,
    Vocabulary,
    collate_words,
    one_hot_gold,
    padded,
)
from spen_plugins.sentences.on_disk import TaggedMaker
from spen_plugins.settings.facts import listed
from spen_plugins.spaces import Proposal, TagSequence
from spen_plugins.task import HELD_OUT, PARTS, Metric, WordInputs, Writer
from spen_plugins.task_parts import NamesColumns, ReadsInputs, TakesExamples, WritesFormats


class Tagging(SpanTask, WithoutGold, TakesExamples, TakesRules, ReadsInputs, NamesColumns, WritesFormats):
    """Tagging: words, optionally with further columns -> one tag per word."""

    lower_is_better = ("invalid",)
    Config = TaggingConfig

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.column_keys = ("words", "tags", *(f"columns.{name}" for name in config.columns))
        self._encoding = TagEncoding(config)
        if not self._encoding.decodes_spans:
            self._set_fit(SpanFit())  # a single decoder
        self.selection = "f1" if self._encoding.has_spans else "accuracy"
        self._index: Index | None = None  # of a training part on disk
        self._class_weights: Tensor | None = None

    @with_file_encoding
    def load(self) -> None:
        parts, self._index = tag_parts.read_parts(self.config, self._encoding.scheme, self._encoding.encode)
        self.learn(parts)

    def take(self, parts: Mapping[str, Any], held_out: float = HELD_OUT, seed: int = 0) -> None:
        """Parts are pairs of sentences, a list with each one's words, and tags, a list with each one's tags."""
        self.learn(tag_parts.take_parts(self.config, parts, held_out, seed))

    def learn(self, read: FileParts[TaggedSentence], order: Sequence[str] | None = None) -> None:
        """Replaces `load` for a task that composes this one: sets the parts, and the known words, columns and tags.

        Args:
            read: sentences with the config's columns.
            order: all tags, in order; None: those of the training part.
        """
        sentences = read.parts
        encode = self._encoding.encode
        encoded = {part: [encode(s, path) for s in group] for part, (path, group) in sentences.items()}
        words, values, tags = tag_parts.known(self.config, sentences["train"][1], encoded["train"], self._index)
        self._set(words, values, self._encoding.order(tags) if order is None else list(order))
        unseen = tag_warnings.unseen_tags(self.config, encoded, tags)
        self._parts: dict[str, Sequence[TaggedExample]] = {
            part: [self._make_example(s, *gold) for s, gold in zip(group, encoded[part], strict=True)]
            for part, (_, group) in sentences.items()
        }
        if self._index is not None:
            numbers = self._vocabulary, self._value_numbers, self._tag_numbers, self._encoding.scheme
            self._parts["train"] = OnDisk(self._index, TaggedMaker(self._index, *numbers), self._index.lengths)
        else:
            gold = [example for example in self._parts["train"] if example.tags is not None]
            self._parts["train"] = [*self._parts["train"], *gold * (self.config.repeat - 1)]
        notes = self.apply_rules(lambda e: e.entry.item("rules", self.rules), lambda e: e.tags)
        self._read = read._replace(notes=[*read.notes, *unseen, *notes])
        weights, train = self.config.class_weight, self._parts["train"]
        self._class_weights = weigh_tags(weights, self.space.tags, self._encoding.has_spans, train)

    def restore(self, facts: Mapping[str, Any]) -> None:
        values = {name: listed(facts["columns"], name) for name in facts["columns"]}
        self._set(Vocabulary(listed(facts, "words"), self.config), values, listed(facts, "tags"))
        self.restore_decoder(facts)
        self._parts = {part: [] for part in PARTS}
        self._read = FileParts({}, {}, [], None)

    def facts(self) -> dict[str, Any]:
        facts = {"words": self._vocabulary.words, "columns": self._values, "tags": self.space.tags}
        return facts | self.decoder_facts()

    def read(self, path: str) -> list[TaggedExample]:
        """Sentences of a file in the config's format, with or without tags."""
        location = locate(path)
        file = read_tagged(self.config, location, gold=False)
        try:
            examples = [self.example(sentence, location) for sentence in file.sentences]
        except DataError as error:
            raise DataError(error.path, error.line, error.found, f"{error.expected}; {tag_warnings.NO_TAGS}") from None
        gold = [example.names for example in examples if example.names is not None]
        unseen = tag_warnings.unseen_tags(self.config, {path: [(names, None) for names in gold]}, self.space.tags)
        self._note_read(path, file, gold, unseen)
        return examples

    def read_inputs(self, path: str) -> list[TaggedExample]:
        """Sentences of a file in any format, without its tags, which may differ from the run's."""
        location = locate(path)
        file = read_words(self.config, location)
        gold, warnings = [], []
        if file.format == "columns":  # raw text may look like columns
            gold = [tags for s in file.sentences if (tags := self._encoding.encode_if_valid(s, location)) is not None]
            warnings = tag_warnings.unspaced_lines(path, [word for s in file.sentences for word in s.words])
        self._note_read(path, file, gold, warnings)
        return [self._make_example(sentence, None, frozenset()) for sentence in file.sentences]

    def _note_read(self, path: str, file: Any, gold: Sequence[Sequence[str]], warnings: Sequence[str]) -> None:
        tag_notes = tag_warnings.unknown_tags(self.config, path, file.sentences, gold, self.space.tags)
        column_notes = tag_warnings.unknown_columns(path, file.sentences, self._value_numbers)
        self._read = self._read._replace(notes=[f"{path}: {file.description}", *(tag_notes or warnings), *column_notes])

    def read_text(self, raw: RawText) -> list[TaggedExample]:
        return [self.parse({"words": words}) for words in raw.sentences()]

    def formats(self) -> dict[str, Writer]:
        return tag_formats(self.config, self._values)

    def parse(self, item: Any) -> TaggedExample:
        """`{"words": ["in", "New", "York"]}`, such a list alone, or a text, which is split at blanks.

        Optional: `"columns"`, `{"pos": ["IN", "NNP", "NNP"]}` (an omitted column has unknown values), and gold,
        `"tags"` in the config's scheme, or `"entities"`, `[{"type": "LOC", "start": 1, "end": 3}]`, `end` exclusive.
        """
        return self.example(parse_tagged(wrap_words(item), self.config.scheme, self.config.columns), "input")

    def example(self, sentence: TaggedSentence, where: object) -> TaggedExample:
        """The example of a sentence with the config's columns; `where` it is from, for errors about its tags."""
        return self._make_example(sentence, *self._encoding.encode(sentence, where))

    def collate(self, examples: Sequence[TaggedExample], rows: Sequence[int] | None = None) -> SentenceBatch:
        inputs, is_token = collate_words([example.entry for example in examples], self.indexers)
        for name in self.config.columns:
            if name in inputs:
                raise ConfigError(f"task.columns: the feature network uses the name {name!r}; choose another one")
            inputs[name] = padded([example.columns[name] for example in examples], is_token)
        gold, is_labelled = one_hot_gold([e.tags for e in examples], is_token, len(self.space.tags), 0)
        weights = {"weights": collate_weights(examples), "class_weights": self._class_weights}
        mask = torch.from_numpy(is_token)
        return SentenceBatch.of(inputs, mask, gold, is_labelled, rows, examples=tuple(examples), **weights)

    def metric(self) -> Metric:
        tags, scheme = self.space.tags, self._encoding.scheme
        if scheme is not None:
            return self._make_metric(lambda decode: SpanMetric(tags, decode, scheme))
        return TagMetric(tags, self.decode)

    def decisions(self, proposal: Proposal, batch: Batch) -> Decisions | None:
        """Decisions on each token's tag; or on each span, right if type, start and end are."""
        assert isinstance(batch, SentenceBatch)
        if batch.gold is None:
            return None
        best, lengths = self._decide(proposal, batch.examples)
        lengths = np.where(batch.labelled.cpu().numpy(), lengths, 0)
        if not self._encoding.has_spans:
            confidences = tag_confidences(proposal.mean[:, 0], best, lengths)
            gold = np.concatenate([example.tags for example in batch.examples if example.tags is not None])
            return Decisions("tags", confidences, confidences.tags == gold)
        spans = self._table.spans(best, lengths)
        is_right = [span in batch.examples[row].spans for row, span in self._name_spans(spans)]
        confidences = self._find_confidences(proposal, best, spans, lengths)
        return Decisions("spans", confidences, np.array(is_right, dtype=bool))

    def predictions(self, proposal: Proposal, batch: Batch, examples: Sequence[TaggedExample]) -> list[dict[str, Any]]:
        """Tags and `scores`, the calibrated probability of each; for spans `tags` in the files' scheme, and `entities`:
        `type`, `start`, `end` (exclusive), `text`, and `score`, the calibrated probability that all of it is right."""
        best, lengths = self._decide(proposal, examples)
        words = [list(example.entry.words) for example in examples]
        if self._encoding.has_spans:
            spans = self._table.spans(best, lengths)
            scores = self._find_confidences(proposal, best, spans, lengths).at(self.temperature)
            return span_predictions(words, self._name_spans(spans), rounded(scores), self.config.scheme)
        tags = [[self.space.tags[i] for i in row[:length]] for row, length in zip(best, lengths, strict=True)]
        confidences = tag_confidences(proposal.mean[:, 0], best, lengths)
        return tag_predictions(words, tags, rounded(confidences.at(self.temperature)))

    def protocol(self) -> dict[str, Any]:
        config, scheme = self.config, self._encoding.scheme
        is_unconstrained = self.space.scheme == "none"
        decoding = "the net's best, of all sequences" if is_unconstrained else f"the best sequence under {scheme}"
        return {
            **(TAG_DEFINITIONS if scheme is None else SPAN_DEFINITIONS),
            "scheme": config.scheme if scheme is None else f"{config.scheme}, learned as {scheme}",
            "decoding": decoding if self._fit.decode == "viterbi" else "as the threshold says",
            "split": self._read.split,
            **({} if config.labelled is None else {"labelled": f"the first {config.labelled} training sentences"}),
            "threshold": self._describe_threshold(),
        }

    def _set(self, vocabulary: Vocabulary, values: Mapping[str, Sequence[str]], tags: list[str]) -> None:
        self._vocabulary = vocabulary
        self._values = {name: list(column_values) for name, column_values in values.items()}
        self._value_numbers = {
            name: {value: i for i, value in enumerate(column_values, 2)} for name, column_values in values.items()
        }
        sizes = {name: len(column_values) + 2 for name, column_values in values.items()}
        self.inputs = WordInputs([PADDING, UNKNOWN, *vocabulary.words], {}, sizes)
        self.space = TagSequence(tags, (self.config.constrained and self._encoding.scheme) or "none")
        self._table = SpanTable(tags)
        self._tag_numbers = {tag: i for i, tag in enumerate(tags)}

    def _make_example(self, sentence: TaggedSentence, names: tuple[str, ...] | None, spans: frozenset) -> TaggedExample:
        words, columns, numbers = sentence.words, sentence.columns, {}
        for name, value_numbers in self._value_numbers.items():
            values = [value_numbers.get(value, 1) for value in columns[name]] if name in columns else [1] * len(words)
            numbers[name] = np.array(values, dtype=np.int64)
        tags = None if names is None else np.array([self._tag_numbers.get(name, -1) for name in names], dtype=np.int64)
        return TaggedExample(self._vocabulary.entry(words), numbers, names, tags, spans, sentence.weight)
