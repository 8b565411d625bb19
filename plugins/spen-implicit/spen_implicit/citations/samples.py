"""Synthetic citations from templates: deterministic, the same at every call and on every machine."""

from __future__ import annotations

import random
from functools import cache

from spen_implicit.citations.reader import make_sentence
from spen_plugins.sentences import TaggedSentence

SIZES = {"train": 120, "validation": 40, "test": 40}

_TOPICS = (
    *("parallel programs", "neural networks", "logic programs", "shared memory", "data compression", "robot arms"),
    *("sparse matrices", "distributed systems", "image sequences", "decision trees", "type systems", "expert systems"),
)
_ASPECTS = (
    *("an analysis of", "efficient algorithms for", "the design of", "learning", "a theory of", "notes on"),
    *("the complexity of", "scheduling for", "a survey of", "verification of", "a language for", "compiling"),
)
_ENDINGS = ("", "", " in practice", " with bounded memory", ": a case study", " by search", " revisited")
_FIELDS = ("Computer Architecture", "Machine Learning", "Operating Systems", "Logic Programming", "Computer Vision")
_PLACES = ("Boston, MA", "San Jose, CA", "Berlin, Germany", "Tokyo, Japan", "Paris, France", "New York")
_PUBLISHERS = ("Morgan Kaufmann", "Springer-Verlag", "MIT Press", "Academic Press", "John Wiley & Sons")
_MONTHS = ("January", "March", "May", "June", "Aug.", "October", "December")
_NOTES = ("To appear", "Submitted", "In preparation")

ONSETS = (
    *("b", "br", "d", "dr", "f", "g", "gl", "k", "kr", "l", "m"),
    *("n", "p", "pl", "r", "s", "st", "t", "tr", "v", "z"),
)
VOWELS = ("a", "e", "i", "o", "u", "ea", "oo")
CODAS = ("b", "d", "g", "l", "m", "n", "nd", "p", "r", "rk", "s", "st", "t")


class _Writer:
    """Writes citations in one of two styles: initials before surnames or after, the year last or after the author."""

    def __init__(self, source: random.Random) -> None:
        self.source = source

    def citation(self) -> TaggedSentence:
        choose = self.source.choice
        surname_first = self.source.random() < 0.4
        pieces = [("author", self._write_people(surname_first)), ("title", self._write_title())]
        details = choose(
            (self._write_paper, self._write_article, self._write_book, self._write_report, self._write_unpublished)
        )()
        year = str(self.source.randint(1970, 1999))
        if surname_first:
            pieces.insert(1, ("date", f"({year})."))
        else:
            details.insert(
                self.source.randint(1, len(details)), ("date", f"{choose((f'{choose(_MONTHS)} ', ''))}{year},")
            )
        field, text = details[-1]
        details[-1] = field, text.rstrip(",.") + "."
        return make_sentence([*pieces, *details])

    def _write_people(self, surname_first: bool) -> str:
        people = []
        for _ in range(self.source.choice((1, 1, 2, 2, 3))):
            surname = coin(self.source).capitalize()
            initials = " ".join(f"{self.source.choice('ABCDEGHJKLMPRST')}." for _ in range(self.source.choice((1, 2))))
            people.append(f"{surname}, {initials}" if surname_first else f"{initials} {surname}")
        *others, last = people
        last = last if surname_first else f"{last}."
        return f"{', '.join(others)}, {'&' if surname_first else 'and'} {last}" if others else last

    def _write_title(self) -> str:
        choose = self.source.choice
        title = f"{choose(_ASPECTS)} {choose(_TOPICS)}{choose(_ENDINGS)}".capitalize()
        return choose((f"{title}.", f'"{title},"', f"{title}."))

    def _write_pages(self) -> str:
        first = self.source.randint(1, 800)
        return f"{self.source.choice(('', 'pages ', 'pp. '))}{first}-{first + self.source.randint(2, 40)},"

    def _write_paper(self) -> list[tuple[str, str]]:
        choose = self.source.choice
        meeting = f"{choose(('Conference', 'Workshop', 'Symposium'))} on {choose(_FIELDS)}"
        pieces = [("booktitle", f"In {choose(('Proceedings of the', 'Proc. of the'))} International {meeting},")]
        if self.source.random() < 0.2:
            pieces.insert(0, ("editor", f"In {self._write_people(False).rstrip('.')}, editors,"))
        others = [
            ("pages", self._write_pages()),
            ("location", f"{choose(_PLACES)},"),
            ("publisher", f"{choose(_PUBLISHERS)},"),
        ]
        return pieces + [piece for piece in others if self.source.random() < 0.6]

    def _write_article(self) -> list[tuple[str, str]]:
        name = self.source.choice(("Journal of", "IEEE Transactions on", "Annals of", "SIAM Letters on"))
        journal = f"{name} {self.source.choice(_FIELDS)},"
        volume, number = self.source.randint(1, 60), self.source.randint(1, 12)
        numbers = self.source.choice((f"{volume}({number}),", f"vol. {volume}, no. {number},", f"{volume},"))
        return [("journal", journal), ("volume", numbers), ("pages", self._write_pages())]

    def _write_book(self) -> list[tuple[str, str]]:
        return [("publisher", f"{self.source.choice(_PUBLISHERS)},"), ("location", f"{self.source.choice(_PLACES)},")]

    def _write_report(self) -> list[tuple[str, str]]:
        choose = self.source.choice
        number = f"{choose(('TR', 'CS'))}-{self.source.randint(10, 99)}-{self.source.randint(1, 400)}"
        place = coin(self.source).capitalize()
        institution = choose((f"University of {place}", f"Department of Computer Science, {place} University"))
        return [("tech", f"{choose(('Technical Report', 'PhD thesis'))} {number},"), ("institution", f"{institution},")]

    def _write_unpublished(self) -> list[tuple[str, str]]:
        return [*self._write_article()[:1], ("note", f"{self.source.choice(_NOTES)},")]


@cache
def sample_citations(seed: int = 2022) -> dict[str, list[TaggedSentence]]:
    """Citations of `train`, `validation` and `test`, all distinct."""
    writer = _Writer(random.Random(seed))
    written_words: set[tuple[str, ...]] = set()
    parts: dict[str, list[TaggedSentence]] = {}
    for part, size in SIZES.items():
        parts[part] = []
        while len(parts[part]) < size:
            citation = writer.citation()
            if citation.words not in written_words:
                written_words.add(citation.words)
                parts[part].append(citation)
    return parts


def coin(source: random.Random, syllables: int = 2) -> str:
    """A pronounceable word in lower case: "brastoon"."""
    return "".join(source.choice(ONSETS) + source.choice(VOWELS) + source.choice(CODAS) for _ in range(syllables))
