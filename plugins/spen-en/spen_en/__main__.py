"""`python -m spen_en TEXT`: shows the annotations of a text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import spen_en

if TYPE_CHECKING:
    from spacy.tokens import Doc


def main() -> None:
    """Entry point of `python -m spen_en`."""
    parser = argparse.ArgumentParser(prog="python -m spen_en", description="Show the annotations of a text by spen_en.")
    parser.add_argument("text", nargs="*", help="the text (default: standard input)")
    words = parser.parse_args().text
    text = " ".join(words) if words else sys.stdin.read().strip()
    for line in lines(spen_en.load()(text)):
        print(line)


def lines(doc: Doc) -> Iterator[str]:
    """The words with their tags, then the names and the frames with their probabilities."""
    yield " ".join(f"{token.text}/{token.pos_}" for token in doc if not token.is_space)
    for span in doc.ents:
        yield f"{span.label_:<10} {span.text}  {span._.spen_score:.2f}"
    for frame in doc._.srl:
        yield f"predicate  {frame.predicate.text}  {frame.score:.2f}"
        for role, span, score in frame.arguments:
            yield f"  {role:<8} {span.text}  {score:.2f}"


if __name__ == "__main__":
    main()
