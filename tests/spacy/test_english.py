"""The packaged English pipelines: their annotations, their files, and the facts on their cards."""

from __future__ import annotations

import io
import json
import os
import runpy
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
import spacy
import torch
from safetensors.torch import load_file
from spacy.language import Language
from spacy.tokens import Doc

import spen_en
import spen_en_md
import spen_plugins as sp
from spen_plugins.builtin.features.pretrained import load
from spen_plugins.data.sentences.columns import read_columns
from spen_plugins.data.sentences.conllu import read_conllu
from spen_plugins.data.sentences.items import sentence_of
from spen_plugins.data.sentences.roles import read_roles
from spen_plugins.data.words import read_vectors
from spen_plugins.errors import DataError
from spen_spacy.__main__ import main
from tests.loaded import ROOT, small_bert, written
from tests.pages import blocks
from tools.english.distil import distil
from tools.english.word_vectors import make_vectors

real_data = pytest.mark.skipif(not os.environ.get("SPEN_DATA"), reason="$SPEN_DATA is not set")
SENTENCE = "Anna told Bob that the farmer sent a letter to Boston."
PIPES = ["tok2vec", "senter", "morphologizer", "spen_pos", "lemmatizer", "spen_ner", "spen_srl"]
SPACY_PIPES = [name for name in PIPES if not name.startswith("spen")]
"""spaCy's own components."""
MODELS = ("spen_pos/model", "spen_ner/model", "spen_srl/model", "spen_srl/predicates", "spen_srl/senses")


class Pipeline(NamedTuple):
    """A pipeline, and the maximum sizes of its folder and of its wheel in megabytes."""

    package: ModuleType
    unpacked: float
    packed: float

    @property
    def name(self) -> str:
        return self.package.__name__

    @property
    def place(self) -> Path:
        return self.package.PIPELINE


SMALL = Pipeline(spen_en, 16, 13)
MD = Pipeline(spen_en_md, 45, 41)
both_pipelines = pytest.mark.parametrize("pipeline", [SMALL, MD], ids=lambda pipeline: pipeline.name)


@pytest.fixture(scope="module")
def english() -> Language:
    return spacy.load("spen_en")


@pytest.fixture(scope="module")
def larger() -> Language:
    return spacy.load("spen_en_md")


def test_simple_annotations_are_right(english: Language) -> None:
    check_simple_annotations(english)


def test_simple_annotations_of_the_larger_pipeline_are_right(larger: Language) -> None:
    check_simple_annotations(larger)
    frames = larger("The letters were given to Mary by her brother.")._.srl
    [passive_frame] = [frame for frame in frames if frame.predicate.text == "given"]
    assert {a.role: a.span.text for a in passive_frame.arguments}["ARG0"] == "by her brother"
    assert [s.text for s in larger("Anna reads. Bob sleeps.").sents] == ["Anna reads.", "Bob sleeps."]


def test_the_larger_pipeline_encodes_a_text_once(larger: Language) -> None:
    encoders = {}
    for name in ("spen_pos", "spen_ner", "spen_srl"):
        pipe = larger.get_pipe(name)
        for part in ("model", *(("predicates", "senses") if name == "spen_srl" else ())):
            for network in pipe.run(part).predictor.model.modules():
                if isinstance(network, sp.FeatureNetwork) and network.shared_part() is not None:
                    encoders[name, part] = id(network.shared_part())
    assert len(encoders) == 5 and len(set(encoders.values())) == 1


def test_lists_and_tables_have_one_name_per_cell(larger: Language) -> None:
    for text in ("Anna Lee\n\nBob Ray\n\nBoston", "Anna Lee\tBoston\nBob Ray\tParis"):
        doc = larger(text)
        assert [span.text for span in doc.ents] == text.replace("\n\n", "\t").replace("\n", "\t").split("\t")


def check_simple_annotations(english: Language) -> Doc:
    doc = english(SENTENCE)
    assert english.pipe_names == PIPES
    pos = {token.text: (token.pos_, token.tag_) for token in doc}
    assert pos["Anna"] == ("PROPN", "NNP") and pos["sent"] == ("VERB", "VBD") and pos["letter"] == ("NOUN", "NN")
    assert {"Anna": "PER", "Boston": "LOC"}.items() <= {span.text: span.label_ for span in doc.ents}.items()
    frames = {frame.predicate.text: {a.role: a.span.text for a in frame.arguments} for frame in doc._.srl}
    assert set(frames) == {"told", "sent"}
    assert frames["told"]["ARG0"] == "Anna"
    assert (frames["sent"]["ARG0"], frames["sent"]["ARG1"]) == ("the farmer", "a letter")
    assert {frame.predicate.text: frame.sense for frame in doc._.srl} == {"told": "tell.01", "sent": "send.01"}
    assert all(0 < frame.sense_score <= 1 and frame.gloss for frame in doc._.srl)
    [letter] = [a for frame in doc._.srl for a in frame.arguments if a.span.text == "a letter"]
    assert letter.description
    scores = [argument.score for frame in doc._.srl for argument in frame.arguments]
    assert all(0 < p <= 1 for p in [*scores, *(t._.spen_score for t in doc), *(e._.spen_score for e in doc.ents)])
    return doc


def test_it_has_sentences_lemmas_and_features(english: Language) -> None:
    doc = english("The farmers have sent two letters. Anna reads them in Boston.")
    assert [sentence.text for sentence in doc.sents] == [
        "The farmers have sent two letters.", "Anna reads them in Boston.",
    ]  # fmt: skip
    lemmas = {token.text: token.lemma_ for token in doc}
    assert {"farmers": "farmer", "sent": "send", "letters": "letter", "reads": "read"}.items() <= lemmas.items()
    assert doc[1].morph.get("Number") == ["Plur"] and doc[3].morph.get("Tense") == ["Past"]
    assert doc[1].pos_ == "NOUN" and [frame.predicate.text for frame in doc._.srl][-1] == "reads"
    [name] = english("Angela Merkel cancelled her trip to Paris.").sents
    assert [token.lemma_ for token in name[:3]] == ["Angela", "Merkel", "cancel"]


def test_the_readmes_example_prints_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    [block] = [block for block in blocks("README.md", "python") if "spacy.load" in block]
    [expected] = [text for text in blocks("README.md", "text") if "Acme" in text]
    exec(block, {})
    printed = capsys.readouterr().out
    assert all(line.partition("…")[0] in printed for line in expected.splitlines())


def test_a_component_without_a_model_uses_the_installed_one(english: Language) -> None:
    for factory in ("spen_ner", "spen_pos", "spen_srl"):
        nlp = spacy.blank("en")
        nlp.add_pipe(factory)
        assert nlp.get_pipe(factory).to_bytes() == english.get_pipe(factory).to_bytes()


@both_pipelines
def test_its_files_are_small_and_hold_no_code(pipeline: Pipeline) -> None:
    files = {
        path.relative_to(pipeline.place): path.read_bytes() for path in pipeline.place.rglob("*") if path.is_file()
    }
    assert sum(map(len, files.values())) <= pipeline.unpacked * 1e6
    assert sum(len(zlib.compress(content)) for content in files.values()) <= pipeline.packed * 1e6
    other_files = {path.as_posix() for path in files if path.suffix not in (".json", ".safetensors", ".cfg", ".md")}
    vocab = {f"vocab/{name}" for name in ("key2row", "lookups.bin", "vectors")}
    spacy_files = {"tokenizer", "lemmatizer/lookups/lookups.bin", *vocab}  # spaCy's
    notes = {path.as_posix() for path in files if path.parts[0] == "assets" and path.name == "WEIGHTS.txt"}
    assert other_files <= spacy_files | notes | {f"{name}/{file}" for name in SPACY_PIPES for file in ("cfg", "model")}
    assert {path.parent.as_posix() for path in files if path.stem == "weights"} == {*MODELS}


@both_pipelines
def test_its_card_has_scores_licences_and_sources(pipeline: Pipeline) -> None:
    meta = json.loads((pipeline.place / "meta.json").read_text(encoding="utf-8"))
    card = (pipeline.place / "README.md").read_text(encoding="utf-8")
    assert meta["version"] == pipeline.package.__version__
    assert {"ents_f", "pos_tag_acc"} <= set(meta["performance"])
    other_sources = {"PropBank frames", "goemotions", "all-mpnet-base-v2", "all-MiniLM-L6-v2", "WordNet 3.0"}
    assert {source["name"].partition(":")[0] for source in meta["sources"]} == {"ewt", *DATA["FILES"]} | other_sources
    assert all(source["license"] for source in meta["sources"])
    for text in (meta["license"], card):
        assert "CC BY-SA 4.0" in text and "CC BY 4.0" in text
    for model in MODELS:
        scores = json.loads((pipeline.place / model / "metrics.json").read_text(encoding="utf-8"))["test"]
        [name] = [name for name in ("span_f1", "f1", "accuracy") if name in scores][:1]
        assert f"{scores[name]:.4f}" in card


@both_pipelines
def test_its_sources_are_those_that_the_tool_writes(pipeline: Pipeline) -> None:
    meta = json.loads((pipeline.place / "meta.json").read_text(encoding="utf-8"))
    urls = {source["name"].partition(":")[0]: source["url"] for source in meta["sources"]}
    assert runpy.run_path(str(ROOT / "tools/english/build_english.py"))["ADDRESSES"].items() <= urls.items()


@pytest.mark.parametrize("name", ["spen_en", "spen_en_md"])
def test_python_m_prints_annotations(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, *SENTENCE.split()])
    runpy.run_module(name, run_name="__main__")
    words, *other_lines = capsys.readouterr().out.splitlines()
    assert words.startswith("Anna/PROPN told/VERB Bob/PROPN") and words.endswith("./PUNCT")
    assert any(line.startswith("predicate  sent  send.01") for line in other_lines)


def test_python_m_prints_what_any_pipeline_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "ORG", "pattern": "Acme"}])
    nlp.to_disk(tmp_path)
    monkeypatch.setattr(sys, "argv", ["spen_spacy", str(tmp_path), "Acme closes."])
    main()
    assert capsys.readouterr().out.splitlines()[:2] == ["Acme closes .", "ORG        Acme"]


def test_python_m_reads_and_writes_utf8_in_any_locale(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path)
    c_locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "spen_spacy", str(tmp_path)]
    for arguments, text, locale in (
        (["Zoë left"], "", c_locale),
        ([], "Zoë left\n", c_locale),
        ([], "Zoë left\n", {"PYTHONIOENCODING": "cp1252"}),
    ):
        process = subprocess.run(
            [*command, *arguments], input=text.encode(), capture_output=True, env=os.environ | locale, timeout=120
        )
        assert process.stdout.decode().split() == ["Zoë", "left"], process.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["no_such"], "The text is empty"), (["no_such", "Hi."], "Unknown"), (["no_such", "Zo\udceb"], "is not UTF-8")],
)
def test_python_m_reports_errors(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["spen_spacy", *arguments])
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    with pytest.raises(SystemExit):
        main()
    assert message in capsys.readouterr().err


DATA = runpy.run_path(str(ROOT / "tools/english/english_data.py"))


def test_names_of_all_corpora_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus_tags = {
        "btc": ("B-PER B-LOC", "B-PER B-LOC"),
        "wnut17": ("B-person B-product", "B-PER O"),
        "gum": ("B-ORG I-ORG", "B-ORG I-ORG"),
        "wikigold": ("I-MISC I-PER", "O B-PER"),
    }
    for name, parts in DATA["FILES"].items():
        first, second = corpus_tags[name][0].split()
        for part, file in parts.items():
            path = tmp_path / "data/ner" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"-DOCSTART-\tO\n\n{name}-{part}\t{first}\nleft\t{second}\n\n")
    monkeypatch.setenv("SPEN_DATA", str(tmp_path / "data"))
    DATA["write_all"](tmp_path / "out")
    outputs = {path.name: read_columns(path, 0, -1) for path in (tmp_path / "out").iterdir()}
    assert set(outputs) == {f"{name}.{part}.conll" for name in corpus_tags for part in ("dev", "test")} | {
        f"ner.{part}.conll" for part in ("train", "dev", "test")
    }
    joined = [(sentence.words[0], " ".join(sentence.tags)) for sentence in outputs["ner.train.conll"]]
    assert joined == [(f"{name}-train", tags) for name, (_, tags) in corpus_tags.items()]
    monkeypatch.setenv("SPEN_DATA", str(tmp_path / "nowhere"))
    with pytest.raises((DataError, sp.errors.ConfigError)):
        DATA["write_all"](tmp_path / "out")


@real_data
@pytest.mark.parametrize(
    ("pipeline", "model"),
    [(p, model) for p in (SMALL, MD) for model in MODELS],
    ids=lambda value: getattr(value, "name", value),
)
def test_scores_are_those_of_the_card(pipeline: Pipeline, model: str, tmp_path: Path) -> None:
    """On the whole development part, within 0.2 points: weights were rounded to 16 bits after scoring."""
    if model == "spen_ner/model":
        DATA["write_all"](tmp_path)
        file = str(tmp_path / "ner.dev.conll")
    else:
        file = json.loads((pipeline.place / model / "config.json").read_text())["task"]["validation"]
    card = json.loads((pipeline.place / model / "metrics.json").read_text(encoding="utf-8"))["validation"]
    scores = sp.load(pipeline.place / model).evaluate_file(file)["scores"]
    for name in ("accuracy", "f1", "span_f1"):
        if name in card:
            assert scores[name] == pytest.approx(card[name], abs=0.002), name


def test_larger_nets_label_text_for_a_smaller_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["Anna", "left", "Boston", "."]
    conllu = "".join(f"{i}\t{word}\t_\tX\tXX" + "\t_" * 5 + "\n" for i, word in enumerate(words, 1)) + "\n"
    gold = {"words": words, "predicates": [{"index": 1, "sense": "leave.01", "tags": ["B-ARG0", "B-V", "B-ARG1", "O"]}]}
    columns = "".join(f"{word}\tO\n" for word in words) + "\n"
    contents = {
        "srl/ewt_propbank/ewt-propbank-train.gold_conll": json.dumps(gold),
        "pos/ewt/en_ewt-ud-train.conllu": conllu,
        "text/goemotions/train.tsv": "[NAME] sings. Yes.\t1\tid\nA [RELIGION] text is left out.\t1\tid\n",
        **{f"ner/{file}": columns for parts in DATA["FILES"].values() for file in parts.values()},
    }
    for file, text in contents.items():
        path = tmp_path / "data" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("SPEN_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(ROOT)
    readers = {
        "roles": lambda path: read_roles(path).sentences,
        "names": lambda path: read_columns(path, 0, -1),
        "tags": lambda path: read_conllu(path, tags="upos+xpos"),
    }
    text, corpus_words = ("Anna", "sings", "."), [tuple(words)] * len(DATA["FILES"])
    outputs = {labels: readers[labels](distil(labels, tmp_path / "out" / labels)) for labels in readers}
    assert [sentence.words for sentence in outputs["roles"]] == [tuple(words), text, *corpus_words]
    assert [sentence.words for sentence in outputs["tags"]] == [tuple(words), text, *corpus_words]
    assert [sentence.words for sentence in outputs["names"]] == [*corpus_words, tuple(words), text]
    assert outputs["roles"][0] == sentence_of(gold) and outputs["tags"][0].tags == ("X+XX",) * len(words)
    propositions = [p for sentence in outputs["roles"][1:] for p in sentence.propositions]
    assert (
        propositions and all(p.tags for p in propositions) and {p.roleset for p in propositions} <= {"leave.01", None}
    )
    assert all("+" in tag for tag in outputs["tags"][1].tags)
    mtime = (tmp_path / "out" / "tags").stat().st_mtime_ns
    assert distil("tags", tmp_path / "out" / "tags").stat().st_mtime_ns == mtime


def test_vectors_are_a_nets_states_of_single_words(tmp_path: Path) -> None:
    """With all directions kept, distances between words equal those of their states, up to a factor and rounding."""
    encoder = small_bert(tmp_path / "bert", ["anna", "##s", "left", "boston", "rome", "."])
    text = written(tmp_path / "text.conll", "Annas\tO\nleft\tO\n.\tO\n\n" * 3 + "Once\tO\n\n")
    out = tmp_path / "made" / "vectors.safetensors"
    assert "6 words" in make_vectors(Path(text), out, encoder, 8)
    vectors = read_vectors(out)
    assert sorted(vectors.words) == [".", "anna", "annas", "boston", "left", "rome"]
    assert load_file(out)["vectors"].dtype == torch.int8 and not vectors.matrix[0].any()
    net, tokenizer = load(encoder)
    net.eval()
    with torch.no_grad():
        encodings = [tokenizer([word], return_tensors="pt") for word in vectors.words]
        states = torch.stack([net(**encoding).last_hidden_state[0, 1:-1].mean(0) for encoding in encodings])
    ratios = torch.pdist(vectors.matrix[1:]) / torch.pdist(states)
    torch.testing.assert_close(ratios / ratios.mean(), torch.ones_like(ratios), rtol=0, atol=0.1)
    assert make_vectors(Path(text), out, encoder, 8).endswith("is there")
