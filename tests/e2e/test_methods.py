"""`method=unrolled` of the shipped configs: it trains, and its runs predict, report their steps, and are pipelines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import spen_plugins as sp
from spen_plugins.config.evaluation import evaluate
from tests.loaded import built, spen, trained

SMALL = {
    "method": "unrolled",
    "trainer.init_epochs": "1",
    "trainer.clamped_epochs": "1",
    "trainer.epochs": "1",
    "trainer.batch_size": "256",
}
BILSTM = SMALL | {"features.hidden": "8", "features.word_dim": "8", "features.char_dim": "0", "features.case_dim": "0"}


def train(name: str, folder: Path, arguments: dict[str, str]) -> sp.Predictor:
    """One epoch of each stage."""
    return sp.load(trained(name, folder, **arguments))


def read_stages(predictor: sp.Predictor) -> list[str]:
    return [json.loads(line)["stage"] for line in (predictor.folder.path / "history.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def tagger(tmp_path_factory) -> sp.Predictor:
    return train("tags", tmp_path_factory.mktemp("runs") / "pos", BILSTM)


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> sp.Predictor:
    small = SMALL | {"features.buckets": "64", "features.hidden": "[8]", "energy.hidden": "4"}
    return train("texts", tmp_path_factory.mktemp("runs") / "text", small)


def test_label_sets(tmp_path) -> None:
    predictor = train("labels", tmp_path / "run", SMALL | {"features.hidden": "[8]", "energy.hidden": "4"})
    assert read_stages(predictor) == ["init", "clamped", "all"]
    assert predictor.predict([{"features": []}], energy=True)[0].keys() >= {"labels", "energy"}
    config = evaluate("labels", {"method": "unrolled"})
    assert config["energy"]["type"] == "seal.labels" and "energy_loss" not in config


def test_entities(tmp_path) -> None:
    predictor = train("names", tmp_path / "run", BILSTM)
    assert read_stages(predictor) == ["init", "clamped", "all"]
    assert predictor.predict([{"words": ["Anna", "sleeps"]}])


@pytest.mark.parametrize("energy", ["chain", "ge_a", "skip_chain", "high_order"])
def test_the_local_terms_are_copied_whatever_the_energy_adds(energy: str) -> None:
    parts = built("tags", **BILSTM, energy=energy)
    first = parts.trainer.stages(parts.model, parts.task)[1]
    first.start(parts.model)
    chain = parts.model.energy if energy == "chain" else parts.model.energy.terms["chain"]
    net = parts.model.inference_net.net
    assert torch.equal(chain.local.weight, net.output.weight)
    assert all(torch.equal(a, b) for a, b in zip(chain.features.parameters(), net.features.parameters(), strict=True))


@pytest.fixture
def tagged(tmp_path) -> Path:
    path = tmp_path / "some.conll"
    path.write_text("She\tPRON\ngave\tVERB\nhim\tPRON\nbooks\tNOUN\n\nHe\tPRON\nsleeps\tVERB\n")
    return path


def test_the_steps_of_a_run(tagger, tagged) -> None:
    """Step 0 is the net at the start, the last one the run's prediction."""
    result = spen("evaluate", tagger.folder.path, tagged, "--trajectory")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["step"] for line in lines] == [0, 1, 2, 3]
    assert lines[-1]["scores"] == tagger.evaluate_file(tagged)["scores"]
    assert len({line["energy"] for line in lines}) > 1


def test_a_run_without_its_data_and_a_search_on_top_of_it(tagger, tagged, tmp_path) -> None:
    tagger.save(tmp_path / "small")
    words = [{"words": ["She", "sleeps"]}]
    assert sp.load(tmp_path / "small").predict(words) == tagger.predict(words)
    with pytest.raises(sp.ConfigError):
        tagger.save(tmp_path / "without", energy=False)
    refined = sp.load(tagger.folder.path, refine={"type": "gbi", "steps": 2})
    assert refined.predict(words)
    steps = {"type": "e2e.unrolled", "steps": 5, "lr": 0.1}
    [first, *_, last] = sp.load(tagger.folder.path, refine=steps).trajectory_file(tagged)
    assert last["step"] == 5 and last["energy"] < first["energy"]


def test_pipelines(tagger, texts) -> None:
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    nlp.add_pipe("spen_pos", config={"model": str(tagger.folder.path)})
    nlp.add_pipe("spen_multilabel", config={"model": str(texts.folder.path)})
    doc = nlp("She gave him books")
    expected = tagger.predict([{"words": [token.text for token in doc]}])[0]["tags"]
    assert [token.pos_ for token in doc] == expected
    assert set(doc.cats) == set(texts.task.space.labels)


def test_the_net_at_the_start_comes_from_an_earlier_run(tmp_path) -> None:
    """Step sizes don't come from that run; they start anew."""
    small = {**SMALL, "features.hidden": "[8]"}
    arguments = {k: v for k, v in small.items() if "clamped" not in k and "init" not in k} | {"method": "cross_entropy"}
    earlier = trained("labels", tmp_path / "a", **arguments)
    frozen = {"energy.hidden": "4", "trainer.init_epochs": "0", "trainer.energy.lr": "1e-12"}
    bias = {"inference_net.net.bias": "null", "init.inference_net": str(earlier)}
    later = train("labels", tmp_path / "b", small | frozen | bias).model.inference_net
    for name, value in sp.load(earlier).model.inference_net.state_dict().items():
        torch.testing.assert_close(later.net.state_dict()[name], value, rtol=0, atol=1e-6)
    assert later.log_rates.shape == (3,)
