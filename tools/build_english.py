"""Train the pipeline spen_en and write it into its plugin: run by `make english`.

    SPEN_DATA=... python tools/build_english.py

Trains configs/english.jsonnet part by part into runs/english (finished parts are kept, interrupted ones resumed; about
an hour on one core), writes plugins/spen-en/spen_en/pipeline with 16-bit weights, and its card.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import spacy
from english_data import FILES, write_all
from results import command, finish
from spacy.tokens import Doc
from spacy_docs import plain, read
from spacy_scores import score

from spen_en import __version__
from spen_plugins.datasets import locate
from spen_plugins.datasets.catalogue import CATALOGUE
from spen_plugins.errors import SpenError
from spen_plugins.files import save_json, writing, writing_folder
from spen_plugins.readers.conllu import read_conllu
from spen_spacy.package import make_pipeline, write_pipeline
from spen_spacy.package_card import card
from spen_spacy.package_meta import source
from spen_spacy.package_runs import components

PARTS = ("pos", "predicates", "ner", "srl")
PLUGIN = Path("plugins/spen-en")
META = {
    "lang": "en",
    "name": "spen_en",
    "version": __version__,
    "description": "A small English pipeline without word vectors: parts of speech, names, predicates, arguments.",
    "author": "The spen-plugins developers",
    "license": "weights: CC BY-SA 4.0 (parts of speech, predicates, arguments), CC BY 4.0 (names); code: Apache-2.0",
}
WHOLE = """
## Scores of the whole pipeline

Test parts, on the corpora's own tokens, through `spacy.load`. Names: F1 by seqeval in strict mode, under the three
types both corpora have (`tools/english_data.py` joins them). Arguments: F1 of the arguments of all predicates of the
corpus or the output; a missed predicate loses its arguments, those of an invented one are wrong.

| | |
|---|---:|
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/english"), help="folder of the runs")
    given = parser.parse_args()
    try:
        build(given.runs)
    except SpenError as error:
        raise SystemExit(f"error: {error}") from None


def build(runs: Path) -> None:
    """Train what is missing and write the plugin's pipeline and card."""
    write_all(runs / "data")
    for part in PARTS:
        finish(runs / part, command("configs/english.jsonnet", {"part": part, "names": f"{runs}/data"}, 0))
    found = components([str(runs / part) for part in PARTS])
    place = PLUGIN / "spen_en/pipeline"
    with writing_folder(place) as fresh:
        write_pipeline(make_pipeline(found, "en"), found, "spen_en", META, fresh, half=True, keep_energy=False)
    meta = json.loads((place / "meta.json").read_text(encoding="utf-8"))
    # The merged files of names are no data set; their sources have licences.
    known = [entry for entry in meta["sources"] if not entry["name"].endswith(".conll")]
    meta["sources"] = [*known, *(source(CATALOGUE[name]) for name in FILES)]
    for target in (place / "meta.json", PLUGIN / "spen_en/meta.json"):  # `spacy info` reads the second
        save_json(meta, target)
    text = card(meta, "spen_en", found)
    text = text.replace("\n## Licences", WHOLE + rows(whole_scores(runs / "data")) + "\n## Licences", 1)
    for target in (place / "README.md", PLUGIN / "README.md"):
        with writing(target) as part:
            part.write_text(text, encoding="utf-8")


def whole_scores(names: Path) -> dict[str, float]:
    """Scores of the written pipeline on the test parts."""
    found = {}
    tagged = read_conllu(locate("data:pos/ewt/en_ewt-ud-test.conllu"), tags="upos+xpos")
    for name, attribute, side in (("parts of speech", "pos_", 0), ("tags", "tag_", 1)):
        said = [getattr(token, attribute) for doc in annotated("spen_pos", tagged) for token in doc]
        gold = [tag.split("+")[side] for sentence in tagged for tag in sentence.tags]
        right = sum(a == b for a, b in zip(said, gold, strict=True))
        found[f"{name} (`{attribute}`), EWT, accuracy"] = right / len(gold)
    for name, corpus in (("BTC", "btc"), ("WNUT-17", "wnut17")):
        sentences = read("ner", names / f"{corpus}.test.conll")
        found[f"names, {name}, F1"] = score("ner", annotated("spen_ner", sentences), sentences)["f1_strict"]
    sentences = read("srl", locate("data:srl/ewt_propbank/ewt-propbank-test.gold_conll"))
    frames = score("srl", annotated("spen_srl", sentences), sentences)
    found["predicates, EWT PropBank, F1"] = frames["predicates_f1"]
    found["arguments with predicted predicates, EWT PropBank, F1"] = frames["f1"]
    return found


def annotated(component: str, sentences: Sequence[Any]) -> list[Doc]:
    """The sentences, annotated by one component of the pipeline."""
    nlp = spacy.load("spen_en", exclude=[name for name in ("spen_pos", "spen_ner", "spen_srl") if name != component])
    return list(nlp.pipe(plain(sentence, nlp.vocab) for sentence in sentences))


def rows(scores: dict[str, float]) -> str:
    """Rows of a table, in per cent."""
    return "".join(f"| {name} | {100 * value:.2f} |\n" for name, value in scores.items())


if __name__ == "__main__":
    main()
