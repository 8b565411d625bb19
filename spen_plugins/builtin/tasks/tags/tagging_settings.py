"""Settings of task `tagging`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from spen_plugins.data.parts.file_parts import OnDiskConfig
from spen_plugins.sentences.tag_parts import PredicatesConfig, SentencesConfig


class TaggingConfig(SentencesConfig, PredicatesConfig, OnDiskConfig):
    """Settings of task `tagging`."""

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
