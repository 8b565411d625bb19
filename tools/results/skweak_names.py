"""The peer of the rules for names: skweak's hidden Markov model over the same rules, then a tagger of ours.

    pip install skweak   # in an environment of its own, beside spen-plugins and spen-rules
    python -m tools.results.skweak_names examples/rules/wikigold.py wikigold/50-0/train.conll 100 hmm.conll --iob1
    spen-run names data=wikigold task.train=hmm.conll method=crf

The first sentences of the training file, as many as the number says, keep their tags. The others get the tags that the
model (Lison, Barnes & Hubin 2021) finds, which is fitted to the rules' spans in all of them. skweak has no weights, and
neither rules against a type nor for O: these are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import spacy
from spacy.tokens import Doc, Span
from spacy.util import filter_spans

from spen_rules.files import load_rules


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", type=Path, help="file of rules")
    parser.add_argument("train", type=Path, help="words and BIO or IOB1 tags in columns")
    parser.add_argument("labelled", type=int, help="sentences that keep their tags")
    parser.add_argument("out", type=Path, help="file to write")
    parser.add_argument("--iob1", action="store_true", help="write IOB1, the scheme of Wikigold")
    options = parser.parse_args()
    from skweak.aggregation import HMM

    rules = [rule for rule in load_rules(options.rules).rules if not rule.is_against and rule.names != ("O",)]
    labels = sorted({name for rule in rules for name in rule.names})
    nlp = spacy.blank("en")
    sentences = [
        [line.split("\t") for line in block.splitlines()]
        for block in options.train.read_text(encoding="utf-8").split("\n\n")
        if block.strip()
    ]
    docs = []
    for sentence in sentences:
        doc = Doc(nlp.vocab, words=[word for word, _ in sentence])
        words = tuple(word for word, _ in sentence)
        for row, rule in enumerate(rules):
            spans = [Span(doc, start, end, label=name) for start, end in rule.find(words) for name in rule.names[:1]]
            doc.spans[f"rule{row}"] = filter_spans(spans)
        docs.append(doc)
    model = HMM("hmm", labels)
    model.fit(docs)
    with options.out.open("w", encoding="utf-8") as file:
        for row, (sentence, doc) in enumerate(zip(sentences, model.pipe(docs), strict=True)):
            tags = [tag for _, tag in sentence]
            if row >= options.labelled:
                tags = ["O"] * len(sentence)
                for span in doc.spans["hmm"]:
                    tags[span.start : span.end] = [f"I-{span.label_}"] * len(span)
                    is_apart = options.iob1 and (not span.start or tags[span.start - 1][2:] != span.label_)
                    tags[span.start] = f"{'I' if is_apart else 'B'}-{span.label_}"
            file.write("".join(f"{word}\t{tag}\n" for (word, _), tag in zip(sentence, tags, strict=True)) + "\n")


if __name__ == "__main__":
    main()
