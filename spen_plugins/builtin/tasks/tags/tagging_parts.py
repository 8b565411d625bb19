"""Settings of task `tagging`, the encoding of its tags, and predictions in users' formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from spen_plugins.builtin.tasks.span_task import SpanConfig
from spen_plugins.data.parts.file_parts import OnDiskConfig
from spen_plugins.data.parts.rules import RulesConfig
from spen_plugins.data.schemes import BrokenTags, Scheme, Span, complete_tags, spans, write_tags
from spen_plugins.data.sentences.columns import TaggedSentence, write_columns
from spen_plugins.data.sentences.conllu import ConlluExamples, fill_conllu, write_conllu
from spen_plugins.data.sentences.docbin import write_docbin
from spen_plugins.data.sentences.items import parse_tagged
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.sentences.tag_parts import PredicatesConfig, SentencesConfig
from spen_plugins.task import Writer


class TaggingConfig(SentencesConfig, PredicatesConfig, OnDiskConfig, RulesConfig, SpanConfig):
    """Settings of task `tagging`."""

    corpus: Literal["pos", "ner", "predicates"] | None = None
    """Synthetic corpus of the package: parts of speech, names in BIO (with the columns pos and chunk), or the
    predicates of task `srl`; null: the files. Files are columns, CoNLL-U, spaCy's DocBin, JSONL or semantic
    roles."""
    in_memory: bool = False
    """If true, the examples are given in Python, by `sp.train`, and not stored in the run folder."""
    format: Literal["auto", "columns", "conllu", "docbin", "jsonl", "json", "csv", "predicates"] = "auto"
    """Format of the files; auto: recognised by content. predicates: files of task `srl`, with the tag B-V at each
    predicate and O elsewhere (scheme: bio)."""
    words: int | str | None = None
    """Column of the words, from 0, or field of CoNLL-U or DocBin; null: the first column, the field form."""
    tags: int | str | None = None
    """Column of the tags, negative from the end, or field of CoNLL-U or DocBin, or several fields as in upos+xpos;
    null: the last column, the field upos, or the entities (ents) of a DocBin under a scheme."""
    columns: dict[str, int | str] = Field(default_factory=dict)
    """Further columns for the feature network, by any name: {pos: 1, chunk: 2}."""
    scheme: Literal["none", "bio", "iob1", "bioes", "io"] = "none"
    """Tagging scheme of spans; io: types without prefixes, none: tags are independent, such as parts of speech."""
    encoding: Literal["bio", "bioes"] | None = None
    """Tagging scheme for learning and decoding; null: that of the data, bio for iob1 and io."""
    constrained: bool = True
    """If true, decoded tags obey the encoding."""
    language: str = "en"
    """Language of the spaCy tokeniser for JSON texts with character spans: en, de, …; xx for any."""


class TagEncoding:
    """The scheme in which a task learns its tags.

    Args:
        config: the task's config.

    Attributes:
        scheme: "bio" or "bioes"; None if tags are independent.

    Raises:
        ConfigError: an encoding, or decoding by expected F1, without spans; predicates under another scheme than "bio";
            or a column called words.
    """

    def __init__(self, config: Any) -> None:
        if "words" in config.columns:
            raise ConfigError("task.columns: found the name 'words', which is reserved; choose another one")
        self._config = config
        self.has_spans = config.scheme != "none"
        if config.encoding is not None and not self.has_spans:
            expected = "a task.scheme of spans with it (bio, iob1, bioes or io)"
            raise ConfigError(f"task.encoding: found {config.encoding!r}; expected {expected}")
        self._has_predicates = "predicates" in (config.format, config.corpus)
        if self._has_predicates and config.scheme != "bio":
            raise ConfigError(f"task.scheme: found {config.scheme!r}; predicates require 'bio'")
        self.decodes_spans = self.has_spans and config.constrained
        if config.decode == "expected_f1" and not self.decodes_spans:
            expected = "viterbi, or a task.scheme of spans with task.constrained=true"
            raise ConfigError(f"task.decode: found {config.decode!r}; expected {expected}")
        default = "bioes" if config.scheme == "bioes" else "bio"
        self.scheme = (config.encoding or default) if self.has_spans else None

    def encode(self, sentence: TaggedSentence, source: object) -> tuple[tuple[str, ...] | None, frozenset]:
        """Gold tags in this scheme, and their spans.

        Raises:
            DataError: the tags break the files' scheme.
        """
        if sentence.tags is None or self.scheme is None:
            return sentence.tags, frozenset()
        try:
            gold = spans(sentence.tags, self._config.scheme)
        except BrokenTags as broken:
            raise DataError(source, sentence.line_of(broken.index), broken.found, broken.expected) from None
        return tuple(write_tags(gold, len(sentence.words), self.scheme)), frozenset(gold)

    def encode_if_valid(self, sentence: TaggedSentence, source: object) -> tuple[str, ...] | None:
        """Tags in this scheme, or unchanged if they break the files' scheme."""
        try:
            return self.encode(sentence, source)[0]
        except DataError:
            return sentence.tags

    def order(self, tags: Iterable[str]) -> list[str]:
        """The tags in alphabetical order; for spans, O and then by type, with all tags of each type."""
        if self.scheme is None:
            return sorted(tags)
        if self._has_predicates:  # spans of one word
            return sorted({"O", *tags}, reverse=True)
        return complete_tags(tags, self.scheme)


def tag_predictions(
    words: Sequence[list[str]], tags: Sequence[list[str]], scores: Sequence[float]
) -> list[dict[str, Any]]:
    """Tags of each sentence, with their scores, which come sentence by sentence."""
    remaining_scores = iter(scores)
    return [
        {"words": sentence_words, "tags": names, "scores": [next(remaining_scores) for _ in names]}
        for sentence_words, names in zip(words, tags, strict=True)
    ]


def span_predictions(
    words: Sequence[list[str]], spans: Iterable[tuple[int, Span]], scores: Iterable[float], scheme: Scheme
) -> list[dict[str, Any]]:
    """Entities of each sentence, with their tags.

    Args:
        words: the sentences.
        spans: each span with the number of its sentence.
        scores: the score of each span.
        scheme: the tags' scheme.
    """
    scored_spans: list[list[tuple[Span, float]]] = [[] for _ in words]
    for (sentence, span), score in zip(spans, scores, strict=True):
        scored_spans[sentence].append((span, score))
    return [
        {
            "words": sentence_words,
            "tags": write_tags([span for span, _ in scored], len(sentence_words), scheme),
            "entities": [
                {**span._asdict(), "text": " ".join(sentence_words[span.start : span.end]), "score": score}
                for span, score in scored
            ],
        }
        for sentence_words, scored in zip(words, scored_spans, strict=True)
    ]


def tag_formats(config: Any, values: Mapping[str, Sequence[str]]) -> dict[str, Writer]:
    """Columns as the config numbers them, DocBin, and CoNLL-U if the tags are a field of it or no spans; a CoNLL-U
    file keeps its other fields and lines.

    Args:
        config: the task's config.
        values: name of each further column -> its known values.
    """
    field = config.tags if isinstance(config.tags, str) else None

    def make_sentences(predictions: Sequence[Any], examples: Sequence[Any]) -> list[TaggedSentence]:
        """Sentences with predicted tags in the files' scheme, and the columns that were read, `_` where unknown."""
        column_texts = {name: ["_", "_", *column_values] for name, column_values in values.items()}
        tagged = []
        for prediction, example in zip(predictions, examples, strict=True):
            columns = {
                name: tuple(column_values[n] for n in example.columns[name].tolist())
                for name, column_values in column_texts.items()
            }
            tagged.append(replace(parse_tagged(prediction, config.scheme), columns=columns))
        return tagged

    def write_column_file(predictions: Sequence[Any], examples: Sequence[Any]) -> str:
        tagged = make_sentences(predictions, examples)
        if any(isinstance(column, str) for column in (config.words, config.tags, *config.columns.values())):
            return write_columns(tagged)  # the config names fields of CoNLL-U
        return write_columns(tagged, config.words or 0, -1 if config.tags is None else config.tags, config.columns)

    def write_conllu_file(predictions: Sequence[Any], examples: Sequence[Any]) -> str:
        tagged, tags = make_sentences(predictions, examples), field or "upos"
        is_file = isinstance(examples, ConlluExamples)
        return fill_conllu(examples.path, tagged, tags) if is_file else write_conllu(tagged, tags)

    def write_docbin_file(predictions: Sequence[Any], examples: Sequence[Any]) -> bytes:
        return write_docbin(make_sentences(predictions, examples), config.scheme, field)

    writers: dict[str, Writer] = {"conll": write_column_file, "docbin": write_docbin_file}
    return writers if config.scheme != "none" and field is None else writers | {"conllu": write_conllu_file}
