"""Write the named-entity data of the English pipeline: BTC and WNUT-17 with their three common types.

    python tools/english_data.py runs/english/data

WNUT-17's person, location, corporation and group become PER, LOC, ORG and ORG; its products and creative works, which
BTC doesn't mark, are left out. Writes ner.train.conll and ner.dev.conll of both corpora, and dev and test of each.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from spen_plugins.datasets import locate
from spen_plugins.errors import SpenError
from spen_plugins.files import writing
from spen_plugins.readers.columns import TaggedSentence, read_columns

FILES = {
    "btc": {"train": "btc/btc.train", "dev": "btc/btc.dev", "test": "btc/btc.test"},
    "wnut17": {
        "train": "wnut17/wnut17train.conll",
        "dev": "wnut17/emerging.dev.conll",
        "test": "wnut17/emerging.test.annotated",
    },
}
TYPES = {"person": "PER", "location": "LOC", "corporation": "ORG", "group": "ORG"}
"""WNUT-17's types -> BTC's."""
LEFT_OUT = ("product", "creative-work")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder to write to")
    out = parser.parse_args().out
    try:
        write_all(out)
    except SpenError as error:
        raise SystemExit(f"error: {error}") from None


def write_all(out: Path) -> None:
    """Write the six files to `out`."""
    read = {
        (name, part): read_columns(locate(f"data:ner/{file}"), 0, -1)
        for name, parts in FILES.items()
        for part, file in parts.items()
    }
    out.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev"):
        write(out / f"ner.{part}.conll", [*read["btc", part], *read["wnut17", part]])
    for name in FILES:
        for part in ("dev", "test"):
            write(out / f"{name}.{part}.conll", read[name, part])


def write(path: Path, sentences: Iterable[TaggedSentence]) -> None:
    """Write one word and its tag per line, and an empty line after each sentence."""
    lines = []
    for sentence in sentences:
        lines += [f"{word}\t{mapped(tag)}\n" for word, tag in zip(sentence.words, sentence.tags, strict=True)]
        lines.append("\n")
    with writing(path) as part:
        part.write_text("".join(lines), encoding="utf-8")


def mapped(tag: str) -> str:
    """A tag with its type mapped to BTC's."""
    prefix, dash, kind = tag.partition("-")
    if kind in LEFT_OUT:
        return "O"
    return prefix + dash + TYPES.get(kind, kind)


if __name__ == "__main__":
    main()
