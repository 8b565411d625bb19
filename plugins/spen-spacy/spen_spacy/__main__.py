"""`python -m spen_spacy PIPELINE TEXT`: shows what a pipeline finds in a text."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import spacy

if TYPE_CHECKING:
    from spacy.tokens import Doc


def main(pipeline: str | None = None) -> None:
    """Entry point of `python -m spen_spacy`, and of a package that shows its own pipeline.

    Args:
        pipeline: name or folder; None: the first argument of the command line.
    """
    description = f"Show what {pipeline or 'a pipeline'} finds in a text."
    parser = argparse.ArgumentParser(prog=f"python -m {pipeline or 'spen_spacy'}", description=description)
    if pipeline is None:
        parser.add_argument("pipeline", help="name or folder of a spaCy pipeline, such as spen_en")
    parser.add_argument("text", nargs="*", help="the text (default: standard input)")
    options = parser.parse_args()
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")  # in any locale
    try:
        text = " ".join(options.text) if options.text else sys.stdin.read().strip()
        text = text.encode("utf-8", "surrogateescape").decode("utf-8")
    except UnicodeError:
        parser.error("The text is not UTF-8.")
    if not text:
        parser.error("The text is empty.")
    name = pipeline or options.pipeline
    try:
        nlp = spacy.load(name)
    except OSError:
        parser.error(f"Unknown pipeline {name!r}; expected the name of an installed package, or a folder.")
    for line in lines(nlp(text)):
        print(line)


def lines(doc: Doc) -> Iterator[str]:
    """Yields the words with their tags, then names and frames, with the senses and probabilities that they have."""
    yield " ".join("/".join(filter(None, [token.text, token.pos_])) for token in doc if not token.is_space)
    for span in doc.ents:
        score = span._.spen_score if span.has_extension("spen_score") else None
        yield f"{span.label_:<10} {span.text}" + ("" if score is None else f"  {score:.2f}")
    for frame in doc._.srl if doc.has_extension("srl") else ():
        yield "  ".join(["predicate", frame.predicate.text, *filter(None, [frame.sense]), f"{frame.score:.2f}"])
        for role, span, score in frame.arguments:
            yield f"  {role:<8} {span.text}  {score:.2f}"


if __name__ == "__main__":
    main()
