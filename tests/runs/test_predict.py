"""A run folder alone predicts, evaluates and scores; errors describe the damage of a broken one."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import spen_plugins as sp
from spen_plugins.errors import ConfigError, DataError, RunError
from spen_plugins.loop.checkpoint import Checkpoint
from spen_plugins.runs.predict.evaluating import protocol
from spen_plugins.runs.train import runner
from spen_plugins.task_parts import parse_all
from spen_plugins.testing import ToyLabels
from tests.builtin.features.test_encoders import save_model
from tests.loaded import trained

pytestmark = pytest.mark.usefixtures("whole_samples")

SMALL = {"features.hidden": "[16]", "energy_loss.samples": "3", "energy.hidden": "4"}
SENTENCE = {"words": ["Ann", "saws", "the", "cats", "."], "predicate": 1}


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "labels"
    return trained("labels", folder, **SMALL, **{"trainer.epochs": "2"})


def test_prediction_uses_the_configs_batch_size(labels: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(labels, tmp_path / "run")
    config = json.loads((folder / "config.json").read_text())
    assert config["trainer"]["evaluation_batch_size"] is None
    assert sp.load(folder).batch_size == 4 * config["trainer"]["batch_size"]
    config["trainer"]["evaluation_batch_size"] = 7
    (folder / "config.json").write_text(json.dumps(config))
    predictor = sp.load(folder)
    predictor.save(tmp_path / "net", energy=False)
    assert predictor.batch_size == sp.load(tmp_path / "net").batch_size == 7


def test_a_pickle_loads_the_folder_again(labels: Path) -> None:
    run = sp.load(labels)
    copy = pickle.loads(pickle.dumps(run))
    assert copy.predict([{"features": {}}]) == run.predict([{"features": {}}])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork on this system")
def test_a_forked_process_predicts_after_its_parent(labels: Path) -> None:
    lines = [
        "import os, signal, sys, torch, spen_plugins as sp",
        "predictor = sp.load(sys.argv[1])",
        "torch.ones(10**6).exp()  # starts the threads",
        "if (process := os.fork()) == 0:",
        "    signal.alarm(30)",
        "    torch.ones(10**6).exp()",
        "    os._exit(len(predictor.predict([{'features': {}}])) - 1)",
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) != 0)",
    ]
    command = [sys.executable, "-c", "\n".join(lines), str(labels)]
    assert subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "2"}, timeout=120).returncode == 0


def test_the_protocol_has_the_unit_of_scores_that_are_not_fractions(
    labels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, run = ToyLabels(), sp.load(labels)
    plain = protocol(run.folder, run.model, task)
    assert plain == task.protocol()
    monkeypatch.setattr(type(task.metric()), "unit", "dB")
    assert protocol(run.folder, run.model, task) == {**plain, "unit": "dB"}


def test_a_pretrained_encoder_travels_with_the_run(tmp_path: Path) -> None:
    model = tmp_path / "bert"
    model.mkdir()
    save_model(model)
    data_file = tmp_path / "few.conll"
    data_file.write_text("Anna\t-\t(ARG0*)\nsent\tsend\t(V*)\nit\t-\t(ARG1*)\n.\t-\t*\n\n" * 8)
    small = {"trainer.epochs": "1", "energy_loss.samples": "2", "energy": '{"type":"linear_chain"}'}
    small |= dict.fromkeys(("data", "validation", "test"), str(data_file))
    run = trained("srl_seal", tmp_path / "run", encoder=str(model), **small)
    shutil.rmtree(model)
    new_folder = tmp_path / "elsewhere"
    run.rename(new_folder)
    predictor = sp.load(new_folder)
    [answer] = predictor.predict([SENTENCE])
    assert answer["words"] == SENTENCE["words"] and len(answer["tags"]) == 5
    weights = predictor.model.inference_net.features.encoder.state_dict()
    saved = {
        k.removeprefix("inference_net.features.encoder."): v for k, v in sp.RunFolder(new_folder).weights().items()
    }
    assert all(torch.equal(value, saved[name]) for name, value in weights.items() if name in saved)
    assert set(weights) <= set(saved)


def test_predictions_come_in_the_order_of_the_items(labels: Path) -> None:
    predictor = sp.load(labels)
    names = [row[0] for row in json.loads((labels / "vocabulary.json").read_text())["features"][:3]]
    items = [{"features": {name: 1}} for name in names] + [{"features": {}}]
    together = predictor.predict(items)
    for item, answer in zip(items, together, strict=True):
        [expected] = predictor.predict([item])
        assert answer["labels"] == expected["labels"]
        assert answer["probabilities"] == pytest.approx(expected["probabilities"], abs=1e-5)
    assert len({str(answer) for answer in together}) == len(items)


def test_predictions_in_bf16_equal_those_in_float32_up_to_rounding(labels: Path) -> None:
    full, half = sp.load(labels), sp.load(labels, precision="bf16")
    names = [row[0] for row in json.loads((labels / "vocabulary.json").read_text())["features"]]
    items = [{"features": {name: 1}} for name in names[:40]]
    probabilities = [
        torch.tensor([list(answer["probabilities"].values()) for answer in p.predict(items)]) for p in (full, half)
    ]
    gap = (probabilities[0] - probabilities[1]).abs().max()
    assert 0 < gap < 0.02
    [(proposal, _, _)] = half.proposals(parse_all(half.task, items[:3]))
    assert proposal.logits.dtype == torch.float32
    assert {p.dtype for p in half.model.parameters()} == {torch.float32}  # what is saved


def test_casts_are_kept_without_autocast_around_them(labels: Path) -> None:
    predictor = sp.load(labels, precision="bf16")
    with predictor.keep_casts():
        assert not torch.is_autocast_enabled("cpu")
        assert torch.autocast_increment_nesting() == 2 and torch.autocast_decrement_nesting() == 1
    assert torch.autocast_increment_nesting() == 1 and torch.autocast_decrement_nesting() == 0


def test_another_precision_is_rejected(labels: Path) -> None:
    with pytest.raises(ConfigError, match="'fp16'; expected 'no'"):
        sp.load(labels, precision="fp16")


def test_a_part_left_in_training_predicts_without_dropout(labels: Path) -> None:
    predictor = sp.load(labels)
    predictor.model.inference_net.features.train()
    predictor.predict([{"features": {}}])
    assert not any(module.training for module in predictor.model.modules())


def copy_damaged(run: Path, copy: Path, name: str, change: Any) -> Path:
    shutil.copytree(run, copy)
    change(copy / name)
    return copy


def test_damaged_runs_are_reported(labels: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a run folder"):
        sp.load(tmp_path / "nothing")
    with pytest.raises(ConfigError, match=r"not a run folder: it is a file; name its folder"):
        sp.load(labels / "config.json")
    incomplete = copy_damaged(labels, tmp_path / "b", "weights.safetensors", Path.unlink)
    with pytest.raises(RunError, match="no weights yet"):
        sp.load(incomplete)

    def widen(path: Path) -> None:
        config = json.loads(path.read_text())
        config["features"]["hidden"] = [17]
        path.write_text(json.dumps(config))

    widened = copy_damaged(labels, tmp_path / "e", "config.json", widen)
    with pytest.raises(RunError, match="have other shapes"):
        sp.load(widened)


def test_a_run_that_was_killed_predicts_with_a_warning(labels: Path, tmp_path: Path) -> None:
    killed = shutil.copytree(labels, tmp_path / "a run")
    (killed / "metrics.json").unlink()
    shutil.rmtree(killed / "checkpoint")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        complete, copied = sp.load(labels), sp.load(killed)  # a copy without training state may be of a finished run
    Checkpoint(killed / "checkpoint").save({})
    resume = re.escape(f"resume with: spen-run --resume '{killed}'")
    with pytest.warns(UserWarning, match=f"a run isn't trained to the end; {resume}"):
        loaded = sp.load(killed)
    item = [{"features": {}}]
    assert loaded.predict(item) == complete.predict(item) == copied.predict(item)


@pytest.mark.parametrize("number", [2, 99, None])
def test_runs_of_another_format_are_rejected(labels: Path, tmp_path: Path, number: int | None) -> None:
    environment = json.dumps({"format": number, "seed": 0})
    run = copy_damaged(labels, tmp_path / "run", "environment.json", lambda p: p.write_text(environment))
    for open_run in (lambda: sp.load(run), lambda: runner.resume(run, runner.RunOptions(quiet=True))):
        with pytest.raises(ConfigError, match=f"has format {number}; this version of spen-plugins reads format 3"):
            open_run()


def test_an_item_that_cannot_be_read_is_named_by_number(labels: Path) -> None:
    with pytest.raises(DataError, match=r"^item 1: found .*no-such-feature"):
        sp.load(labels).predict([{"features": {}}, {"features": {"no-such-feature": 1}}])
    with pytest.raises(DataError, match=r"^item 0: found list; .*; or all rows as an array or a DataFrame$"):
        sp.load(labels).predict([[0.1, 0.2]])


def test_warm_start_takes_the_weights_of_one_net(labels: Path, tmp_path: Path) -> None:
    settings = SMALL | {"trainer.epochs": "1", "trainer.net.lr": "1e-12", "seed": "5"}
    warm = trained("labels", tmp_path / "warm", **settings, **{"init.inference_net": json.dumps(str(labels))})
    one, two = sp.RunFolder(labels).weights(), sp.RunFolder(warm).weights()
    for name, value in one.items():
        is_equal = torch.allclose(value, two[name], atol=1e-6)
        assert is_equal == name.startswith("inference_net."), name
    with pytest.raises(ConfigError, match=r"init\.inference_net.*have other shapes"):
        trained(
            "labels",
            tmp_path / "misfit",
            **{**settings, "features.hidden": "[8]", "init.inference_net": json.dumps(str(labels))},
        )
    shutil.copytree(labels, tmp_path / "other")
    facts = json.loads((labels / "vocabulary.json").read_text())
    (tmp_path / "other" / "vocabulary.json").write_text(json.dumps(facts | {"labels": facts["labels"][1:]}))
    with pytest.raises(ConfigError, match=r"other was trained with other labels than those of the training data"):
        trained(
            "labels",
            tmp_path / "misfit",
            **{**settings, "features.hidden": "[8]", "init.inference_net": json.dumps(str(tmp_path / "other"))},
        )
    assert not (tmp_path / "misfit").exists(), "nothing is left behind by a run that never began"
