"""Word vectors as GloVe's text (a word, then its numbers), and as the two tensors in a run folder; and Brown clusters.

Clusters are in the format of Liang's wcluster (`paths`): a path in bits, a word and its count, tab-separated.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from spen_plugins.data.text import DIGITS, read_lines, shorten
from spen_plugins.errors import DataError, RunError
from spen_plugins.files import read_tensors

STORED = ".safetensors"
LARGEST_VECTORS = 1 << 33
"""Maximum size of a text file of vectors, in bytes; GloVe's largest has 5.6 GB."""
STEP = 1 / 16
"""Numbers stored in 8 bits are multiples of this step."""


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
            word = word.translate(DIGITS)
        row = 0 if fold == "lower" else self._row.get(word, 0)
        return row or (0 if fold == "none" else self._row.get(word.lower(), 0))

    def to_bytes(self) -> bytes:
        """A safetensors file: the words as UTF-8, separated by line breaks, and the matrix, in 8 bits if its numbers
        are multiples of `STEP`, from -127 to 127 of them."""
        words = torch.frombuffer(bytearray("\n".join(self.words).encode()), dtype=torch.uint8)
        steps = (self.matrix / STEP).clamp(-127, 127).to(torch.int8)
        return save({"words": words, "vectors": steps if torch.equal(steps * STEP, self.matrix) else self.matrix})


def read_vectors(path: str | Path) -> WordVectors:
    """Read GloVe's text, word2vec's text (a first line with two numbers: words, size), or the output of `to_bytes`.

    The first line determines the vectors' size. For a word that occurs twice, the first vector is used.
    """
    if Path(path).suffix == STORED:
        return _read_stored(path)
    lines = [line.rstrip() for line in read_lines(path, LARGEST_VECTORS)]
    header = re.fullmatch(r"(\d+)[ \t]+(\d+)", lines[0]) if len(lines) > 1 else None
    # Vectors may have size 1; then the second line has two cells, too.
    word_count = int(header[1]) if header and len(lines[1].split()) - 1 == int(header[2]) > 1 else None
    start = 0 if word_count is None else 1
    if word_count not in (None, len(lines) - 1):
        raise DataError(path, 1, f"{word_count} words", f"{len(lines) - 1}, the lines below; was the file cut off?")
    size = len(lines[start].split()) - 1
    if size < 1:
        raise DataError(path, start + 1, shorten(lines[start]), "a word and its numbers, separated by spaces")
    rows: dict[str, np.ndarray] = {}
    for word, vector in _parse_vectors(path, lines, start, size):
        rows.setdefault(word, vector)
    return WordVectors(list(rows), torch.from_numpy(np.stack([np.zeros(size, np.float32), *rows.values()])))


def _parse_vectors(path: str | Path, lines: list[str], start: int, size: int) -> Iterator[tuple[str, np.ndarray]]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # NumPy's warning for text after the last number
        for n, line in enumerate(lines[start:], start + 1):
            word, _, numbers = line.partition(" ")
            vector = _parse_numbers(numbers)
            if vector is None or len(vector) != size:  # words with spaces, as in glove.840B
                word, *cells = line.rsplit(None, size) or [""]
                vector = _parse_numbers(" ".join(cells))
                if vector is None or len(vector) != size or not word:
                    expected = f"a word and {size} numbers, as in line {start + 1}"
                    hint = "; was the file cut off?" if n == len(lines) else ""
                    raise DataError(path, n, f"{len(line.split())} cells, {shorten(line)}", expected + hint)
            if not np.isfinite(vector).all():
                raise DataError(path, n, f"{vector[~np.isfinite(vector)][0]} for {shorten(word)}", "finite numbers")
            yield word, vector


def _parse_numbers(text: str) -> np.ndarray | None:
    try:
        return np.fromstring(text, dtype=np.float32, sep=" ")
    except (ValueError, DeprecationWarning):
        return None


def _read_stored(path: str | Path) -> WordVectors:
    try:
        tensors, _ = read_tensors(Path(path))
        words, vectors = tensors["words"].numpy().tobytes().decode().split("\n"), tensors["vectors"]
        vectors = vectors * STEP if vectors.dtype == torch.int8 else vectors
        if vectors.dim() != 2 or not vectors.is_floating_point() or len(words) + 1 != len(vectors):
            raise ValueError
    except FileNotFoundError:
        raise DataError(path, None, "no such file", "a file that exists") from None
    except (OSError, KeyError, ValueError, RunError):
        expected = "word vectors of a run folder, or GloVe's text format with another suffix"
        raise DataError(path, None, "an unreadable file", expected) from None
    return WordVectors(words, vectors)


_MENTION = re.compile(r"@\w+")
_URL = re.compile(r"(?:https?:/{0,2}|www\.)\S*|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,4}/\S*", re.IGNORECASE)
_URL_PREFIX = re.compile(r"(?:https?:/{0,2})?(?:www\.)?")


class WordClusters:
    """Words and the paths of their clusters."""

    def __init__(self, paths: dict[str, str]) -> None:
        self.paths = paths

    def path(self, word: str) -> str | None:
        """The word's path, looked up as written, in lower case, then as a mention or a URL; None if unknown."""
        return next((path for form in _list_forms(word) if (path := self.paths.get(form)) is not None), None)

    def prefixes(self, length: int) -> list[str]:
        """The distinct prefixes of `length` bits, in order; a shorter path is its own prefix."""
        return sorted({path[:length] for path in self.paths.values()})

    def to_bytes(self) -> bytes:
        """A file in the same format; the counts, which are not stored, are all 1."""
        return "".join(f"{path}\t{word}\t1\n" for word, path in self.paths.items()).encode()


def read_clusters(path: str | Path) -> WordClusters:
    """Read a file of paths. For a word that occurs twice, the first path is used."""
    paths: dict[str, str] = {}
    for n, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        if len(cells) != 3 or not cells[1] or not cells[0] or cells[0].strip("01") or not cells[2].isdecimal():
            raise DataError(path, n, shorten(line), "a path of 0 and 1, a word and its count, separated by tabs")
        paths.setdefault(cells[1], cells[0])
    return WordClusters(paths)


def _list_forms(word: str) -> Iterator[str]:
    """Forms under which a word is looked up, including those of Owoputi et al. (2013) for tweets."""
    yield word
    yield (lower := word.lower())
    if _MENTION.fullmatch(word):
        yield "<@MENTION>"
    elif _URL.fullmatch(word):
        yield f"<URL-{_URL_PREFIX.sub('', lower, count=1).split('/')[0]}>"
        yield "<URL->"
