"""Reuters-21578: SGML files, and the ModApte split (Apte, Damerau & Weiss 1994; Lewis's README, Sec. VIII.B), with a
validation part held out of its training documents.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spen_plugins.data.parts.stratification import stratify
from spen_plugins.data.text import opened, shorten
from spen_plugins.errors import DataError

_DOCUMENT = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)\s*=\s*"([^"]*)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>", re.DOTALL)
_TEXT = re.compile(r"<TEXT\b([^>]*)>(.*?)</TEXT>", re.DOTALL)
_TITLE = re.compile(r"<TITLE>(.*?)</TITLE>", re.DOTALL)
_BODY = re.compile(r"<BODY>(.*?)</BODY>", re.DOTALL)
_TAG = re.compile(r"</?[A-Z]+[^>]*>")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]+")


class Document(NamedTuple):
    """One story.

    Args:
        text: title and body; the whole text if the story has no such parts (TYPE "UNPROC", some "BRIEF").
        topics: the indexed topics, in the file's order; may be empty.
        indexed: if true, an indexer has seen it (TOPICS="YES"); otherwise missing topics mean nothing.
        part: "train" or "test" under ModApte, else None.
        line: number of its first line, from 1.
    """

    text: str
    topics: tuple[str, ...]
    indexed: bool
    part: str | None
    line: int


def read_reuters(path: str | Path) -> list[Document]:
    """Documents of one .sgm file, or of all in a folder, ordered by name.

    Files are latin-1; entities are resolved, control characters, raw or as entities, become spaces.
    """
    return [document for file in sgm_files(path) for document in _read_documents(file)]


def sgm_files(path: str | Path) -> list[Path]:
    """The file itself, or the folder's .sgm files."""
    path = Path(path)
    files = sorted(path.glob("*.sgm")) if path.is_dir() else [path]
    if not files:
        raise DataError(path, None, "a folder without .sgm files", "reut2-000.sgm to reut2-021.sgm")
    return files


def shared_topics(documents: Iterable[Document]) -> list[str]:
    """Topics with at least one training and one test document, in alphabetical order: 90 in the full collection."""
    counts: dict[str | None, Counter[str]] = {"train": Counter(), "test": Counter(), None: Counter()}
    for document in documents:
        counts[document.part].update(document.topics)
    return sorted(counts["train"].keys() & counts["test"].keys())


def _read_documents(path: Path) -> Iterator[Document]:
    with opened(path) as file:
        text = file.read().decode("latin-1")
    position, line = 0, 1
    for match in _DOCUMENT.finditer(text):
        line += text.count("\n", position, match.start())
        if "<REUTERS" in match[2]:
            raise DataError(path, line, "another <REUTERS> in this document", "</REUTERS> before it")
        yield _parse_document(path, match[1], match[2], line)
        line += match[0].count("\n")
        position = match.end()
    if (start := text.find("<REUTERS", position)) >= 0:
        line += text.count("\n", position, start)
        raise DataError(path, line, "a document without an end", "<REUTERS ...> ... </REUTERS>")
    if not position:
        raise DataError(path, None, "no document", "<REUTERS ...> ... </REUTERS>")


def _parse_document(path: Path, head: str, inner: str, line: int) -> Document:
    attributes = dict(_ATTRIBUTE.findall(head))
    topics, text = _TOPICS.search(inner), _TEXT.search(inner)
    if topics is None or text is None or not {"TOPICS", "LEWISSPLIT"} <= attributes.keys():
        expected = "attributes TOPICS and LEWISSPLIT, <TOPICS> ... </TOPICS> and <TEXT> ... </TEXT>"
        raise DataError(path, line, f"<REUTERS{shorten(head)[1:-1]}>", expected)
    is_indexed = attributes["TOPICS"] == "YES"
    part = {"TRAIN": "train", "TEST": "test"}.get(attributes["LEWISSPLIT"]) if is_indexed else None
    names = tuple(html.unescape(name).strip() for name in _TOPIC.findall(topics[1]))
    return Document(_extract_text(text[2]), names, is_indexed, part, line)


def _extract_text(text: str) -> str:
    title, body = _TITLE.search(text), _BODY.search(text)
    parts = [part[1] for part in (title, body) if part is not None]
    if body is None:  # the whole text, including a title
        parts = [_TAG.sub(" ", text)]
    return _CONTROL.sub(" ", html.unescape("\n".join(parts))).strip()


FOLDS, SEED = 10, 0  # for the validation part
MOD_APTE = (
    "Reuters-21578, ModApte: {train} training (validation included) and {test} test documents; the {labels} topics "
    f"both have. Validation: the first of {FOLDS} folds of the training documents by iterative stratification "
    f"(Sechidis et al. 2011), seed {SEED}: {{validation}} documents"
)


def read_parts(folder: Path) -> tuple[list[str], dict[str, list[Document]], str]:
    """The topics that training and test part share, the documents of each part, and the split in a sentence.

    Raises:
        DataError: a file is broken, or the two parts share no topic.
    """
    documents = read_reuters(folder)
    labels = shared_topics(documents)
    if not labels:
        raise DataError(folder, None, "no topic that a training and a test document share", "the whole collection")
    train, test = ([d for d in documents if d.part == part] for part in ("train", "test"))
    gold = np.array([[label in document.topics for label in labels] for document in train])
    held_out = (
        stratify(gold, FOLDS, SEED) == 0
    )  # repeated documents may be in both parts: published scores use this split
    parts = {
        "train": [train[i] for i in np.flatnonzero(~held_out)],
        "validation": [train[i] for i in np.flatnonzero(held_out)],
        "test": test,
    }
    sizes = {"train": len(train), "test": len(test), "validation": int(held_out.sum()), "labels": len(labels)}
    return labels, parts, MOD_APTE.format(**sizes)
