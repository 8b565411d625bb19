"""Word vectors as GloVe's text (a word, then its numbers), and as the two tensors in a run folder."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from spen_plugins.data.text import read_lines, shorten
from spen_plugins.errors import DataError, RunError
from spen_plugins.files import read_tensors

STORED = ".safetensors"
LARGEST_VECTORS = 1 << 33
"""Most bytes of a file of vectors as text; the largest of GloVe's has 5.6 GB."""
_DIGITS = str.maketrans("123456789", "000000000")


class WordVectors:
    """Words, all different, and their vectors `(1 + word, size)` float32; row 0 is zero, for words without a vector."""

    def __init__(self, words: list[str], matrix: Tensor) -> None:
        self.words, self.matrix = words, matrix
        self._row = {word: row for row, word in enumerate(words, 1)}

    def row(self, word: str, fold: str = "fallback", digits: str = "keep") -> int:
        """The word's row, 0 if unknown.

        It is looked up as written (`fold` "none"), in lower case ("lower"), or as written, then in lower case
        ("fallback"); with digits "zero" every digit is looked up as 0.
        """
        if digits == "zero":
            word = word.translate(_DIGITS)
        row = 0 if fold == "lower" else self._row.get(word, 0)
        return row or (0 if fold == "none" else self._row.get(word.lower(), 0))

    def to_bytes(self) -> bytes:
        """A safetensors file: the matrix, and the words as UTF-8 with line breaks between."""
        words = torch.frombuffer(bytearray("\n".join(self.words).encode()), dtype=torch.uint8)
        return save({"words": words, "vectors": self.matrix})


def read_vectors(path: str | Path) -> WordVectors:
    """Read GloVe's text, word2vec's text (a first line with two numbers: words, size), or the output of `to_bytes`.

    The first line determines the vectors' size. For a word that occurs twice, the first vector is used.
    """
    if Path(path).suffix == STORED:
        return _stored(path)
    lines = [line.rstrip() for line in read_lines(path, LARGEST_VECTORS)]
    header = re.fullmatch(r"(\d+)[ \t]+(\d+)", lines[0]) if len(lines) > 1 else None
    # Vectors may have size 1; then the second line has two cells, too.
    stated = int(header[1]) if header and len(lines[1].split()) - 1 == int(header[2]) > 1 else None
    start = 0 if stated is None else 1
    if stated not in (None, len(lines) - 1):
        raise DataError(path, 1, f"{stated} words", f"{len(lines) - 1}, as there are lines after it; was the file cut?")
    size = len(lines[start].split()) - 1
    if size < 1:
        raise DataError(path, start + 1, shorten(lines[start]), "a word and its numbers, with spaces between")
    rows: dict[str, np.ndarray] = {}
    for word, vector in _vectors(path, lines, start, size):
        rows.setdefault(word, vector)
    return WordVectors(list(rows), torch.from_numpy(np.stack([np.zeros(size, np.float32), *rows.values()])))


def _vectors(path: str | Path, lines: list[str], start: int, size: int) -> Iterator[tuple[str, np.ndarray]]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # NumPy's warning for text after the last number
        for n, line in enumerate(lines[start:], start + 1):
            word, _, numbers = line.partition(" ")
            vector = _numbers(numbers)
            if vector is None or len(vector) != size:  # words with spaces, as in glove.840B
                word, *cells = line.rsplit(None, size) or [""]
                vector = _numbers(" ".join(cells))
                if vector is None or len(vector) != size or not word:
                    wanted = f"a word and {size} numbers, as in line {start + 1}"
                    cut = "; was the file cut?" if n == len(lines) else ""
                    raise DataError(path, n, f"{len(line.split())} cells, {shorten(line)}", wanted + cut)
            if not np.isfinite(vector).all():
                raise DataError(path, n, f"{vector[~np.isfinite(vector)][0]} for {shorten(word)}", "finite numbers")
            yield word, vector


def _numbers(text: str) -> np.ndarray | None:
    try:
        return np.fromstring(text, dtype=np.float32, sep=" ")
    except (ValueError, DeprecationWarning):
        return None


def _stored(path: str | Path) -> WordVectors:
    try:
        tensors, _ = read_tensors(Path(path))
        words, vectors = tensors["words"].numpy().tobytes().decode().split("\n"), tensors["vectors"]
        if vectors.dim() != 2 or not vectors.is_floating_point() or len(words) + 1 != len(vectors):
            raise ValueError
    except (OSError, KeyError, ValueError, RunError):
        wanted = "word vectors as a run folder keeps them, or GloVe's text under another suffix"
        raise DataError(path, None, "a file that can't be read as such", wanted) from None
    return WordVectors(words, vectors)
