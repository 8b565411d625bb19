"""Train spaCy's own senter and morphologizer for the pipeline spen_en, with a rule-based lemmatizer beside them.

    pip install spacy-lookups-data
    SPEN_DATA=... python -m tools.english.train_words runs/english/words

Both are over one small tok2vec without vectors. They learn features from EWT, and sentences from EWT and, so that names
are not cut, from GUM and Wikigold. The lemmatizer has WordNet's tables from spacy-lookups-data, and EWT's lemmas for
the words of its training part; it reads the parts of speech that another component sets. OUT gets train.spacy and
dev.spacy, the config, and the best pipeline in OUT/model-best. About ten minutes of one core.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, cycle
from pathlib import Path
from typing import Any

import spacy
from spacy.cli.init_config import init_config
from spacy.cli.train import train as spacy_train
from spacy.language import Language
from spacy.lookups import load_lookups
from spacy.tokens import Doc, DocBin
from spacy.training.converters import conllu_to_docs
from spacy.vocab import Vocab

from spen_plugins.data.catalogue import locate
from spen_plugins.data.sentences.columns import read_columns
from tools.english.english_data import FILES
from tools.errors import end_with_message

PARTS = ("senter", "morphologizer")
LEMMATIZER = "lemmatizer"
EDITED = ("gum", "wikigold")
"""Corpora of names whose sentences the senter sees, too."""
SENTENCES = (10, 1, 5, 2)
"""Sentences of a Doc, in turn: the senter learns that a text may have a single one."""
ODDS = 2.7
"""Odds at which a sentence begins. Of 1, 2.7 and 7.4, this one has the highest mean F1 on the dev parts of EWT, GUM and
Wikigold, ten sentences a text and one (tools/english/sentences.py)."""
SIZES = {
    "components.tok2vec.model.embed.width": 64,
    "components.tok2vec.model.embed.rows": [2000, 500, 1500, 500],
    "components.tok2vec.model.encode.width": 64,
    "components.tok2vec.model.encode.depth": 3,
}
"""Sizes that replace those of the efficiency config: 96 wide, 5000, 1000, 2500 and 1000 rows, 4 deep."""


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("--max-steps", type=int, default=8000, help="stop there, unless the patience stops earlier")
    options = parser.parse_args()
    train(options.out, options.max_steps)


def train(out: Path, max_steps: int = 8000) -> Path:
    """Convert the corpora and train, unless the pipeline is finished; returns the best pipeline's folder."""
    best, marker = out / "model-best", out / "done"
    if marker.exists():
        return best
    out.mkdir(parents=True, exist_ok=True)
    vocab = spacy.blank("en").vocab
    paths = {}
    for part in ("train", "dev"):
        paths[f"paths.{part}"] = str(out / f"{part}.spacy")
        docs = chain(gold(part, vocab), *(read_edited(corpus, part, vocab) for corpus in EDITED))
        DocBin(docs=list(docs)).to_disk(out / f"{part}.spacy")
    config = init_config(lang="en", pipeline=list(PARTS), optimize="efficiency")
    config["training"] |= {"max_steps": max_steps, "eval_frequency": 500, "patience": 2000}
    config.to_disk(out / "config.cfg")
    spacy_train(out / "config.cfg", out, overrides=paths | SIZES)
    words = spacy.load(best)
    raise_odds(words)
    make_lemmatizer(words)
    words.to_disk(best)
    marker.touch()  # spaCy writes model-best again and again
    return best


def gold(part: str, vocab: Vocab, sizes: Sequence[int] = SENTENCES) -> Iterator[Doc]:
    """Docs of a part of EWT with sentences, lemmas and features, of `sizes` sentences in turn."""
    for doc in group(list(conllu_to_docs(_read(part), n_sents=1, no_print=True)), sizes):
        tokens = [token for sentence in doc for token in sentence]
        yield Doc(
            vocab,
            words=[token.text for token in tokens],
            spaces=[bool(token.whitespace_) for token in tokens],
            lemmas=[token.lemma_ for token in tokens],
            morphs=[str(token.morph) for token in tokens],
            sent_starts=[token.i == 0 for token in tokens],
        )


def read_edited(corpus: str, part: str, vocab: Vocab, sizes: Sequence[int] = SENTENCES) -> Iterator[Doc]:
    """Docs of a part of a corpus of names, with sentences only; blanks are unknown."""
    for doc in group(read_columns(locate(f"data:ner/{FILES[corpus][part]}")), sizes):
        words = [word for sentence in doc for word in sentence.words]
        starts = [index == 0 for sentence in doc for index in range(len(sentence.words))]
        yield Doc(vocab, words=words, sent_starts=starts)


def group(sentences: Sequence[Any], sizes: Sequence[int]) -> Iterator[Sequence[Any]]:
    """Groups of `sizes` sentences in turn."""
    start = 0
    for size in cycle(sizes):
        if start >= len(sentences):
            return
        yield sentences[start : start + size]
        start += size


def raise_odds(words: Language) -> None:
    """Let the senter begin a sentence only at odds of `ODDS`."""
    [softmax] = [node for node in words.get_pipe("senter").model.walk() if node.name == "softmax"]
    bias = softmax.get_param("b").copy()
    bias[words.get_pipe("senter").labels.index("S")] -= math.log(ODDS)
    softmax.set_param("b", bias)


def make_lemmatizer(words: Language) -> None:
    """Add a lemmatizer by rules, with the lemma that EWT's training part mostly has for a word and part of speech."""
    tables = load_lookups("en", ["lemma_rules", "lemma_exc", "lemma_index"])
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for doc in conllu_to_docs(_read("train"), no_print=True):
        for token in doc:
            pos = token.pos_.lower()
            lemma = token.lemma_.lower() if pos in ("verb", "aux") else token.lemma_  # "Deem" in headings
            if lemma != "_":
                counts[pos][token.text.lower()][lemma] += 1
    rules, index, exceptions = (tables.get_table(f"lemma_{name}") for name in ("rules", "index", "exc"))
    # If two rules give a verb, spaCy takes the later one's: "fined" is of "fine", since "fin" has "finned".
    rules["verb"] = sorted(rules["verb"], key=lambda rule: rule[1] == "e")
    exceptions["noun"] |= {word: [word] for word in index["noun"] if word.endswith("ics")}
    for pos in counts.keys() - {"propn"}:  # names keep their form
        usual = {form: [lemmas.most_common(1)[0][0]] for form, lemmas in counts[pos].items()}
        exceptions[pos] = {**exceptions.get(pos, {}), **usual}
    words.add_pipe(LEMMATIZER, config={"mode": "rule"}).initialize(lookups=tables)


def _read(part: str) -> str:
    return locate(f"data:pos/ewt/en_ewt-ud-{part}.conllu").read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
