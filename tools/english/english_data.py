"""Write the named-entity data of the English pipeline: four corpora with their three common types.

    python -m tools.english.english_data runs/english/data

Tweets (BTC), noisy texts (WNUT-17), five genres of edited text (GUM) and Wikipedia (Wikigold). WNUT-17's person,
location, corporation and group become PER, LOC, ORG and ORG; its products and creative works and Wikigold's MISC, which
the others don't mark, are left out. Writes ner.train.conll, ner.dev.conll and ner.test.conll of all corpora, and the
dev and test part of each, in BIO.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from spen_plugins.data.catalogue import locate
from spen_plugins.data.schemes import Scheme, convert
from spen_plugins.data.sentences.columns import TaggedSentence, read_columns
from spen_plugins.files import save_text
from tools.errors import end_with_message

FILES = {
    "btc": {"train": "btc/btc.train", "dev": "btc/btc.dev", "test": "btc/btc.test"},
    "wnut17": {
        "train": "wnut17/wnut17train.conll",
        "dev": "wnut17/emerging.dev.conll",
        "test": "wnut17/emerging.test.annotated",
    },
    "gum": {part: f"gum/{part}.conll" for part in ("train", "dev", "test")},
    "wikigold": {part: f"wikigold/{part}.conll" for part in ("train", "dev", "test")},
}
SCHEMES: dict[str, Scheme] = {"wikigold": "iob1"}
"""Schemes of the corpora that aren't in BIO."""
TYPES = {"person": "PER", "location": "LOC", "corporation": "ORG", "group": "ORG"}
"""WNUT-17's types -> those of the others."""
LEFT_OUT = ("product", "creative-work", "MISC")


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder to write to")
    out = parser.parse_args().out
    write_all(out)


def write_all(out: Path) -> None:
    """Write the files to `out`."""
    sentences = {
        (name, part): read_columns(locate(f"data:ner/{file}"), 0, -1)
        for name, parts in FILES.items()
        for part, file in parts.items()
    }
    for part in ("train", "dev", "test"):
        text = "".join(lines(sentences[name, part], SCHEMES.get(name, "bio")) for name in FILES)
        save_text(text, out / f"ner.{part}.conll")
    for name in FILES:
        for part in ("dev", "test"):
            save_text(lines(sentences[name, part], SCHEMES.get(name, "bio")), out / f"{name}.{part}.conll")


def lines(sentences: Iterable[TaggedSentence], scheme: Scheme) -> str:
    """One word and its tag per line, and an empty line after each sentence."""
    rows = []
    for sentence in sentences:
        tags = sentence.tags if scheme == "bio" else convert(sentence.tags, scheme, "bio")
        rows += [f"{word}\t{mapped(tag)}\n" for word, tag in zip(sentence.words, tags, strict=True)]
        rows.append("\n")
    return "".join(rows)


def mapped(tag: str) -> str:
    """A tag with its type mapped to PER, LOC or ORG."""
    prefix, dash, kind = tag.partition("-")
    if kind in LEFT_OUT:
        return "O"
    return prefix + dash + TYPES.get(kind, kind)


if __name__ == "__main__":
    main()
