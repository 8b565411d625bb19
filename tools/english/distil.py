r"""Labels of unlabelled text by a larger net, for a smaller one to learn from: for `make english` and `english-md`.

    SPEN_DATA=... python -m tools.english.distil roles runs/english_md/taught.jsonl --teacher runs/english_md/teacher \
        --precision bf16
    SPEN_DATA=... python -m tools.english.distil names runs/english/data/ner.taught.conll --precision bf16
    SPEN_DATA=... python -m tools.english.distil tags runs/english/data/pos.taught.conllu --precision bf16

The packaged spen_en_md labels the text, unless `--teacher` names another net. Gold comes first in each file. A file
that is there is kept: move those of another version away.

The text is GoEmotions' training part, comments from Reddit with common names in place of its [NAME], split into
sentences and words by spen_en_md, and the training sentences of the four corpora of names (english_data.py).

Roles: predicates, their senses and their roles; spen_en_md finds the first two. JSONL, one line a sentence, after EWT
PropBank's training part; senses that are not in it are left out, which keeps the net of senses small.

Names: of EWT's training sentences and the comments, after the training parts of the corpora of names; BIO.

Tags: UPOS and XPOS, after EWT's training part; CoNLL-U.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, cycle, islice
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
TAGS = "data:pos/ewt/en_ewt-ud-train.conllu"
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
    parser.add_argument("--precision", choices=("no", "bf16"), default="no", help="of the nets that label; see sp.load")
    options = parser.parse_args()
    distil(options.labels, options.out, options.teacher, options.precision)


def distil(labels: str, out: Path, teacher: Path | None = None, precision: str = "no") -> Path:
    """Write the file; nothing is done if it is there."""
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        write, own = WRITERS[labels]
        with writing(out) as part, part.open("w", encoding="utf-8") as file:
            load = partial(sp.load, precision=precision)
            file.writelines(write(out.parent, load(teacher or PIPELINE / own), load))
    return out


def role_lines(_: Path, roles: sp.Predictor, load: Callable[[Path], sp.Predictor]) -> Iterator[str]:
    predicates, senses = (load(PIPELINE / "spen_srl" / name) for name in ("predicates", "senses"))
    corpus = [*gold()]
    known = {predicate["sense"] for _, found in corpus for predicate in found}
    for words, found in chain(corpus, taught(known, predicates, senses, roles)):
        yield json.dumps({"words": words, "predicates": found}, ensure_ascii=False) + "\n"


def name_lines(folder: Path, net: sp.Predictor, _: object) -> Iterator[str]:
    write_all(folder)
    yield (folder / "ner.train.conll").read_text(encoding="utf-8")
    for words, tags in tagged(net, chain((words for words, _ in gold()), usual(comments()))):
        yield "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True)) + "\n"


def tag_lines(_: Path, net: sp.Predictor, __: object) -> Iterator[str]:
    yield locate(TAGS).read_text(encoding="utf-8")
    for words, tags in tagged(net, usual(chain(comments(), named()))):
        both = (tag.split("+") for tag in tags)
        rows = enumerate(zip(words, both, strict=True), 1)
        yield "".join(f"{i}\t{word}\t_\t{upos}\t{xpos}" + "\t_" * 5 + "\n" for i, (word, (upos, xpos)) in rows) + "\n"


WRITERS = {
    "roles": (role_lines, "spen_srl/model"),
    "names": (name_lines, "spen_ner/model"),
    "tags": (tag_lines, "spen_pos/model"),
}
"""By what it labels: the lines of a file, from its folder and the net that labels, and spen_en_md's own net."""


def gold() -> Iterator[tuple[list[str], list[dict[str, Any]]]]:
    """The words of the corpus' sentences, and their predicates with tags, lemmas and senses."""
    for sentence in read_roles(locate(GOLD), "auto").sentences:
        yield (
            list(sentence.words),
            [
                {"index": p.predicate, "lemma": p.lemma, "sense": p.roleset, "tags": list(p.tags or ())}
                for p in sentence.propositions
            ],
        )


def taught(
    known: set[str], predicates: sp.Predictor, senses: sp.Predictor, roles: sp.Predictor
) -> Iterator[tuple[list[str], list[dict[str, Any]]]]:
    """The words of the text's sentences, and their predicates, senses and tags as three nets find them; a sense that is
    not known is left out."""
    for number, group in enumerate(groups(usual(chain(comments(), named())))):
        found = [[entity["start"] for entity in one["entities"]] for one in predicates.predict(group)]
        items = [{"words": words, "predicate": i} for words, some in zip(group, found, strict=True) for i in some]
        labels = zip(senses.predict(items), roles.predict(items), strict=True)
        for words, some in zip(group, found, strict=True):
            here = zip(some, islice(labels, len(some)), strict=True)
            yield (
                words,
                [
                    {"index": i, "sense": sense if (sense := one["sense"]) in known else None, "tags": two["tags"]}
                    for i, (one, two) in here
                ],
            )
        print(f"{(number + 1) * AT_ONCE:,} sentences", flush=True)


def tagged(net: sp.Predictor, some: Iterable[list[str]]) -> Iterator[tuple[list[str], list[str]]]:
    """Sentences with the tags that a net gives them."""
    for group in groups(some):
        for words, one in zip(group, net.predict(group), strict=True):
            yield words, one["tags"]


def usual(some: Iterable[list[str]]) -> Iterator[list[str]]:
    """The sentences that are of usual length."""
    return (words for words in some if SHORTEST <= len(words) <= LONGEST)


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
