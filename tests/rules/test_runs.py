"""Runs that learn from a file of rules, and their predictions without the file."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import torch

import spen_plugins as sp
from spen_plugins.errors import Interrupted
from spen_plugins.registry import Registry
from spen_plugins.runs.predict.own_data import load_task
from spen_plugins.runs.train.runner import resume
from spen_rules.votes import REST, read_rules
from tests.loaded import QUIET, ROOT, built, loaded, parsed, spen, spen_run, trained, written

RULES = """
from pathlib import Path

from spen_rules import lexicon, pattern, rule
from beside import TITLES

with Path(__file__).with_name("ran").open("a") as file:
    file.write("x")
lexicon("LOC", "cities.txt", weight=2)
pattern("ORG", r"[A-Z]\\w+ College")

@rule("PER", weight=0.5)
def titled(words):
    for at, word in enumerate(words[:-1]):
        if word in TITLES:
            yield at + 1, at + 2
"""
SMALL = {"features.hidden": "8", "features.word_dim": "8", "trainer.epochs": "1", "task.labelled": "3"}
TRAINED = ("votes", "rules_energy", "expectation", "rules_cd", "r_spen", "sg_spen")
SENTENCE = "Mrs. Rossi saw Oslo ."


def write_rules(folder: Path, text: str = RULES) -> Path:
    """Writes a file of rules, its list and its module; each time it runs, it appends a letter to the file `ran`."""
    folder.mkdir()
    written(folder / "cities.txt", "Geneva\nLisbon\n")
    written(folder / "beside.py", 'TITLES = {"Mrs.", "Mr.", "Dr."}\n')
    return Path(written(folder / "mine.py", text))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of all methods with a file of rules, which is in the folder `rules`."""
    folder = tmp_path_factory.mktemp("runs")
    rules = write_rules(folder / "rules")
    trained_runs = {
        name: trained("names", folder / name, method=name, **SMALL, **{"task.rules": str(rules)}) for name in TRAINED
    }
    spen_run("names", "method=majority", f"task.rules={rules}", "task.labelled=3", "--out", folder / "majority")
    return {**trained_runs, "majority": folder / "majority"}


@pytest.mark.parametrize("method", [*TRAINED, "majority"])
def test_each_method_trains_and_scores_by_the_rules(runs, method):
    run = sp.RunFolder(runs[method])
    for part in ("validation", "test"):
        scores = run.metrics()[part]
        assert 0 <= scores["reward"] <= 1 and 0 < scores["reward_of_gold"] < 1
    rules = runs[method].parent / "rules"
    file_names = {
        str(rules / "mine.py"): "mine.py",
        str(rules / "beside.py"): "beside.py",
        str(rules / "cities.txt"): "cities.txt",
    }
    expected = {key: hashlib.sha256((rules / name).read_bytes()).hexdigest() for key, name in file_names.items()}
    environment = run.environment()
    checksums = environment["data_sha256"] | environment["files_sha256"]
    assert {key: checksums.get(key) for key in expected} == expected


def test_the_vote_alone_has_the_highest_reward(runs):
    rewards = {name: sp.RunFolder(run).metrics()["validation"]["reward"] for name, run in runs.items()}
    assert rewards["majority"] > 0.99 and rewards["majority"] == max(rewards.values())


@pytest.fixture(scope="module")
def runs_without_rules(runs, tmp_path_factory) -> dict[str, Path]:
    """Copies of the runs, without the rules."""
    folder = tmp_path_factory.mktemp("alone")
    copies = {name: Path(shutil.copytree(run, folder / name)) for name, run in runs.items()}
    for path in copies.values():
        config = json.loads((path / "config.json").read_text())
        config["task"]["rules"] = str(folder / "nowhere.py")
        (path / "config.json").write_text(json.dumps(config))
    return copies


@pytest.mark.parametrize("method", TRAINED)
def test_a_run_predicts_without_the_rules(runs_without_rules, method, tmp_path):
    [prediction] = sp.load(runs_without_rules[method]).predict([SENTENCE.split()])
    assert prediction["words"] == SENTENCE.split() and len(prediction["tags"]) == 5
    gold = written(tmp_path / "gold.conll", "Mrs. NNP B-NP O\nRossi NNP I-NP B-PER\n")
    assert json.loads(spen("evaluate", runs_without_rules[method], gold).stdout)["scores"].keys() >= {"f1"}


def test_the_vote_alone_predicts_nothing_without_the_rules(runs_without_rules):
    with pytest.raises(sp.ConfigError, match="can't predict or score other files: train a net"):
        sp.load(runs_without_rules["majority"]).predict([SENTENCE.split()])


def test_the_code_of_the_file_runs_only_in_training(tmp_path):
    rules = write_rules(tmp_path / "rules")
    run = trained("names", tmp_path / "run", method="votes", **SMALL, **{"task.rules": str(rules)})
    log = tmp_path / "rules" / "ran"
    assert log.read_text() == "x"
    sp.load(run).predict([SENTENCE.split()])
    sentence = written(tmp_path / "in.txt", SENTENCE)
    spen("predict", run, sentence)
    load_task(sp.RunFolder(run), Registry())
    spen("evaluate", run, "--part", "test")
    spen("report", run, "--out", tmp_path / "page.html")
    assert log.read_text() == "x"


def test_a_run_is_not_resumed_with_other_rules(tmp_path, monkeypatch):
    rules = write_rules(tmp_path / "rules")
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr("spen_plugins.loop.processes.Requests.read", lambda _: [1.0, 0.0])
        trained("names", tmp_path / "run", method="expectation", **SMALL, **{"task.rules": str(rules)})
    texts = {path: path.read_text() for path in rules.parent.glob("*.*")}
    for name in ("mine.py", "cities.txt", "beside.py"):
        path = rules.with_name(name)
        path.write_text(texts[path] + "\n# more\n")
        with pytest.raises(sp.ConfigError, match=rf"can't be resumed: files it reads changed .*{name}"):
            resume(tmp_path / "run", QUIET)
        path.write_text(texts[path])
    resume(tmp_path / "run", QUIET)
    uninterrupted = trained("names", tmp_path / "whole", method="expectation", **SMALL, **{"task.rules": str(rules)})
    assert sp.RunFolder(uninterrupted).metrics() == sp.RunFolder(tmp_path / "run").metrics()


def test_files_that_no_plugin_reads_are_rejected(tmp_path):
    rules = written(tmp_path / "rules.yaml", "PER: [Ann]")
    with pytest.raises(sp.ConfigError, match=r"no installed plugin reads rules from 'rules\.yaml'; spen-rules reads"):
        trained("names", tmp_path / "run", method="votes", **SMALL, **{"task.rules": rules})
    assert not (tmp_path / "run").exists()


def test_texts_learn_from_rules_for_labels(tmp_path):
    task = loaded("text", corpus="sample")
    label = task.space.labels[0]
    text = f"from spen_rules import lexicon\nlexicon({label!r}, ['vusi', 'zepo'], ignore_case=True, weight=2)\n"
    rules = written(tmp_path / "mine.py", text)
    settings = {"task.rules": rules, "features.hidden": "[8]", "trainer.epochs": "1", "task.labelled": "20"}
    for method in ("votes", "expectation"):
        run = trained("texts", tmp_path / method, method=method, **settings)
        scores = sp.RunFolder(run).metrics()["test"]
        assert 0 <= scores["reward"] <= 1 and 0 < scores["reward_of_gold"] <= 1
        [prediction] = sp.load(run).predict(["Vusi zepo nabo."])
        assert "labels" in prediction


@pytest.mark.parametrize(
    ("kind", "fields"), [("text", {"corpus": "sample"}), ("tagging", {"corpus": "ner", "scheme": "bio"})]
)
def test_new_examples_of_a_task_with_rules_have_their_votes(tmp_path, kind, fields):
    name = loaded(kind, **fields).space.labels[0] if kind == "text" else "PER"
    path = written(tmp_path / "mine.py", f"from spen_rules import lexicon\nlexicon({name!r}, ['Ann'], weight=2)\n")
    cls, config = parsed("task", kind, rules=path, **fields)
    task = cls(config)
    task.read_rules = read_rules
    task.load()
    votes = [float(task.collate([task.parse(item)]).x.inputs[sp.VOTES].max()) for item in ("Ann saw it", "it")]
    assert votes == pytest.approx([2, -REST if kind == "text" else REST])


def test_citations_have_votes_of_their_own_rules():
    task = loaded("implicit.citations", corpus="sample")
    batch = task.collate(task.part("train")[:5])
    votes, fired = batch.x.inputs[sp.VOTES], batch.x.inputs[sp.FIRED]
    torch.testing.assert_close(votes, fired.float() @ task.rule_votes())
    assert not votes[~batch.x.mask].any() and votes.any() and task.rule_votes().unique().tolist() == [0, 1]


def test_citations_take_the_rules_of_a_file_in_place_of_their_own(tmp_path: Path) -> None:
    file = written(tmp_path / "mine.py", "from spen_rules import pattern\npattern('date', r'\\d{4}')\n")
    task = built("citations", **{"task.rules": str(file)}).task
    examples = task.part("train")[:8]
    batch = task.collate(examples)
    votes, date = batch.x.inputs[sp.VOTES], task.space.tags.index("date")
    for row, example in enumerate(examples):
        years = [float(len(word) == 4 and word.isdigit()) for word in example.entry.words]
        assert votes[row, : len(years), date].tolist() == years
    assert votes.sum() == votes[..., date].sum() > 0 and len(task.rule_votes()) == 1
    assert task.reward(batch.x, batch.gold).max() <= 1


def test_the_rules_of_citations_as_a_file_vote_and_reward_as_they_do() -> None:
    file = {"task.rules": str(ROOT / "examples/rules/citations.py")}
    builtin, from_file = (built("citations", **settings).task for settings in ({}, file))
    for part in sp.PARTS:
        batches = [task.collate(task.part(part)[:200]) for task in (builtin, from_file)]
        votes = [batch.x.inputs[sp.VOTES] for batch in batches]
        assert torch.equal(*votes) and votes[0].any()
        y = torch.softmax(torch.randn(*batches[0].gold.shape), -1) * batches[0].x.mask[:, None, :, None]
        assert torch.equal(
            *(task.reward(batch.x, y) for task, batch in zip((builtin, from_file), batches, strict=True))
        )
    assert {tuple(row) for row in builtin.rule_votes().tolist() if any(row)} == {
        *map(tuple, from_file.rule_votes().tolist())
    }


@pytest.mark.parametrize("method", ["majority", *TRAINED])
def test_a_method_that_uses_rules_requires_them(method: str) -> None:
    with pytest.raises(sp.ConfigError, match=r"requires rules; pass task\.rules=mine\.py"):
        built("names", method=method, **{"task.labelled": "3"})


def test_running_counts_are_rejected_where_a_batch_has_parts(tmp_path: Path) -> None:
    words = [f"task.rules={write_rules(tmp_path / 'rules')}", "task.labelled=3", "--out", tmp_path / "run"]
    result = spen_run("names", "method=expectation", "trainer.accumulate=2", *words, status=2)
    assert "use accumulate=1 and one process" in " ".join(result.output.split())


@pytest.mark.parametrize("method", ["majority", "votes", "expectation", "rules_energy", "sg_spen"])
def test_the_rules_of_citations_are_used_without_a_file(method: str) -> None:
    experiment = built("citations", method=method)
    batch = experiment.task.collate(experiment.task.part("train")[:4])
    assert batch.x.inputs[sp.VOTES].sum() > 0 and len(experiment.task.rule_votes()) > 5
    if method == "majority":
        tags = experiment.model.inference_net(batch.x).mode[0, 0].argmax(-1)
        has_vote = batch.x.inputs[sp.VOTES][0].amax(-1) > 0
        [common] = {int(tag) for tag in tags[~has_vote]}
        assert experiment.model.inference_net.prior.argmax() == common


def test_rules_are_rejected_where_all_examples_have_gold(tmp_path: Path) -> None:
    rules = write_rules(tmp_path / "rules")
    for method in ("votes", "expectation", "rules_cd"):
        with pytest.raises(sp.ConfigError, match=r"task\.labelled=50 hides the gold of the others"):
            built("names", method=method, **{"task.rules": str(rules)})


def test_a_repeated_example_counts_once_for_the_weights_of_rules(tmp_path: Path) -> None:
    rules = write_rules(tmp_path / "rules")
    values = {"task.rules": str(rules), "task.labelled": "3", "task.rule_weights": "fitted"}
    weights = [built("names", method="votes", **values, **{"task.repeat": n}).task.rules._weights for n in ("1", "20")]
    assert (weights[0] == weights[1]).all()


def test_rules_for_roles_see_the_predicate(tmp_path: Path) -> None:
    """The word before the predicate is ARG0 in each of a sentence's frames."""
    text = """from spen_rules import rule

@rule("ARG0")
def before(words):
    return [(words.predicate - 1, words.predicate)] if words.predicate else []
"""
    file = written(tmp_path / "mine.py", text)
    settings = {"task.rules": str(file), "task.labelled": "40", "trainer.epochs": "1"}
    task = built("roles", method="votes", **settings).task
    examples = task.part("train")[:40]
    votes, column = task.collate(examples).x.inputs[sp.VOTES], task.space.tags.index("B-ARG0")
    assert {len({e.predicate for e in examples if e.entry is other.entry}) for other in examples} != {1}
    for row, example in enumerate(examples):
        expected = [float(i == example.predicate - 1) for i in range(len(example.entry.words))]
        assert votes[row, : len(expected), column].tolist() == expected
    run = trained("roles", tmp_path / "run", method="rules_energy", **settings)
    assert 0 < sp.RunFolder(run).metrics()["test"]["reward_of_gold"] < 1
    [prediction] = sp.load(run).predict([{"words": ["Forces", "killed", "him"], "predicate": 1}])
    assert prediction["words"] == ["Forces", "killed", "him"]


def test_a_run_with_rules_warns_that_empty_cells_are_gold(tmp_path: Path) -> None:
    rows = ["good soup,food", "kind waiter,staff", "bad soup,food", "rude waiter,staff"] * 5
    for empty, has_warning in ((15, False), (25, True)):
        table = ["text,labels", *rows]
        table += [f"text number {i}," for i in range(empty)]
        data = written(tmp_path / f"{empty}.csv", "\n".join(table) + "\n")
        rules = written(tmp_path / "mine.py", "from spen_rules import lexicon\nlexicon('food', ['soup'])\n")
        settings = {"validation": str(data), "task.rules": str(rules), "method": "rules_energy"}
        notes = built("texts", data=str(data), **settings).task.notes()
        assert any("an empty cell" in note for note in notes) is has_warning
