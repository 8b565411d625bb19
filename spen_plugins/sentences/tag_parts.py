"""Sentences of task `tagging`, from files or an embedded corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spen_plugins.data.catalogue import locate
from spen_plugins.data.disk.on_disk import Index
from spen_plugins.data.disk.shards import checksum
from spen_plugins.data.equal_inputs import warn_of_shared
from spen_plugins.data.parts import given
from spen_plugins.data.parts.file_parts import (
    FileParts,
    FilesConfig,
    name_files,
    read_file_parts,
    stays_on_disk,
)
from spen_plugins.data.parts.gold import ClassWeightConfig, PartlyLabelledConfig, hide_gold, needs_memory
from spen_plugins.data.schemes import BrokenTags, Scheme, spans
from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.data.sentences.items import parse_tagged
from spen_plugins.data.sentences.tagged import read_tagged, read_words
from spen_plugins.data.tables.label_columns import ColumnKeys
from spen_plugins.errors import ConfigError, DataError
from spen_plugins.sentences.batches import Vocabulary
from spen_plugins.sentences.on_disk import Encode, column_key, tagged_index
from spen_plugins.sentences.tag_warnings import warn_of_blank_tags, warn_of_spans
from spen_plugins.settings.config import Config
from spen_plugins.task import PARTS

CORPORA = ("pos", "ner", "predicates")


class SentencesConfig(FilesConfig, PartlyLabelledConfig, ClassWeightConfig):
    """Files of tagged sentences, which of them have gold, and what their tags weigh."""


class PredicatesConfig(Config):
    """The predicates of files of semantic roles that are tagged."""

    auxiliaries: bool = True
    """For format predicates: if false, auxiliaries and modals, whose frames have no arguments (be.03, do.01, have.01,
    …), are not predicates if the file has rolesets."""


Parts = dict[str, tuple[object, Sequence[TaggedSentence]]]
"""Source and sentences of each part."""


def read_parts(config: Any, encoding: Scheme | None, encode: Encode) -> tuple[FileParts[TaggedSentence], Index | None]:
    """All parts of a task's config, and the index of the training part if that stays on disk; `encoding` and `encode`
    as in `tagged_index`."""
    if config.in_memory:
        raise given.not_kept()
    files = name_files(config, CORPORA)
    in_memory_only = [*needs_memory(config), *(["format"] if config.format == "predicates" else [])]
    on_disk = stays_on_disk(config, files, in_memory_only)
    in_memory = {part: name for part, name in files.items() if not (on_disk and part == "train")}

    def read(path: Path) -> tuple[list[TaggedSentence], str]:
        file = read_tagged(config, path, gold=True)
        return file.sentences, file.description

    file_parts: FileParts[TaggedSentence] = (
        read_file_parts(
            in_memory,
            read,
            _collect_tags,
            "tags",
            lambda sentence: _make_input_key(config, sentence),
            ColumnKeys.from_config(config),
        )
        if files
        else FileParts(_read_sample(config), {}, [], f"{config.corpus} sample (synthetic)")
    )
    notes = (
        [note for part in PARTS for note in warn_of_blank_tags(*file_parts.parts[part], config.tags)] if files else []
    )
    if files and config.scheme == "none":
        notes += warn_of_spans(*file_parts.parts["train"])
    file_parts = file_parts._replace(notes=[*file_parts.notes, *notes])
    if not on_disk:
        return _hide_tags(config, file_parts), None
    checksums = {config.train: checksum(locate(config.train)), **file_parts.checksums}
    index, note = tagged_index(config, encoding, encode, checksums[config.train])
    overlaps = []
    for part, (_, sentences) in file_parts.parts.items():
        columns = {column_key(name): [s.columns[name] for s in sentences] for name in config.columns}
        is_known = index.contains({"words": [s.words for s in sentences], **columns})
        overlaps.append(("train", part, int(is_known.sum()), len(sentences)))
    notes = list(dict.fromkeys([note, *file_parts.notes, *warn_of_shared(overlaps)]))
    return file_parts._replace(
        checksums=checksums, notes=notes, split={**file_parts.split, "train": config.train}
    ), index


def known(
    config: Any, train: Sequence[TaggedSentence], encoded: Sequence[tuple[Any, ...]], index: Index | None
) -> tuple[Vocabulary, dict[str, list[str]], set[str]]:
    """The words of the training part, in memory or by its index, the values of each further column in it, and its tags.

    The first element of each of `encoded` is its tags as they are learned, None if unknown.
    """
    if index is not None:
        counts = dict(zip(index.values["words"], index.counts["words"].tolist(), strict=True))
        columns = {name: sorted(index.values[column_key(name)]) for name in config.columns}
        words, tags = Vocabulary.of_counts(counts, config), set(index.values["tags"])
    else:
        words = Vocabulary.of((sentence.words for sentence in train), config)
        columns = {name: sorted({value for s in train for value in s.columns[name]}) for name in config.columns}
        tags = {tag for names, *_ in encoded for tag in names or ()}
    if config.scheme != "none" and tags == {"O"}:
        source = config.train or config.file or "the data"
        expected = "other tags, such as B-PER; set task.tags if they are in another column"
        raise DataError(source, None, "the tag O throughout the training part", expected)
    return words, columns, tags


def _collect_tags(sentence: TaggedSentence) -> set[str] | None:
    return None if sentence.tags is None else set(sentence.tags)


def _make_input_key(config: Any, sentence: TaggedSentence) -> tuple[tuple[str, ...], ...]:
    """A key that equal inputs have in common: words, and the columns that are read."""
    return sentence.words, *(sentence.columns[name] for name in config.columns)


def take_parts(config: Any, parts: Mapping[str, Any], held_out: float, seed: int) -> FileParts[TaggedSentence]:
    """All parts of sentences given in Python, as in `TakesExamples.take`."""
    if keys := [
        f"task.{key}" for key in ("corpus", "file", "split", *PARTS, "columns", "on_disk") if getattr(config, key)
    ]:
        raise ConfigError(f"found {' and '.join(keys)} with data given in Python; expected only words and tags")
    pairs, weights = given.pairs(parts)
    sentences = {
        part: [
            _parse_given(config, *example, f"sentence {i} of {part}")
            for i, example in enumerate(zip(*pair, strict=True))
        ]
        for part, pair in pairs.items()
    }
    if weights is not None:
        sentences["train"] = [replace(s, weight=w) for s, w in zip(sentences["train"], weights, strict=True)]
    inputs = {part: [s.words for s in part_sentences] for part, part_sentences in sentences.items()}
    tags = [set(s.tags) for s in sentences["train"]]
    sentences, split, notes = given.divide(sentences, inputs, tags, held_out, seed)
    checksums = given.checksums(
        {part: [(s.words, s.tags) for s in part_sentences] for part, part_sentences in sentences.items()}
    )
    all_parts: Parts = {part: (f"data[{part!r}]", sentences.get(part, [])) for part in PARTS}
    return _hide_tags(config, FileParts(all_parts, checksums, notes, split))


def _hide_tags(config: Any, file_parts: FileParts[TaggedSentence]) -> FileParts[TaggedSentence]:
    def read(path: Path) -> tuple[list[TaggedSentence], str]:
        file = read_words(config, path)
        return file.sentences, file.description

    return hide_tags(config, file_parts, read)


def _parse_given(config: Any, words: Any, tags: Any, source: str) -> TaggedSentence:
    values = [list(v) if hasattr(v, "tolist") else v for v in (words, tags)]
    try:
        sentence = parse_tagged(dict(zip(("words", "tags"), values, strict=True)))
        if config.scheme != "none":
            spans(sentence.tags or (), config.scheme)
        if "" in (sentence.tags or ()):
            raise DataError(source, None, f"tags {sentence.tags!r:.80}", "a list of strings, none of them empty")
    except DataError as error:
        raise DataError(source, None, error.found, error.expected) from None
    except BrokenTags as broken:
        raise DataError(source, None, broken.found, broken.expected) from None
    return sentence


def hide_tags(
    config: SentencesConfig, found: FileParts[TaggedSentence], read: Callable[[Path], tuple[list[TaggedSentence], str]]
) -> FileParts[TaggedSentence]:
    """The training part with the tags that the config allows, and with its files without tags.

    Args:
        config: the task's config.
        found: the parts; all training sentences have tags.
        read: reads a file of `task.unlabelled`, and describes it, as in `read_file_parts`.

    Raises:
        DataError: fewer sentences than `task.labelled`.
    """
    source, sentences = found.parts["train"]
    labelled, unlabelled, checksums, notes = hide_gold(
        config, source, sentences, lambda sentence: replace(sentence, tags=None), read, "sentences"
    )
    parts = {**found.parts, "train": (source, [*labelled, *unlabelled])}
    return found._replace(parts=parts, checksums=found.checksums | checksums, notes=[*found.notes, *notes])


def _read_sample(config: Any) -> Parts:
    from spen_plugins.samples.tagged import sample_corpus

    sentences = sample_corpus(config.corpus)
    columns = sentences["train"][0].columns
    for name in config.columns:
        if name not in columns:
            listing = f"it has {', '.join(columns)}" if columns else "it has none"
            raise ConfigError(f"task.columns: no column {name!r} in the corpus {config.corpus!r}; {listing}")
    return {part: ("the sample", part_sentences) for part, part_sentences in sentences.items()}
