"""Odd texts through spen_en: alone, in batches and in several processes."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import inputs
from tries import Try

import spen_en

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

TOTAL = 10_000
TOGETHER = 20
"""Documents of a try."""
PROCESSES_EVERY = 25
"""Of so many tries one takes two processes, too, which start slowly."""


@cache
def pipeline() -> Language:
    """spen_en, loaded before tries are forked."""
    return spen_en.load()


def tries(seed: int, numbers: Iterator[int]) -> Iterator[Try]:
    """Tries of `TOGETHER` documents; numbers are those of tries."""
    for number in numbers:
        yield _try(
            f"documents-{seed}-{number}", random.Random(f"documents {seed} {number}"), not number % PROCESSES_EVERY
        )


def text(draw: random.Random) -> str:
    """Words, marks, blanks and characters of any script in any order."""
    kinds = (_words, _words, _words, _characters, _blanks, _repeated, _controls, _empty, _urls)
    return "".join(draw.choice(kinds)(draw) for _ in range(draw.randint(1, 6)))


def _words(draw: random.Random) -> str:
    joined = draw.choice((" ", " ", " ", "  ", "\n", "\t", "-", "/", ", "))
    return joined.join(draw.choices(inputs.WORDS, k=draw.randint(1, 30))) + draw.choice((".", "?", "…", "", " "))


def _characters(draw: random.Random) -> str:
    """Any code points but surrogates, which are no text."""
    found = (
        chr(draw.choice((draw.randrange(0x300), draw.randrange(0x3000), draw.randrange(0x110000)))) for _ in range(20)
    )
    return "".join(c for c in found if unicodedata.category(c) != "Cs")


def _blanks(draw: random.Random) -> str:
    return "".join(draw.choices(" \t\n\r\u00a0\u2003\u200b\u2028\u3000", k=draw.randint(1, 12)))


def _repeated(draw: random.Random) -> str:
    return draw.choice(("a", "!", "(", "🙂", "\u0301", "ab ", "1", "\u202e", "'")) * draw.choice((1, 3, 100, 600))


def _controls(draw: random.Random) -> str:
    return "".join(chr(draw.randrange(32)) for _ in range(5))


def _empty(draw: random.Random) -> str:
    return ""


def _urls(draw: random.Random) -> str:
    return draw.choice(
        (" http://a.b/c?d=e#f ", " a@b.cd ", " @who #what ", " :-)) ", " 1,000.50$ ", " U.S.A. ", "<b>x</b>")
    )


def annotations(doc: Doc) -> list[Any]:
    """What the components say, without their probabilities' last digits."""
    frames = [
        (frame.predicate.i, [(role, span.start, span.end) for role, span, _ in frame.arguments]) for frame in doc._.srl
    ]
    return [
        [(token.text, token.pos_, token.tag_) for token in doc],
        [(span.start, span.end, span.label_, round(span._.spen_score, 3)) for span in doc.ents],
        frames,
    ]


def _try(name: str, draw: random.Random, processes: bool) -> Try:
    texts = [text(draw) for _ in range(TOGETHER)]
    size = draw.choice((2, 7, 50))

    def act(folder: Path) -> None:
        nlp = pipeline()
        (folder / "texts").write_text(repr(texts), encoding="utf-8")
        alone = [nlp(given) for given in texts]
        for given, doc in zip(texts, alone, strict=True):
            if doc.text != given:
                raise AssertionError(f"the text has changed: {given!r}")
        ways = {"a batch": nlp.pipe(texts, batch_size=size)}
        if processes:
            ways["two processes"] = nlp.pipe(texts, batch_size=size, n_process=2)
        for way, docs in ways.items():
            for one, other in zip(alone, docs, strict=True):
                if annotations(one) != annotations(other):
                    raise AssertionError(f"alone and in {way} differ: {one.text!r}")

    return Try(name, act, lambda folder, ended: None, status=(0,))
