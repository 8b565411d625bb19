"""`spen package`: the components of runs, their metadata and cards, and packages that work without the runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import spacy
import typer
from safetensors.torch import load_file

import spen_plugins as sp
from spen_plugins.errors import ConfigError, RunError
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.folder import RunFolder
from spen_spacy import spen_command
from spen_spacy.annotate.pipeline import find_pipeline
from spen_spacy.packaging.card import write_card
from spen_spacy.packaging.command import package
from spen_spacy.packaging.meta import list_requirements, list_scores, list_sources, tag_attributes
from spen_spacy.packaging.runs import Part, choose_components
from tests.loaded import spen, trained

pytestmark = pytest.mark.usefixtures("whole_samples")

SENTENCE = ["The", "old", "farmer", "told", "Anna", "in", "Boston", "that", "they", "sent", "a", "letter"]
LOADED = """
import json, sys
import en_mine
from spacy.tokens import Doc
from spen_spacy import to_json

nlp = en_mine.load()
assert not any("runs" in str(value) for c in nlp.config["components"].values() for value in c.values()), nlp.config
doc = nlp(Doc(nlp.vocab, words=json.loads(sys.argv[1])))
print(json.dumps({"pipeline": nlp.pipe_names, "tags": [token.ent_iob_ + token.ent_type_ for token in doc],
                  "predicates": [frame.predicate.i for frame in doc._.srl], "meta": nlp.meta,
                  "json": to_json(doc)}, allow_nan=False))
"""


def train(out: Path, config: str, **arguments: object) -> Path:
    values = {"method": "cross_entropy", "trainer.epochs": "2", "features.hidden": "16", "features.dropout": "0"}
    return trained(config, out, **(values | {name.replace("__", "."): str(v) for name, v in arguments.items()}))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny runs on the embedded corpora."""
    out = tmp_path_factory.mktemp("work") / "runs"
    predicates = {"task__corpus": "predicates", "task__columns": "{}", "task__encoding": "bio"}
    return {
        "ner": train(out / "ner", "names", task__columns="{}", trainer__epochs=4, trainer__net__lr=0.02),
        "predicates": train(out / "predicates", "names", **predicates),
        "srl": train(out / "srl", "srl_seal"),
    }


@pytest.fixture(scope="module")
def packaged(runs: dict[str, Path]) -> Path:
    """A package of all runs."""
    (runs["ner"] / "calibration.json").write_text(json.dumps(CALIBRATION))
    words = [f"roles={runs['srl']}", str(runs["predicates"]), str(runs["ner"])]
    return package(words, "en_mine", runs["ner"].parent.parent / "out", build="none", half=False, licence="CC0-1.0")


CALIBRATION = {
    "temperature": 1.25,
    "decisions": "spans",
    "validation": {"ece": 0.0123, "ece_uncalibrated": 0.0456, "decisions": 263},
}


def import_package(packaged: Path, *folders: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, [packaged, *folders]))
    words = [sys.executable, "-c", LOADED, json.dumps(SENTENCE)]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False, cwd=packaged)


def test_a_package_predicts_as_its_runs_do_without_them(packaged: Path, runs: dict[str, Path]) -> None:
    tags = sp.load(runs["ner"]).predict([{"words": SENTENCE}])[0]["entities"]
    [predicates] = sp.load(runs["predicates"]).predict([{"words": SENTENCE}])
    expected = ["O"] * len(SENTENCE)
    for entity in tags:
        span = range(entity["start"], entity["end"])
        expected[entity["start"] : entity["end"]] = [("B" if i == span[0] else "I") + entity["type"] for i in span]
    moved_path = runs["ner"].parent.with_name("elsewhere")
    runs["ner"].parent.rename(moved_path)
    try:
        process = import_package(packaged)
    finally:
        moved_path.rename(runs["ner"].parent)
    assert process.returncode == 0, process.stderr
    output = json.loads(process.stdout)
    assert output["pipeline"] == ["spen_ner", "roles"]
    assert output["tags"] == expected and any(tag != "O" for tag in expected)
    assert output["predicates"] == [entity["start"] for entity in predicates["entities"]] != []
    assert [frame["predicate"]["start"] for frame in output["json"]["frames"]] == output["predicates"]
    assert [entity["score"] for entity in output["json"]["ents"]] == [entity["score"] for entity in tags]


def test_meta_has_scores_requirements_and_sources(packaged: Path, runs: dict[str, Path]) -> None:
    meta = json.loads((packaged / "en_mine/meta.json").read_text())
    ner = json.loads((runs["ner"] / "metrics.json").read_text())["test"]
    srl = json.loads((runs["srl"] / "metrics.json").read_text())["test"]
    predicates = json.loads((runs["predicates"] / "metrics.json").read_text())["test"]
    assert (meta["name"], meta["version"], meta["license"], meta["lang"]) == ("mine", "0.0.0", "CC0-1.0", "en")
    scores = meta["performance"]
    assert scores["ents_f"] == pytest.approx(ner["f1"])
    assert scores["ents_per_type"]["PER"]["r"] == pytest.approx(ner["types"]["PER"]["recall"])
    assert scores["srl_gold_predicates_f"] == pytest.approx(srl["span_f1"])
    assert scores["predicates_p"] == pytest.approx(predicates["precision"])
    assert [text.partition(">=")[0] for text in meta["requirements"]] == ["spen-spacy", "spen-plugins"]
    assert meta["sources"] == [{"name": "synthetic corpus of spen-plugins", "license": "Apache-2.0"}]


def test_the_card_has_scores_licences_and_limits(packaged: Path, runs: dict[str, Path]) -> None:
    text = (packaged / "README.md").read_text()
    metrics = json.loads((runs["ner"] / "metrics.json").read_text())
    assert text == (packaged / "en_mine/en_mine-0.0.0/README.md").read_text()
    assert f"| f1 | {metrics['validation']['f1']:.4f} | {metrics['test']['f1']:.4f} |" in text
    assert f"- metric: {metrics['protocol']['metric']}" in text and "Split: ner sample (synthetic)." in text
    assert "This package: CC0-1.0" in text and "Licence: Apache-2.0." in text
    assert "| validation | 0.0123 | 0.0456 | 263 |" in text and "1.250" in text
    assert "Scores are with gold predicates" in text and 'spacy.load("en_mine")' in text
    assert str(runs["ner"].parent) not in text and "{" not in text.replace("```", "")
    assert '("Anna sent the old farmer in Boston a letter.")' in text
    german = json.loads((packaged / "meta.json").read_text()) | {"lang": "de"}
    assert 'spacy.load("de_mine")("…")' in write_card(german, "de_mine", choose_components([str(runs["ner"])]))


def test_the_package_has_the_configs_of_its_runs_but_no_facts_about_their_machine(
    packaged: Path, runs: dict[str, Path]
) -> None:
    pipeline = packaged / "en_mine/en_mine-0.0.0"
    for name, part in (("spen_ner-model", "ner"), ("roles-model", "srl"), ("roles-predicates", "predicates")):
        config = json.loads((pipeline / f"training/{name}.json").read_text())
        assert config == json.loads((runs[part] / "config.json").read_text())
    for file in packaged.rglob("*"):
        assert not file.is_file() or str(runs["ner"].parent).encode() not in file.read_bytes(), file
    assert "working_folder" not in (pipeline / "spen_ner/model/environment.json").read_text()
    assert [path for path in packaged.parent.iterdir() if path != packaged] == []


def test_a_missing_plugin_is_named_when_the_package_is_imported(packaged: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from importlib import metadata\n"
        "whole = metadata.version\n"
        "def version(name):\n"
        "    if name == 'spen-spacy':\n"
        "        raise metadata.PackageNotFoundError(name)\n"
        "    return whole(name)\n"
        "metadata.version = version\n"
    )
    process = import_package(packaged, tmp_path)
    assert process.returncode != 0
    assert process.stderr.strip().endswith("the pipeline en_mine needs spen-spacy: pip install spen-spacy")


def test_a_wheel_has_half_precision_weights_and_is_not_overwritten(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    wheel = package([str(runs["ner"])], "names_mine", tmp_path, version="1.2.0")
    assert wheel == tmp_path / "en_names_mine-1.2.0/dist/en_names_mine-1.2.0-py3-none-any.whl"
    printed = capsys.readouterr()
    assert printed.out == f"{wheel}\n"
    assert "note: the package is called en_names_mine: spaCy prefixes the name with the language" in printed.err
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    [info] = (tmp_path / "site").glob("*.dist-info")
    assert "Requires-Dist: spen-spacy>=" in (info / "METADATA").read_text()
    assert "en_names_mine = en_names_mine" in (info / "entry_points.txt").read_text()
    [weights] = (tmp_path / "site").rglob("weights.safetensors")
    assert {str(tensor.dtype) for tensor in load_file(weights).values()} == {"torch.float16"}
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    nlp = spacy.load("en_names_mine")
    assert nlp.pipe_names == ["spen_ner"] and nlp("Anna went to Boston.").has_annotation("ENT_IOB")
    content = wheel.read_bytes()
    with pytest.raises(ConfigError, match=r"exists already.*or remove it"):
        package([str(runs["ner"])], "names_mine", tmp_path, version="1.2.0")
    assert wheel.read_bytes() == content


@pytest.fixture
def folder(tmp_path: Path):
    """A function that makes a folder that looks like a run of a task."""

    def make(name: str, weights: bool = True, **task: object) -> str:
        path = tmp_path / name
        path.mkdir()
        (path / "config.json").write_text(json.dumps({"task": task, "trainer": {"type": "cross_entropy"}}))
        if weights:
            (path / "weights.safetensors").touch()
        return str(path)

    return make


def test_each_run_becomes_a_component(folder) -> None:
    components = choose_components(
        [
            folder("labels", type="text"),
            folder("roles", type="srl"),
            folder("names", type="core.tagging", scheme="bio"),
            folder("predicates", type="tagging", scheme="bio", format="predicates"),
            "tagger=" + folder("pos", type="tagging", scheme="none"),
        ]
    )
    assert [(c.name, c.factory) for c in components] == [
        ("tagger", "spen_pos"),
        ("spen_ner", "spen_ner"),
        ("spen_srl", "spen_srl"),
        ("spen_multilabel", "spen_multilabel"),
    ]
    assert (
        components[2].config["predicates"] == "model"
        and Path(components[2].config["predicates_model"]).name == "predicates"
    )
    assert components[1].config == {"model": str(components[1].run.path)}
    verbs = choose_components([str(components[2].run.path), str(components[0].run.path)], "verbs")
    assert verbs[1].config == {"model": str(components[2].run.path), "predicates": "verbs"}


PREDICATES = {"type": "tagging", "scheme": "bio", "corpus": "predicates"}
NER = {"type": "tagging", "scheme": "bio"}
SRL = {"type": "srl"}


@pytest.mark.parametrize(
    ("tasks", "predicates", "message"),
    [
        ([{"type": "multilabel"}], None, r"run of task 'multilabel'.*, text or infnet.parsing, or a plugin"),
        ([NER, NER], None, r"run0 and .*run1 would both be the component 'spen_ner'; .* other_ner=.*run1"),
        ([SRL], None, r"none that finds their predicates; add a run .*format: predicates.*--predicates verbs"),
        ([SRL], "verbs", r"--predicates verbs requires parts of speech"),
        ([SRL, PREDICATES, PREDICATES], None, r"run1 and .*run2, which have the same use"),
        ([SRL, PREDICATES], "verbs", r"run1 would not be used"),
        ([PREDICATES], None, r"run0: there are no roles to label"),
        ([NER], "verbs", r"--predicates: there are no roles"),
    ],
)
def test_runs_that_make_no_pipeline_are_rejected(folder, tmp_path, tasks, predicates, message: str) -> None:
    words = [folder(f"run{i}", **task) for i, task in enumerate(tasks)]
    with pytest.raises(ConfigError, match=message):
        package(words, "en_mine", tmp_path / "out", predicates=predicates)
    assert not (tmp_path / "out").exists()


def test_folders_that_are_no_finished_runs_are_rejected(folder, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(RunError, match="has no weights yet"):
        package([folder("young", weights=False, **NER)], "en_mine", tmp_path / "out")
    with pytest.raises(ConfigError, match="is not a run folder"):
        package(["name=nowhere"], "en_mine", tmp_path / "out")
    with pytest.raises(ConfigError, match="'inference_net' is missing"):
        package([folder("middle", **NER)], "en_mine", tmp_path / "out")
    assert "middle has no metrics.json" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "en-mine"}, "--name en-mine: a package's name has letters"),
        ({"name": "en_mine_"}, "--name en_mine_"),
        ({"name": "en__mine"}, "--name en__mine"),
        ({"lang": "klingon"}, "found language 'klingon'; spaCy has no such language"),
        ({"lang": "ja"}, "spaCy has no tokeniser for ja here: .*SudachiPy"),
        ({"version": "one"}, r"--version one: expected a version .* 1\.0\.0"),
        ({"version": "1.0-beta"}, r"--version 1\.0-beta: .* 1\.0b0"),
    ],
)
def test_settings_that_make_no_package_are_rejected(
    folder, tmp_path: Path, settings: dict[str, str], message: str, monkeypatch
) -> None:
    monkeypatch.setitem(sys.modules, "sudachipy", None)
    with pytest.raises(ConfigError, match=message):
        package([folder("run", **NER)], settings.pop("name", "en_mine"), tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


def component(path: str, factory: str = "spen_ner") -> Part:
    return Part(factory, factory, RunFolder.open(Path(path)))


def test_sources_name_known_data_sets_and_own_files(folder) -> None:
    path = folder("run", type="tagging", train="data:ner/wnut17/wnut17train.conll", test="/home/me/mine.conll")
    config = json.loads((Path(path) / "config.json").read_text())
    config["features"] = {"vectors": "data:vectors/glove.twitter.27B.25d.top12k.txt"}
    (Path(path) / "config.json").write_text(json.dumps(config))
    assert [entry.name for entry in RunFolder(Path(path)).data_sets()] == ["wnut17", "glove_twitter"]
    wnut, glove, local = list_sources([component(path)])
    assert wnut["license"].startswith("CC BY 4.0") and wnut["url"].startswith("https://github.com/leondz/emerging")
    assert glove["license"] == "PDDL 1.0" and "url" not in glove
    assert local == {"name": "mine.conll", "license": "not known to this package"}


def test_requirements_are_the_plugins_that_configs_name() -> None:
    net = {"type": "infnet.compound", "net": {"type": "core.independent"}}
    names = [text.partition(">=")[0] for text in list_requirements([{"inference_net": net, "list": [net]}], Registry())]
    assert names == ["spen-spacy", "spen-plugins", "spen-infnet"]


@pytest.mark.parametrize(
    ("tags", "attributes"),
    [(["NOUN", "VERB"], "pos"), (["NN", "VB"], "tag"), (["NOUN+NN", "VERB+VB"], "pos_tag"), (["NOUN", "^"], "tag")],
)
def test_a_tagger_writes_the_tags_it_learned(folder, tags: list[str], attributes: str) -> None:
    run = RunFolder(Path(folder("run", type="tagging")))
    run.write("vocabulary.json", {"tags": tags})
    run.write("metrics.json", {"test": {"accuracy": 0.5, "tags": {}}})
    assert tag_attributes(run) == attributes
    assert list_scores([component(str(run.path), "spen_pos")]) == {f"{attributes}_acc": 0.5}


def test_the_second_component_of_a_kind_scores_under_its_name(folder) -> None:
    components = [component(folder("a", **NER)), Part("more", "spen_ner", RunFolder(Path(folder("b", **NER))))]
    for score, part in zip((0.25, 0.5), components, strict=True):
        part.run.write("metrics.json", {"test": {"f1": score}})
    assert list_scores(components) == {"ents_f": 0.25, "more_ents_f": 0.5}


def test_a_package_has_the_language_of_its_runs(packaged: Path, folder, tmp_path: Path, capsys) -> None:
    assert json.loads((packaged / "meta.json").read_text())["lang"] == "en"
    words = [folder("tags", **NER, language="en"), "german=" + folder("run", **NER, language="de")]
    for lang, full in ((None, "de_mine"), ("en", "en_mine")):
        with pytest.raises(ConfigError, match="'inference_net' is missing"):
            package(words, "mine", tmp_path / "out", lang)
        said = capsys.readouterr().err
        assert f"note: the package is called {full}:" in said
        assert ("run has task.language=de, but the package's language is en" in said) == (lang == "en")
    assert find_pipeline(words[1].partition("=")[2], None, None, None).language == "de"
    assert find_pipeline(words[0], None, None, None).language == "en"


def test_the_command_line_gives_the_function_its_arguments() -> None:
    app = typer.Typer()
    app.command()(package)
    words = "a b=c --name en_x --out d --build sdist --no-half --keep-energy --predicates verbs --licence MIT"
    context = typer.main.get_command(app).make_context(
        "package", [*words.split(), "--version", "1.0.0", "--lang", "de"]
    )
    assert {name: str(value) for name, value in context.params.items()} == {
        "runs": "['a', 'b=c']",
        "name": "en_x",
        "out": "d",
        "build": "sdist",
        "half": "False",
        "keep_energy": "True",
        "predicates": "verbs",
        "licence": "MIT",
        "version": "1.0.0",
        "lang": "de",
    }


def test_the_plugin_registers_the_command(folder) -> None:
    assert spen_command()["package"] == "spen_spacy.packaging.command:package"
    result = spen("package", folder("run", weights=False, **NER), "--name", "mine", status=1)
    assert "error: " in result.stderr and "has no weights yet" in result.stderr


def test_help_imports_no_spacy() -> None:
    for words in (["--help"], ["package", "--help"]):
        code = (
            f"import sys; from spen_plugins.cli.main import app\ntry: app({words!r})\n"
            "finally: print([m for m in ('spacy', 'torch', 'numpy') if m in sys.modules], file=sys.stderr)"
        )
        process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert "Make an installable spaCy pipeline" in process.stdout and process.stderr.strip() == "[]"
