"""PropBank's rolesets: the senses of predicates, with the meanings of the senses and of their numbered roles.

The folder `frames` has them with their source and licence, CC BY-SA 4.0; tools/english/make_rolesets.py makes its file.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parent / "frames" / "rolesets.tsv.xz"


class Roleset(NamedTuple):
    """A sense of a predicate."""

    id: str
    """`give.01`, or `give_up.07` for a verb with a particle."""
    lemma: str
    gloss: str
    """A few words on its meaning: "transfer"."""
    aliases: tuple[tuple[str, str], ...]
    """Lemmas that have this sense, with their parts of speech: v, n, j (adjective), l (light verb), m (several words)
    and rarer ones."""
    roles: Mapping[str, str]
    """Role -> its description: `{"ARG1": "thing given"}`."""

    def describe(self, role: str) -> str | None:
        """The description of a role, also of its continuation (C-ARG1) and of a reference to it (R-ARG1)."""
        return self.roles.get(role.removeprefix("C-").removeprefix("R-")) or None


class Rolesets(Mapping[str, Roleset]):
    """Rolesets by id. Each stays a line of text until it is looked up.

    Args:
        text: one line per roleset: id, lemma, gloss, aliases (`form/pos`) and roles (`ARG0=giver`), separated by tabs.
    """

    def __init__(self, text: str) -> None:
        self._lines = {line.partition("\t")[0]: line for line in text.splitlines()}
        self._senses: dict[str, tuple[str, ...]] = {}
        self._phrases: dict[str, tuple[str, ...]] = {}
        for name, line in self._lines.items():
            _, lemma, _, aliases, *_ = line.split("\t", 4)
            for form in {lemma, *(alias.rpartition("/")[0] for alias in aliases.split(" ") if alias)}:
                self._senses[form] = (*self._senses.get(form, ()), name)
            if particles(name):
                first = name.partition("_")[0]
                self._phrases[first] = (*self._phrases.get(first, ()), name)

    def __getitem__(self, name: str) -> Roleset:
        name, lemma, gloss, aliases, *roles = self._lines[name].split("\t")
        pairs = [alias.rpartition("/") for alias in aliases.split(" ") if alias]
        descriptions = (role.partition("=") for role in roles)
        return Roleset(
            name,
            lemma,
            gloss,
            tuple((form, pos) for form, _, pos in pairs),
            {role: text for role, _, text in descriptions},
        )

    def __contains__(self, name: object) -> bool:
        return name in self._lines

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def senses(self, lemma: str) -> tuple[str, ...]:
        """Ids of the rolesets that have this lemma, or have it as an alias, in alphabetical order."""
        return self._senses.get(lemma, ())

    def phrases(self, lemma: str) -> tuple[str, ...]:
        """Ids of the rolesets of this lemma with particles: `give_up.07` for give."""
        return self._phrases.get(lemma, ())


def particles(name: str) -> tuple[str, ...]:
    """The words after the first in a roleset's id: up in `give_up.07`."""
    return tuple(name.rpartition(".")[0].split("_")[1:])


@cache
def rolesets() -> Rolesets:
    """The rolesets that come with this package, read at the first call."""
    return Rolesets(lzma.decompress(FILE.read_bytes()).decode())
