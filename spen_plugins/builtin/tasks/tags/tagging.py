"""Task `tagging`: a tag for every word: parts of speech, or spans (names, chunks) in BIO or BIOES."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from spen_plugins.batch import Batch, X
from spen_plugins.builtin.tasks.tags.tagging_formats import tag_formats
from spen_plugins.builtin.tasks.tags.tagging_metric import (
    SPAN_DEFINITIONS,
    TAG_DEFINITIONS,
    SpanMetric,
    TagMetric,
)
from spen_plugins.data.catalogue import locate
from spen_plugins.data.disk.on_disk import Index, OnDisk
from spen_plugins.data.parts.class_weights import collate_weights, weigh_tags
from spen_plugins.data.parts.file_parts import FileParts, OnDiskConfig, in_file_encoding
from spen_plugins.data.parts.partly_labelled import WithoutGold
from spen_plugins.data.raw_text import RawText
from spen_plugins.data.schemes import BrokenTags, Span, complete_tags, spans, write_tags
from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.data.sentences.tag_items import of_words, tagged_of
from spen_plugins.data.sentences.tagged import read_tagged, read_words
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.scores.calibration import Decisions, SpanConfidences, TagConfidences, rounded, span_confidences
from spen_plugins.scores.spans import SpanTable
from spen_plugins.sentences import tag_parts as tagging_files
from spen_plugins.sentences import tag_warnings
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
from spen_plugins.sentences.tasks import SentenceTask
from spen_plugins.settings.facts import listed
from spen_plugins.spaces import Proposal, TagSequence
from spen_plugins.task import HELD_OUT, PARTS, Shown, WordInputs, Writer
from spen_plugins.task_parts import ReadsInputs, TakesExamples, WritesFormats


class Tagging(SentenceTask, WithoutGold, TakesExamples, ReadsInputs, WritesFormats):
    """Tagging: words, optionally with further columns -> one tag per word."""

    lower_is_better = ("invalid",)

    class Config(tagging_files.SentencesConfig, tagging_files.PredicatesConfig, OnDiskConfig):
        corpus: Literal["pos", "ner", "predicates"] | None = None
        """Synthetic corpus of the package: parts of speech, names in BIO (with the columns pos and chunk), or the
        predicates of task `srl`; null: the files. Files are columns, CoNLL-U, spaCy's DocBin, JSONL or semantic
        roles."""
        in_memory: bool = False
        """If true, the examples are given in Python, by `sp.train`, and not kept."""
        format: Literal["auto", "columns", "conllu", "docbin", "jsonl", "json", "csv", "predicates"] = "auto"
        """Format of the files; auto: recognised by content. predicates: files of task `srl`, with the tag B-V at each
        predicate and O elsewhere (scheme: bio)."""
        words: int | str | None = None
        """Column of the words, from 0, or field of CoNLL-U or DocBin; null: the first column, the field form."""
        tags: int | str | None = None
        """Column of the tags, negative from the end, or field of CoNLL-U or DocBin, or several fields as in upos+xpos;
        null: the last column, the field upos, of a DocBin under a scheme the entities (ents)."""
        columns: dict[str, int | str] = Field(default_factory=dict)
        """Further columns for the feature network, by a free name: {pos: 1, chunk: 2}."""
        scheme: Literal["none", "bio", "iob1", "bioes", "io"] = "none"
        """Tagging scheme of spans; io: types without prefixes, none: tags are independent, as parts of speech."""
        encoding: Literal["bio", "bioes"] | None = None
        """Tagging scheme for learning and decoding; null: that of the data, bio for iob1 and io."""
        constrained: bool = True
        """If true, decoded tags obey the encoding."""
        language: str = "en"
        """Language whose spaCy tokeniser divides texts of JSON with spans of characters: en, de, …; xx for any."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        spans = config.scheme != "none"
        if config.encoding is not None and not spans:
            raise ConfigError(
                f"task.encoding is {config.encoding!r}, and task.scheme 'none', under which tags have no spans; "
                "give the files' scheme: bio, iob1, bioes, or io for types without prefixes"
            )
        if (config.format == "predicates" or config.corpus == "predicates") and config.scheme != "bio":
            raise ConfigError(f"task.scheme: found {config.scheme!r}; predicates are tagged under 'bio'")
        if "words" in config.columns:
            raise ConfigError("task.columns: found the name 'words', which is taken by the words; take another")
        self.selection = "f1" if spans else "accuracy"
        self._encoding = config.encoding or ("bioes" if config.scheme == "bioes" else "bio") if spans else None
        self._index: Index | None = None  # of a training part on disk
        self._class_weights: Tensor | None = None

    @in_file_encoding
    def load(self) -> None:
        found, self._index = tagging_files.read_parts(self.config, self._encoding, self._encode)
        self.learn(found)

    def take(self, parts: Mapping[str, Any], held_out: float = HELD_OUT, seed: int = 0) -> None:
        """Parts are pairs of sentences, a list with each one's words, and tags, a list with each one's tags."""
        self.learn(tagging_files.given_parts(self.config, parts, held_out, seed))

    def learn(self, found: FileParts[TaggedSentence], order: Sequence[str] | None = None) -> None:
        """In place of `load`, for a task that composes this one: sets the parts, and the known words, columns and tags.

        Args:
            found: sentences with the config's columns.
            order: all tags, in order; None: those of the training part.
        """
        sentences = found.parts
        encoded = {part: [self._encode(s, where) for s in some] for part, (where, some) in sentences.items()}
        words, values, tags = tagging_files.known(self.config, sentences["train"][1], encoded["train"], self._index)
        self._set(words, values, self._order(tags) if order is None else list(order))
        unseen = tag_warnings.unseen_tags(self.config, encoded, tags)
        self._read = found._replace(notes=[*found.notes, *unseen])
        self._parts: dict[str, Sequence[TaggedExample]] = {
            part: [self._example(s.words, s.columns, *g, s.weight) for s, g in zip(some, encoded[part], strict=True)]
            for part, (_, some) in sentences.items()
        }
        if self._index is not None:
            numbers = self._vocabulary, self._number, self._tag, self._encoding
            self._parts["train"] = OnDisk(self._index, TaggedMaker(self._index, *numbers), self._index.lengths)
        else:
            gold = [example for example in self._parts["train"] if example.tags is not None]
            self._parts["train"] = [*self._parts["train"], *gold * (self.config.repeat - 1)]
        spans, train = self._encoding is not None, self._parts["train"]
        self._class_weights = weigh_tags(self.config.class_weight, self.space.tags, spans, train)

    def restore(self, facts: Mapping[str, Any]) -> None:
        values = {name: listed(facts["columns"], name) for name in facts["columns"]}
        self._set(Vocabulary(listed(facts, "words"), self.config), values, listed(facts, "tags"))
        self._parts = {part: [] for part in PARTS}
        self._read = FileParts({}, {}, [], None)

    def facts(self) -> dict[str, Any]:
        return {"words": self._vocabulary.words, "columns": self._values, "tags": self.space.tags}

    def read(self, path: str) -> list[TaggedExample]:
        """Sentences of a file in the config's format, with or without tags."""
        where = locate(path)
        found = read_tagged(self.config, where, gold=False)
        try:
            examples = [self.example(sentence, where) for sentence in found.sentences]
        except DataError as error:
            raise DataError(
                error.path, error.line, error.found, f"{error.expected}; a file to predict may have no column of tags"
            ) from None
        gold = [example.names for example in examples if example.names is not None]
        warnings = tag_warnings.unknown_tags(
            self.config, path, found.sentences, gold, self.space.tags
        ) or tag_warnings.unseen_tags(self.config, {path: [(names, None) for names in gold]}, self.space.tags)
        self._read = self._read._replace(notes=[f"{path}: {found.said}", *warnings])
        return examples

    def read_inputs(self, path: str) -> list[TaggedExample]:
        """Sentences of a file in any format, without its tags, which may be others than the run's."""
        where = locate(path)
        found = read_words(self.config, where)
        warnings = []
        if found.format == "columns":  # raw text may look like it
            gold = [tags for s in found.sentences if (tags := self._tags_in(s, where)) is not None]
            warnings = tag_warnings.unknown_tags(
                self.config, path, found.sentences, gold, self.space.tags
            ) or tag_warnings.unspaced_lines(path, [word for s in found.sentences for word in s.words])
        self._read = self._read._replace(notes=[f"{path}: {found.said}", *warnings])
        return [self._example(s.words, s.columns, None, frozenset()) for s in found.sentences]

    def read_text(self, raw: RawText) -> list[TaggedExample]:
        return [self.parse({"words": words}) for words in raw.sentences()]

    def formats(self) -> dict[str, Writer]:
        return tag_formats(self.config, self._values)

    def parse(self, item: Any) -> TaggedExample:
        """`{"words": ["in", "New", "York"]}`, such a list alone, or a text, which is split at blanks.

        Optional: `"columns"`, `{"pos": ["IN", "NNP", "NNP"]}` (an omitted column has unknown values), and gold,
        `"tags"` in the config's scheme, or `"entities"`, `[{"type": "LOC", "start": 1, "end": 3}]`, `end` exclusive.
        """
        return self.example(tagged_of(of_words(item), self.config.scheme, self.config.columns), "input")

    def example(self, sentence: TaggedSentence, where: object) -> TaggedExample:
        """The example of a sentence with the config's columns; `where` it is from, for errors about its tags."""
        return self._example(sentence.words, sentence.columns, *self._encode(sentence, where))

    def collate(self, examples: Sequence[TaggedExample], rows: Sequence[int] | None = None) -> SentenceBatch:
        inputs, inside = collate_words([example.entry for example in examples], self.indexers)
        for name in self.config.columns:
            if name in inputs:
                raise ConfigError(f"task.columns: the name {name!r} is that of the feature network's; take another")
            inputs[name] = padded([example.columns[name] for example in examples], inside)
        gold, known = one_hot_gold([e.tags for e in examples], inside, len(self.space.tags), 0)
        numbers = torch.arange(len(examples)) if rows is None else torch.as_tensor(rows, dtype=torch.long)
        x = X(inputs, torch.from_numpy(inside), len(examples))
        weights = {"weights": collate_weights(examples), "class_weights": self._class_weights}
        return SentenceBatch(x, numbers, gold, known, tuple(examples), **weights)

    def metric(self) -> TagMetric:
        tags = self.space.tags
        return TagMetric(tags, self.decode) if self._encoding is None else SpanMetric(tags, self.decode, self._encoding)

    def decisions(self, proposal: Proposal, batch: Batch) -> Decisions | None:
        """Decisions on each token's tag; or on each span, right if type, start and end are."""
        assert isinstance(batch, SentenceBatch)
        if batch.gold is None:
            return None
        known = batch.labelled.cpu().numpy()
        best, lengths = self._decided(proposal, batch.examples)
        lengths = np.where(known, lengths, 0)
        if self._encoding is None:
            inside = np.arange(best.shape[1]) < lengths[:, None]
            gold = np.concatenate([example.tags for example in batch.examples if example.tags is not None])
            return Decisions("tags", self._tag_confidences(proposal, best, inside), best[inside] == gold)
        found = self._table.spans(best, lengths)
        right = [
            Span(self._table.roles[kind], first, last + 1) in batch.examples[sentence].spans
            for sentence, kind, first, last in found.tolist()
        ]
        return Decisions("spans", self._span_confidences(proposal, best, found, lengths), np.array(right, dtype=bool))

    def predictions(self, proposal: Proposal, batch: Batch, examples: Sequence[TaggedExample]) -> list[dict[str, Any]]:
        """Tags and `scores`, the calibrated probability of each; for spans `tags` in the files' scheme, and `entities`:
        `type`, `start`, `end` (exclusive), `text`, and `score`, the calibrated probability that all of it is right."""
        best, lengths = self._decided(proposal, examples)
        predictions = [
            {"words": list(example.entry.words), "tags": [self.space.tags[i] for i in row[:length]]}
            for example, row, length in zip(examples, best.tolist(), lengths.tolist(), strict=True)
        ]
        if self._encoding is None:
            inside = np.arange(best.shape[1]) < lengths[:, None]
            scores = rounded(self._tag_confidences(proposal, best, inside).at(self.temperature))
            for found, end in zip(predictions, np.cumsum(lengths).tolist(), strict=True):
                found["scores"] = scores[end - len(found["words"]) : end]
            return predictions
        for found in predictions:
            found["entities"] = []
        spans = self._table.spans(best, lengths)
        scores = rounded(self._span_confidences(proposal, best, spans, lengths).at(self.temperature))
        for (sentence, kind, first, last), score in zip(spans.tolist(), scores, strict=True):
            found = predictions[sentence]
            text = " ".join(found["words"][first : last + 1])
            place = {"type": self._table.roles[kind], "start": first, "end": last + 1}
            found["entities"].append({**place, "text": text, "score": score})
        for found in predictions:
            decided = [Span(entity["type"], entity["start"], entity["end"]) for entity in found["entities"]]
            found["tags"] = write_tags(decided, len(found["words"]), self.config.scheme)
        return predictions

    def protocol(self) -> dict[str, Any]:
        config = self.config
        kept = config.constrained and self._encoding is not None
        return {
            **(TAG_DEFINITIONS if self._encoding is None else SPAN_DEFINITIONS),
            "scheme": config.scheme if self._encoding is None else f"{config.scheme}, learned as {self._encoding}",
            "decoding": f"the best sequence under {self._encoding}" if kept else "the net's best, of all sequences",
            "split": self._read.split,
            **({} if config.labelled is None else {"labelled": f"the first {config.labelled} training sentences"}),
            "threshold": None,
        }

    def show(self, example: TaggedExample) -> Shown:
        return Shown(example.entry.words, example.names)

    def _encode(self, sentence: TaggedSentence, where: object) -> tuple[tuple[str, ...] | None, frozenset]:
        """Gold tags in the task's encoding, and their spans."""
        if sentence.tags is None or self._encoding is None:
            return sentence.tags, frozenset()
        try:
            found = spans(sentence.tags, self.config.scheme)
        except BrokenTags as broken:
            raise DataError(where, sentence.line_of(broken.index), broken.found, broken.expected) from None
        return tuple(write_tags(found, len(sentence.words), self._encoding)), frozenset(found)

    def _tags_in(self, sentence: TaggedSentence, where: object) -> tuple[str, ...] | None:
        """Tags in the task's encoding, or as they are if they break the scheme."""
        try:
            return self._encode(sentence, where)[0]
        except DataError:
            return sentence.tags

    def _order(self, tags: Iterable[str]) -> list[str]:
        """The tags in alphabetical order; those of spans by type, after O, and all of each type."""
        if self._encoding is None:
            return sorted(tags)
        if "predicates" in (self.config.format, self.config.corpus):  # of one word each
            return sorted({"O", *tags}, reverse=True)
        return complete_tags(tags, self._encoding)

    def _set(self, vocabulary: Vocabulary, values: Mapping[str, Sequence[str]], tags: list[str]) -> None:
        self._vocabulary = vocabulary
        self._values = {name: list(some) for name, some in values.items()}
        self._number = {name: {value: i for i, value in enumerate(some, 2)} for name, some in values.items()}
        sizes = {name: len(some) + 2 for name, some in values.items()}
        self.inputs = WordInputs([PADDING, UNKNOWN, *vocabulary.words], {}, sizes)
        self.space = TagSequence(tags, self._encoding if self._encoding and self.config.constrained else "none")
        self._table = SpanTable(tags)
        self._tag = {tag: i for i, tag in enumerate(tags)}

    def _example(
        self,
        words: tuple[str, ...],
        columns: Mapping[str, Sequence[str]],
        names: tuple[str, ...] | None,
        found: frozenset,
        weight: float = 1.0,
    ) -> TaggedExample:
        given = {
            name: [known.get(v, 1) for v in columns[name]] for name, known in self._number.items() if name in columns
        }
        numbers = {name: np.array(given.get(name, [1] * len(words)), dtype=np.int64) for name in self._number}
        tags = None if names is None else np.array([self._tag.get(name, -1) for name in names], dtype=np.int64)
        return TaggedExample(self._vocabulary.entry(words), numbers, names, tags, found, weight)

    def _decided(self, proposal: Proposal, examples: Sequence[TaggedExample]) -> tuple[np.ndarray, np.ndarray]:
        """Tag indices `(sentence, token)`, and the number of tokens in each sentence."""
        best = self.decode(proposal)[:, 0].argmax(-1).cpu().numpy()
        return best, np.array([len(example.entry.ids) for example in examples], dtype=np.int64)

    def _tag_confidences(self, proposal: Proposal, best: np.ndarray, inside: np.ndarray) -> TagConfidences:
        """Confidences in the tags of the tokens `inside`, `(sentence, token)`, sentence by sentence."""
        return TagConfidences(proposal.mean[:, 0].detach().float().cpu().numpy()[inside], best[inside])

    def _span_confidences(
        self, proposal: Proposal, best: np.ndarray, found: np.ndarray, lengths: np.ndarray
    ) -> SpanConfidences:
        """Confidences in the spans that `self._table` found."""
        return span_confidences(proposal.mean[:, 0], best, found, lengths, self._table.goes_on, np.arange(len(found)))
