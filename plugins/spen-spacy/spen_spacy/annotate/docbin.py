"""DocBin files of documents."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

import srsly
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spen_plugins import DataError

WORD = 6
"""Bytes of a word, with the blank after it, from which the size of a DocBin is estimated."""


def _open(path: str | Path) -> DocBin:
    try:
        return DocBin().from_disk(path)
    except Exception as error:  # zlib, msgpack, numpy and spaCy raise their own
        found = f"a damaged file ({type(error).__name__})"
        raise DataError(path, None, found, "a DocBin, as spaCy's DocBin.to_disk writes it") from error


def read_user_data(path: str | Path) -> Iterator[dict[Any, Any]]:
    """The user data of each doc; `DataError` if the file is damaged."""
    return (srsly.msgpack_loads(data, use_list=False) for data in _open(path).user_data)


def measure_docs(path: str | Path) -> list[int]:
    """Approximate number of bytes of the words of each doc; `DataError` if the file is damaged."""
    return [len(tokens) * WORD for tokens in _open(path).tokens]


def read_docs(path: str | Path, start: int, end: int, vocab: Vocab) -> Iterator[Doc | str]:
    """The docs from `start` to `end` (exclusive), or the fault of a damaged doc; no others are created. `DataError` if
    the file is damaged."""
    docs = _open(path)
    for number in range(start, min(end, len(docs))):
        single = copy(docs)
        for name in ("tokens", "spaces", "cats", "flags", "span_groups", "user_data"):
            if len(values := getattr(docs, name)):
                setattr(single, name, values[number : number + 1])
        single.strings = docs.strings if number == start else set()  # the vocabulary has them after the first doc
        try:
            [doc] = single.get_docs(vocab)
            DocBin(store_user_data=True).add(doc)  # looks every string up
        except Exception as error:
            yield f"a damaged doc ({type(error).__name__}: {error})"
        else:
            yield doc
