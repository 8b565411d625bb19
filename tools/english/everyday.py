"""Counts the arguments of a hundred everyday sentences that a pipeline gets right, and lists the others.

    python -m tools.english.everyday spen_en

The sentences and their frames are in tests/spacy/everyday.txt. A gold argument counts as right if the pipeline's frame
of the same predicate has one with the same role and words; the arguments of a missing predicate count as missed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.language import Language
from spacy.tokens import Doc

SENTENCES = Path(__file__).resolve().parents[2] / "tests/spacy/everyday.txt"


class Argument(NamedTuple):
    """An argument of the words `start` to `end` (exclusive)."""

    role: str
    start: int
    end: int


class Frame(NamedTuple):
    """The sense of the word `predicate`, and its arguments."""

    sense: str
    predicate: int
    arguments: frozenset[Argument]


class Sentence(NamedTuple):
    """A sentence and the name of its section."""

    kind: str
    words: list[str]
    frames: list[Frame]


class Score(NamedTuple):
    """Counts over sentences.

    Attributes:
        right: right arguments.
        gold: arguments by hand.
        said: the pipeline's arguments of the predicates that have a frame by hand.
        missed: sentence, frame and argument of each gold argument that the pipeline misses.
    """

    right: int
    gold: int
    said: int
    missed: list[tuple[Sentence, Frame, Argument]]


def read(path: Path = SENTENCES) -> list[Sentence]:
    """The sentences of a file in the format of everyday.txt."""
    kind, sentences = "", []
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in block.splitlines() if line.split()[:1] not in ([], ["#"])]
        if lines and lines[0].startswith("## "):
            kind = lines.pop(0)[3:]
        if lines:
            words = lines[0].split()
            sentences.append(Sentence(kind, words, [_parse_frame(line, words) for line in lines[1:]]))
    return sentences


def _parse_frame(line: str, words: list[str]) -> Frame:
    """The frame of a line such as `love.01 Thanks , [ARG0 I] [V love] [ARG1 it] !`."""
    sense, *tokens = line.split()
    plain: list[str] = []
    spans: list[Argument] = []
    role, start = "", 0
    for word in tokens:
        if word.startswith("["):
            role, start = word[1:], len(plain)
            continue
        plain.append(word.removesuffix("]"))
        if word.endswith("]"):
            spans.append(Argument(role, start, len(plain)))
    [predicate] = [span.start for span in spans if span.role == "V"]
    if plain != words:
        raise ValueError(f"{line}: found other words than in {' '.join(words)}")
    return Frame(sense, predicate, frozenset(span for span in spans if span.role != "V"))


def score(nlp: Language, sentences: list[Sentence]) -> Score:
    """Compare the frames of a pipeline with those by hand."""
    right = gold = predicted = 0
    missed = []
    docs = nlp.pipe([Doc(nlp.vocab, words=sentence.words) for sentence in sentences])
    for sentence, doc in zip(sentences, docs, strict=True):
        frames = {frame.predicate.i: set(_iterate_arguments(frame)) for frame in doc._.srl}
        for frame in sentence.frames:
            arguments = frames.get(frame.predicate, set())
            right, gold, predicted = (
                right + len(arguments & frame.arguments),
                gold + len(frame.arguments),
                predicted + len(arguments),
            )
            missed += [(sentence, frame, argument) for argument in sorted(frame.arguments - arguments)]
    return Score(right, gold, predicted, missed)


def _iterate_arguments(frame: object) -> Iterator[Argument]:
    for role, span, _ in frame.arguments:
        yield Argument(role, span.start, span.end)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", help="name or folder of a pipeline that sets doc._.srl")
    nlp, sentences = spacy.load(parser.parse_args().pipeline), read()
    for kind in dict.fromkeys(sentence.kind for sentence in sentences):
        part = score(nlp, [sentence for sentence in sentences if sentence.kind == kind])
        print(f"{kind}: {part.right} of {part.gold} arguments")
        for sentence, frame, (role, start, end) in part.missed:
            print(f"    {sentence.words[frame.predicate]}: {role} {' '.join(sentence.words[start:end])}")
    total = score(nlp, sentences)
    print(f"all: {total.right} of {total.gold} arguments, {100 * total.right / total.gold:.1f} %; {total.said} said")


if __name__ == "__main__":
    main()
