"""Brown clusters in the format of Liang's wcluster (`paths`): a path in bits, a word and its count, tab-separated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from spen_plugins.data.text import read_lines, shorten
from spen_plugins.errors import DataError

_MENTION = re.compile(r"@\w+")
_URL = re.compile(r"(?:https?:/{0,2}|www\.)\S*|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,4}/\S*", re.IGNORECASE)
_BEFORE_DOMAIN = re.compile(r"(?:https?:/{0,2})?(?:www\.)?")


class WordClusters:
    """Words and the paths of their clusters."""

    def __init__(self, paths: dict[str, str]) -> None:
        self.paths = paths

    def path(self, word: str) -> str | None:
        """The word's path, looked up as written, in lower case, then as a mention or a URL; None if unknown."""
        return next((path for form in _forms(word) if (path := self.paths.get(form)) is not None), None)

    def prefixes(self, length: int) -> list[str]:
        """The distinct prefixes of `length` bits, in order; a shorter path is its own prefix."""
        return sorted({path[:length] for path in self.paths.values()})

    def to_bytes(self) -> bytes:
        """A file in the same format; counts are not kept and are 1."""
        return "".join(f"{path}\t{word}\t1\n" for word, path in self.paths.items()).encode()


def read_clusters(path: str | Path) -> WordClusters:
    """Read a file of paths. For a word that occurs twice, the first path is used."""
    paths: dict[str, str] = {}
    for n, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        if len(cells) != 3 or not cells[1] or not cells[0] or cells[0].strip("01") or not cells[2].isdecimal():
            raise DataError(path, n, shorten(line), "a path of 0 and 1, a word and its count, with tabs between")
        paths.setdefault(cells[1], cells[0])
    return WordClusters(paths)


def _forms(word: str) -> Iterator[str]:
    """Forms under which a word is looked up, including those of Owoputi et al. (2013) for tweets."""
    yield word
    yield (lower := word.lower())
    if _MENTION.fullmatch(word):
        yield "<@MENTION>"
    elif _URL.fullmatch(word):
        yield f"<URL-{_BEFORE_DOMAIN.sub('', lower, count=1).split('/')[0]}>"
        yield "<URL->"
