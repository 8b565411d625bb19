"""The config `citations`: every method is an experiment, and citations without fields teach."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from spen_implicit.citations.samples import sample_citations
from spen_plugins import PARTS, RunFolder
from spen_plugins.config.evaluation import evaluate, parameters
from spen_plugins.config.shipped import find
from spen_plugins.errors import ConfigError, DataError
from tests.loaded import built, experiment, spen, trained

CONFIG = find(Path("citations"))
GOLD_ONLY = ("cross_entropy", "crf", "dvn")
"""They learn only from citations with fields."""
METHODS = (*GOLD_ONLY, "implicit_cd", "implicit_ssvm", "implicit_dvn", "alternating_cd")
SMALL = {
    "labelled": "2",
    "task.repeat": "2",
    "features.hidden": "4",
    "features.word_dim": "4",
    "features.affix_dim": "0",
    "trainer.batch_size": "4",
    "trainer.net_epochs": "1",
    "trainer.epochs": "1",
    "energy_loss.samples": "2",
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", ["sample", "cora"])
def test_every_data_set_with_every_method_is_an_experiment(data: str, method: str) -> None:
    config = experiment(CONFIG, data=data, method=method, labelled="10", pool="anystyle")
    task = config["task"]
    assert (task["type"], task["labelled"]) == ("implicit.citations", 10) and 5 <= task["repeat"] <= 15
    assert task["unlabelled"] == (None if method in GOLD_ONLY else "data:citations/anystyle/good.xml")
    nets = {"crf": "crf", "dvn": "gbi"}
    assert config["inference_net"]["type"] == nets.get(method, "independent")
    assert task["rest"] == (method not in GOLD_ONLY)
    assert ("energy" in config) == (method not in ("cross_entropy", "crf"))
    assert (task["parts"] and sum(task["parts"])) == (500 if data == "cora" else None)
    if method not in GOLD_ONLY:
        assert config["energy"]["type"] == "linear_chain"
        assert config["trainer"]["type"] == "implicit.bilevel"
        assert config["trainer"]["inverse"] == ("none" if method == "alternating_cd" else "series")


def test_user_files() -> None:
    task = experiment(CONFIG, data="./mine.txt", validation="dev.txt", labelled="null", pool="more.txt")["task"]
    assert (task["train"], task["validation"], task["labelled"]) == ("./mine.txt", "dev.txt", None)
    assert (task["unlabelled"], task["repeat"], task["corpus"]) == ("more.txt", 1, None)
    assert experiment(CONFIG)["trainer"]["type"] == "implicit.bilevel" and len(parameters(CONFIG)) <= 15
    assert evaluate(CONFIG, {"data": "./mine.txt"})["task"]["file"] == "./mine.txt"
    with pytest.raises(ConfigError, match=r'unknown method "nce"; known: .*implicit_cd'):
        evaluate(CONFIG, {"method": "nce"})
    with pytest.raises(ConfigError, match=r"'task.labelled': found 0"):
        experiment(CONFIG, labelled="0")


def write(path: Path, part: str, size: int) -> Path:
    """Citations of the sample, tagged inline."""
    lines = []
    for citation in sample_citations()[part][:size]:
        text, last = "", None
        for word, tag, gap in zip(citation.words, citation.tags, citation.columns["gap"], strict=True):
            if tag != last:
                text += f" </{last}> <{tag}> {word}" if last else f"<{tag}> {word}"
            else:
                text += word if gap == "glued" else f" {word}"
            last = tag
        lines.append(f"{text} </{last}>")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("citations")
    for part, size in (("train", 10), ("validation", 3), ("test", 3)):
        write(folder / f"{part}.txt", part, size)
    return folder


def make_file_arguments(folder: Path) -> dict[str, str]:
    """The arguments that name a folder's files."""
    names = ("data", "validation", "test")
    return {name: str(folder / f"{part}.txt") for name, part in zip(names, PARTS, strict=True)}


@pytest.fixture(scope="module")
def run(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(CONFIG, tmp_path_factory.mktemp("runs") / "run", **make_file_arguments(files), **SMALL)


def test_a_run_predicts_a_file_of_plain_citations(run: Path, files: Path, tmp_path: Path) -> None:
    tagged = (files / "test.txt").read_text()
    plain = tmp_path / "plain.txt"
    plain.write_text(re.sub(r" ?</?\w+> ?", " ", tagged))
    lines = [json.loads(line) for line in spen("predict", run, plain, "--energy").stdout.splitlines()]
    assert len(lines) == 3 and all(isinstance(line["energy"], float) for line in lines)
    for line, text in zip(lines, plain.read_text().splitlines(), strict=True):
        assert " ".join(field["text"] for field in line["fields"]).replace(" ", "") == text.replace(" ", "")
    # A citation has the same prediction when its fields are given.
    tagged_lines = [json.loads(line) for line in spen("predict", run, files / "test.txt").stdout.splitlines()]
    assert [line["tags"] for line in tagged_lines] == [line["tags"] for line in lines]
    plain.write_text("A. Cau. <b>Logic</b> and a < b. 1990.\n")  # tags that are no fields
    [line] = [json.loads(line) for line in spen("predict", run, plain).stdout.splitlines()]
    assert line["words"] == ["A", ".", "Cau", ".", "Logic", "and", "a", "<", "b", ".", "1990", "."]
    lines = ["A. Cau. Logic of things. 1990.", "A. Cau. <b>Logic</b> and so on. 1990.", "B. Dee. Another one. 1991."]
    plain.write_text("\n".join([*lines, "<author> A. Cau. </author> <titel> Logic. </titel>\n"]))
    assert "plain.txt:4: found field <titel> in" in spen("predict", run, plain, status=2).stderr
    protocol = RunFolder(run).metrics()["protocol"]
    assert protocol["labelled"] == "the first 2 training citations" and "validation part" in protocol["selection"]


def test_citations_without_fields_teach_the_energy(files: Path) -> None:
    """Batches without any gold have losses, and gradients for both players."""
    parts = built(CONFIG, **make_file_arguments(files), **SMALL)
    task, model = parts.task, parts.model
    batch = task.collate(task.part("train")[2:6])
    assert batch.gold is None and not batch.labelled.any()
    proposal = model.inference_net(batch.x, None)
    loss = model.energy_loss.terms(model.energy.at(batch.x), batch, proposal)["energy_loss"]
    assert loss.shape == (4,) and (loss > 0).all()
    loss.sum().backward()
    for part in (model.energy, model.inference_net):
        assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in part.parameters())
    candidates = torch.cat([proposal.mode, task.search(batch.x, proposal)], 1)
    reward = task.reward(batch.x, candidates)
    assert (reward[:, 1:].amax(1) > reward[:, 0]).all()


@pytest.mark.parametrize("method", ["implicit_ssvm", "implicit_dvn"])
def test_citations_without_fields_in_other_losses(files: Path, method: str) -> None:
    """The margin ignores them; the value of an output is learned from its reward."""
    parts = built(CONFIG, **make_file_arguments(files), labelled="2", method=method)
    task, model = parts.task, parts.model
    for rows in (slice(2, 5), slice(1, 4)):
        batch = task.collate(task.part("train")[rows])
        proposal = model.inference_net(batch.x, None)
        loss = sum(model.energy_loss.terms(model.energy.at(batch.x), batch, proposal).values())
        unlabelled_loss = loss[~batch.labelled]
        assert (unlabelled_loss > 0).all() if method == "implicit_dvn" else not unlabelled_loss.any()
        assert loss.requires_grad


def test_a_broken_file_stops_before_training(files: Path, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text((files / "train.txt").read_text() + "<author> A. Bee. <title> C\n")
    for part in ("validation", "test"):
        (tmp_path / f"{part}.txt").write_text((files / f"{part}.txt").read_text())
    with pytest.raises(DataError, match=r"train\.txt:11: found <author> before <title> in '<author> A\. Bee"):
        trained(CONFIG, tmp_path / "run", **make_file_arguments(tmp_path), **SMALL)
