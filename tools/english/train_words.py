"""Train spaCy's own senter, morphologizer and trainable_lemmatizer on EWT, for the pipeline spen_en.

    SPEN_DATA=... python -m tools.english.train_words runs/english/words

One small tok2vec without vectors below all three. OUT gets train.spacy and dev.spacy, ten sentences a Doc, the config,
and the best pipeline in OUT/model-best. About ten minutes of one core.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import spacy
from spacy.cli.init_config import init_config
from spacy.cli.train import train as spacy_train
from spacy.tokens import Doc, DocBin
from spacy.training.converters import conllu_to_docs
from spacy.vocab import Vocab

from spen_plugins.data.catalogue import locate
from tools.errors import end_with_message

PARTS = ("senter", "morphologizer", "trainable_lemmatizer")
SENTENCES = 10
"""Sentences of a Doc, from whose beginnings the senter learns."""
SIZES = {
    "components.tok2vec.model.embed.width": 64,
    "components.tok2vec.model.embed.rows": [2000, 500, 1500, 500],
    "components.tok2vec.model.encode.width": 64,
    "components.tok2vec.model.encode.depth": 3,
}
"""The efficiency config, but for these sizes, has: 96 wide, of 5000, 1000, 2500 and 1000 rows, 4 deep."""


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("--max-steps", type=int, default=8000, help="stop there, unless the patience stops earlier")
    options = parser.parse_args()
    train(options.out, options.max_steps)


def train(out: Path, max_steps: int = 8000) -> Path:
    """Convert the corpus and train, unless that is done; returns the best pipeline's folder."""
    best, done = out / "model-best", out / "done"
    if done.exists():
        return best
    out.mkdir(parents=True, exist_ok=True)
    vocab = spacy.blank("en").vocab
    paths = {}
    for part in ("train", "dev"):
        paths[f"paths.{part}"] = str(out / f"{part}.spacy")
        DocBin(docs=list(gold(part, vocab))).to_disk(out / f"{part}.spacy")
    config = init_config(lang="en", pipeline=list(PARTS), optimize="efficiency")
    config["training"] |= {"max_steps": max_steps, "eval_frequency": 500, "patience": 2000}
    config.to_disk(out / "config.cfg")
    spacy_train(out / "config.cfg", out, overrides=paths | SIZES)
    done.touch()  # spaCy writes model-best again and again
    return best


def gold(part: str, vocab: Vocab, sentences: int = SENTENCES) -> Iterator[Doc]:
    """Docs of a part of EWT with sentences, lemmas and features; parts of speech are other components'."""
    text = locate(f"data:pos/ewt/en_ewt-ud-{part}.conllu").read_text(encoding="utf-8")
    for doc in conllu_to_docs(text, n_sents=sentences, no_print=True):
        yield Doc(
            vocab,
            words=[token.text for token in doc],
            spaces=[bool(token.whitespace_) for token in doc],
            lemmas=[token.lemma_ for token in doc],
            morphs=[str(token.morph) for token in doc],
            sent_starts=[bool(token.is_sent_start) for token in doc],
        )


if __name__ == "__main__":
    main()
