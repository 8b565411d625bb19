r"""Labels text by a larger net, for a smaller one to learn from: for `make english` and `english-md`.

    SPEN_DATA=... python -m tools.english.distil roles runs/english_md/taught.jsonl \
        --teacher runs/english_md/teachers/srl --precision bf16
    SPEN_DATA=... python -m tools.english.distil names runs/english/data/ner.taught.conll \
        --teacher runs/english_md/teachers/ner --precision bf16
    SPEN_DATA=... python -m tools.english.distil tags runs/english/data/pos.taught.conllu \
        --teacher runs/english_md/teachers/pos --precision bf16

The packaged spen_en_md labels the text, unless `--teacher` names another net. Gold comes first in each file. An
existing file is kept: move files of another version away.

The text is GoEmotions' training part, comments from Reddit with common names in place of its [NAME], split into
sentences and words by spen_en_md, and the training sentences of the four corpora of names (english_data.py).

Roles: predicates, their senses and their roles; spen_en_md finds the first two. JSONL, one line per sentence, after
EWT PropBank's training part; senses that are not in it are left out, which keeps the net of senses small.

Names: of EWT's training sentences and the comments, after the training parts of the corpora of names; BIO.

Tags: UPOS and XPOS, after EWT's training part; CoNLL-U.
"""

from __future__ import annotations

import argparse
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
from spen_plugins.files import to_json, writing
from tools.english.english_data import FILES, write_all
from tools.errors import end_with_message

PIPELINE = Path("plugins/spen-en-md/spen_en_md/pipeline")
GOLD = "data:srl/ewt_propbank/ewt-propbank-train.gold_conll"
TAGS = "data:pos/ewt/en_ewt-ud-train.conllu"
TEXT = "data:text/goemotions/train.tsv"
NAMES = ("Anna", "James", "Maria", "David", "Sarah", "Peter", "Laura", "Ahmed", "Emily", "Carlos", "Smith", "Wei")
"""Names in place of GoEmotions' [NAME], in turn."""
SHORTEST, LONGEST = 3, 60
"""Limits of a sentence's words; longer ones are mostly several sentences, or lists."""
AT_ONCE = 2000
"""Sentences that are read together."""


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", choices=WRITERS, help="labels to write")
    parser.add_argument("out", type=Path, help="file to write")
    parser.add_argument("--teacher", type=Path, help="a run that labels in place of spen_en_md's own")
    parser.add_argument("--precision", choices=("no", "bf16"), default="no", help="of the nets that label; see sp.load")
    options = parser.parse_args()
    distil(options.labels, options.out, options.teacher, options.precision)


def distil(labels: str, out: Path, teacher: Path | None = None, precision: str = "no") -> Path:
    """Write the file, unless it exists."""
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        write, model = WRITERS[labels]
        with writing(out) as part, part.open("w", encoding="utf-8") as file:
            load = partial(sp.load, precision=precision)
            file.writelines(write(out.parent, load(teacher or PIPELINE / model), load))
    return out


def list_roles(_: Path, roles: sp.Predictor, load: Callable[[Path], sp.Predictor]) -> Iterator[str]:
    predicates, senses = (load(PIPELINE / "spen_srl" / name) for name in ("predicates", "senses"))
    corpus = [*read_gold()]
    gold_senses = {predicate["sense"] for _, propositions in corpus for predicate in propositions}
    for words, propositions in corpus:
        yield to_json({"words": words, "predicates": propositions}) + "\n"
    for words, propositions in label_roles(predicates, senses, roles):
        for predicate in propositions:
            predicate["sense"] = predicate["sense"] if predicate["sense"] in gold_senses else None
        yield to_json({"words": words, "predicates": propositions}) + "\n"


def list_names(folder: Path, net: sp.Predictor, _: object) -> Iterator[str]:
    write_all(folder)
    yield (folder / "ner.train.conll").read_text(encoding="utf-8")
    for words, tags in label_words(net, chain((words for words, _ in read_gold()), keep_usual(read_comments()))):
        yield "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True)) + "\n"


def list_tags(_: Path, net: sp.Predictor, __: object) -> Iterator[str]:
    yield locate(TAGS).read_text(encoding="utf-8")
    for words, tags in label_words(net, keep_usual(chain(read_comments(), read_named()))):
        rows = (f"{word}\t_\t" + tag.replace("+", "\t") + "\t_" * 5 for word, tag in zip(words, tags, strict=True))
        yield "".join(f"{number}\t{row}\n" for number, row in enumerate(rows, 1)) + "\n"


WRITERS = {
    "roles": (list_roles, "spen_srl/model"),
    "names": (list_names, "spen_ner/model"),
    "tags": (list_tags, "spen_pos/model"),
}
"""By labels: the function that yields a file's lines from its folder, the net and `sp.load`; the path of the net."""


def read_gold() -> Iterator[tuple[list[str], list[dict[str, Any]]]]:
    """The words of the corpus' sentences, and their predicates with tags, lemmas and senses."""
    for sentence in read_roles(locate(GOLD), "auto").sentences:
        yield (
            list(sentence.words),
            [
                {"index": p.predicate, "lemma": p.lemma, "sense": p.roleset, "tags": list(p.tags or ())}
                for p in sentence.propositions
            ],
        )


def label_roles(
    predicates: sp.Predictor, senses: sp.Predictor, roles: sp.Predictor
) -> Iterator[tuple[list[str], list[dict[str, Any]]]]:
    """The words of the text's sentences, and their predicates with tags and senses, which three nets predict."""
    for number, group in enumerate(make_groups(keep_usual(chain(read_comments(), read_named()))), 1):
        places = [[entity["start"] for entity in answer["entities"]] for answer in predicates.predict(group)]
        items = [
            {"words": words, "predicate": place} for words, row in zip(group, places, strict=True) for place in row
        ]
        answers = zip(senses.predict(items), roles.predict(items), strict=True)
        for words, row in zip(group, places, strict=True):
            labels = zip(row, islice(answers, len(row)), strict=True)
            yield words, [{"index": i, "sense": a["sense"], "tags": b["tags"]} for i, (a, b) in labels]
        print(f"{number * AT_ONCE:,} sentences", flush=True)


def label_words(net: sp.Predictor, sentences: Iterable[list[str]]) -> Iterator[tuple[list[str], list[str]]]:
    """Sentences with the tags that a net predicts."""
    for group in make_groups(sentences):
        for words, answer in zip(group, net.predict(group), strict=True):
            yield words, answer["tags"]


def keep_usual(sentences: Iterable[list[str]]) -> Iterator[list[str]]:
    """The sentences of usual length."""
    return (words for words in sentences if SHORTEST <= len(words) <= LONGEST)


def read_comments() -> Iterator[list[str]]:
    """Sentences of GoEmotions' comments, without those that have placeholders other than names."""
    nlp = spacy.load(PIPELINE, exclude=["spen_pos", "spen_ner", "spen_srl", "morphologizer", "lemmatizer"])
    names = cycle(NAMES)
    texts = (line.split("\t")[0] for line in locate(TEXT).read_text(encoding="utf-8").splitlines())
    filled = (re.sub(r"\[NAME\]", lambda _: next(names), text) for text in texts)
    for doc in nlp.pipe(text for text in filled if "[" not in text):
        for sentence in doc.sents:
            yield [token.text for token in sentence if not token.is_space]


def read_named() -> Iterator[list[str]]:
    """Training sentences of the corpora of names."""
    for parts in FILES.values():
        for sentence in read_columns(locate(f"data:ner/{parts['train']}"), 0, -1):
            yield list(sentence.words)


def make_groups(sentences: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    """The sentences, `AT_ONCE` at a time."""
    remaining = iter(sentences)
    while group := list(islice(remaining, AT_ONCE)):
        yield group


if __name__ == "__main__":
    main()
