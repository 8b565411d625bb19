r"""Labels of unlabelled text by a larger net, for a smaller one to learn from: for `make english` and `english-md`.

    SPEN_DATA=... python -m tools.english.distil roles runs/english_md/taught.jsonl --teacher runs/english_md/teacher \
        --precision bf16
    SPEN_DATA=... python -m tools.english.distil names runs/english/data/ner.taught.conll

The packaged spen_en_md finds names and predicates, and roles unless `--teacher` names another net.

Roles: of GoEmotions' training part, comments from Reddit with common names in place of its [NAME], split into sentences
and words by spen_en_md, and of the training sentences of the four corpora of names (english_data.py). They follow EWT
PropBank's training part, whose roles are gold; JSONL, one line a predicate.

Names: of EWT's training sentences. They follow the training parts of the corpora of names, which are gold; BIO.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, cycle
from pathlib import Path
from typing import Any

import spacy

import spen_plugins as sp
from spen_plugins.data.catalogue import locate
from spen_plugins.data.sentences.columns import read_columns
from spen_plugins.data.sentences.roles import read_roles
from spen_plugins.files import writing
from tools.english.english_data import FILES, write_all

PIPELINE = Path("plugins/spen-en-md/spen_en_md/pipeline")
GOLD = "data:srl/ewt_propbank/ewt-propbank-train.gold_conll"
TEXT = "data:text/goemotions/train.tsv"
NAMES = ("Anna", "James", "Maria", "David", "Sarah", "Peter", "Laura", "Ahmed", "Emily", "Carlos", "Smith", "Wei")
"""In place of GoEmotions' [NAME], each in its turn."""
SHORTEST, LONGEST = 3, 60
"""Words of a sentence; longer ones are mostly several, or lists."""
AT_ONCE = 2000
"""Sentences that are read together."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", choices=WRITERS, help="labels to write")
    parser.add_argument("out", type=Path, help="file to write")
    parser.add_argument("--teacher", type=Path, help="a run that labels in place of spen_en_md's own")
    parser.add_argument("--precision", choices=("no", "bf16"), default="no", help="of the net that labels; see sp.load")
    options = parser.parse_args()
    distil(options.labels, options.out, options.teacher, options.precision)


def distil(labels: str, out: Path, teacher: Path | None = None, precision: str = "no") -> Path:
    """Write the file; nothing is done if it is there."""
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        write, own = WRITERS[labels]
        with writing(out) as part, part.open("w", encoding="utf-8") as file:
            file.writelines(write(out.parent, sp.load(teacher or PIPELINE / own, precision=precision)))
    return out


def role_lines(_: Path, net: sp.Predictor) -> Iterator[str]:
    for items in (gold(), taught(net)):
        yield from (json.dumps(item, ensure_ascii=False) + "\n" for item in items)


def name_lines(folder: Path, net: sp.Predictor) -> Iterator[str]:
    write_all(folder)
    yield (folder / "ner.train.conll").read_text(encoding="utf-8")
    for words in groups(list(sentence.words) for sentence in read_roles(locate(GOLD), "auto").sentences):
        for some, one in zip(words, net.predict(words), strict=True):
            yield "".join(f"{word}\t{tag}\n" for word, tag in zip(some, one["tags"], strict=True)) + "\n"


WRITERS = {"roles": (role_lines, "spen_srl/model"), "names": (name_lines, "spen_ner/model")}
"""By what it labels: the lines of a file, from its folder and the net that labels, and spen_en_md's own net."""


def gold() -> Iterator[dict[str, Any]]:
    """The predicates of the corpus with their tags."""
    for sentence in read_roles(locate(GOLD), "auto").sentences:
        for given in sentence.propositions:
            yield item(sentence.words, given.predicate, given.tags)


def taught(roles: sp.Predictor) -> Iterator[dict[str, Any]]:
    """The predicates that are found in the text, with the tags that are."""
    predicates = sp.load(PIPELINE / "spen_srl" / "predicates")
    for number, words in enumerate(groups(sentences())):
        found = [
            {"words": some, "predicate": entity["start"]}
            for some, one in zip(words, predicates.predict(words), strict=True)
            for entity in one["entities"]
        ]
        for given, one in zip(found, roles.predict(found), strict=True):
            yield item(given["words"], given["predicate"], one["tags"])
        print(f"{(number + 1) * AT_ONCE:,} sentences", flush=True)


def item(words: Sequence[str], predicate: int, tags: Sequence[str]) -> dict[str, Any]:
    return {"words": list(words), "predicate": predicate, "tags": list(tags)}


def sentences() -> Iterator[list[str]]:
    """The words of each sentence of the text."""
    for words in chain(comments(), named()):
        if SHORTEST <= len(words) <= LONGEST:
            yield words


def comments() -> Iterator[list[str]]:
    """Sentences of GoEmotions' comments, but for those with other placeholders than names."""
    nlp = spacy.load(PIPELINE, exclude=["spen_pos", "spen_ner", "spen_srl", "morphologizer", "trainable_lemmatizer"])
    names = cycle(NAMES)
    texts = (line.split("\t")[0] for line in locate(TEXT).read_text(encoding="utf-8").splitlines())
    filled = (re.sub(r"\[NAME\]", lambda _: next(names), text) for text in texts)
    for doc in nlp.pipe(text for text in filled if "[" not in text):
        for sentence in doc.sents:
            yield [token.text for token in sentence if not token.is_space]


def named() -> Iterator[list[str]]:
    """Training sentences of the corpora of names."""
    for parts in FILES.values():
        for sentence in read_columns(locate(f"data:ner/{parts['train']}"), 0, -1):
            yield list(sentence.words)


def groups(some: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    """The sentences, `AT_ONCE` at a time."""
    group: list[list[str]] = []
    for one in some:
        group.append(one)
        if len(group) == AT_ONCE:
            yield group
            group = []
    if group:
        yield group


if __name__ == "__main__":
    main()
