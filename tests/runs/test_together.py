"""Nets of several tasks trained together over one encoder: the plain trainer's updates, in turns."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import spen_plugins as sp
from spen_plugins.builtin.features.one_reading import OneReading
from spen_plugins.builtin.features.transformer import Transformer
from spen_plugins.errors import ConfigError, Interrupted
from spen_plugins.files import read_tensors
from spen_plugins.loop import active
from spen_plugins.loop import together as loops
from spen_plugins.runs.many import together
from spen_plugins.runs.train import runner
from spen_plugins.samples import srl, tagged
from tests.builtin.features.test_encoders import save_model
from tests.loaded import QUIET, spen

SMALL = {"epochs": 2, "batch_size": 16, "evaluation_batch_size": 500, "epoch_updates_at_most": 5, "net": {"lr": 3e-3}}
TASKS: dict[str, dict[str, Any]] = {
    "tags": {"type": "tagging", "corpus": "pos"},
    "roles": {"type": "srl", "corpus": "sample"},
}
NETS = {"tags": "independent", "roles": "crf"}


@pytest.fixture(scope="module", autouse=True)
def few():
    """The embedded samples, shortened."""
    with pytest.MonkeyPatch.context() as patch:
        for corpus in (srl, tagged):
            patch.setattr(corpus, "SIZES", {"train": 100, "validation": 20, "test": 20})
        yield


def make_config(folder: Path, part: str = "tags", **trainer: Any) -> dict[str, Any]:
    if not (folder / "config.json").exists():
        folder.mkdir(exist_ok=True)
        save_model(folder)
    reader = {"type": "transformer", "model": str(folder)}
    marked = {"type": "one_reading", "dim": 7, "hidden": 4, "reader": reader}
    return {
        "task": TASKS[part],
        "features": marked if part == "roles" else reader,
        "inference_net": {"type": NETS[part]},
        "trainer": {"type": "cross_entropy", **SMALL, **trainer},
    }


def given(folder: Path, **trainer: Any) -> dict[str, tuple[dict[str, Any], str]]:
    return {part: (make_config(folder, part, **trainer), f"{part}.json") for part in TASKS}


def read_encoder(run: Path) -> dict[str, torch.Tensor]:
    return {
        name.partition(".encoder.")[2]: value
        for name, value in sp.RunFolder(run).weights().items()
        if ".encoder." in name
    }


def check_same_runs(one: Path, other: Path) -> None:
    one, other = sp.RunFolder(one), sp.RunFolder(other)
    torch.testing.assert_close(one.weights(), other.weights(), rtol=0, atol=0)
    assert one.history() == other.history()


def test_one_part_alone_trains_like_the_plain_trainer(tmp_path: Path) -> None:
    table = make_config(tmp_path / "bert")
    plain = runner.run(table, "tags.json", tmp_path / "plain", QUIET)
    [run] = together.run({"tags": (table, "tags.json")}, tmp_path / "both", QUIET)
    check_same_runs(run, plain)
    assert sp.RunFolder.open(run).metrics() == sp.RunFolder.open(plain).metrics()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both parts, trained together."""
    folder = tmp_path_factory.mktemp("together")
    together.run(given(folder / "bert"), folder / "both", QUIET)
    return folder


def test_parts_are_ordinary_runs_with_one_encoder(trained: Path) -> None:
    tags, roles = (read_encoder(trained / "both" / part) for part in TASKS)
    assert tags.keys() == roles.keys() and len(tags) > 20
    assert all(torch.equal(tags[name], roles[name]) for name in tags)
    start = read_tensors(trained / "bert/model.safetensors")[0]
    assert not torch.equal(tags["embeddings.word_embeddings.weight"], start["embeddings.word_embeddings.weight"])
    best = [[record["best"] for record in sp.RunFolder(trained / "both" / part).history()] for part in TASKS]
    assert best[0] == best[1] and best[0][0]
    for part, item in (("tags", ["Ann", "saws"]), ("roles", {"words": ["Ann", "saws"], "predicate": 1})):
        loaded = sp.load(trained / "both" / part)
        assert len(loaded.predict([item])) == 1
        assert set(loaded.folder.metrics() or {}) >= {"validation", "test"}
        assert loaded.folder.calibration() is not None


def test_a_resumed_run_equals_an_uninterrupted_one(trained: Path, tmp_path: Path, monkeypatch) -> None:
    calls, initialise = [], loops.Together.__init__

    def initialise_and_stop(self, *args: Any, **kwargs: Any) -> None:
        initialise(self, *args, **kwargs)
        self.requests.callbacks = loops.Callbacks(stop=lambda: calls.append(1) or len(calls) == 3)

    monkeypatch.setattr(loops.Together, "__init__", initialise_and_stop)
    out = tmp_path / "both"
    with pytest.raises(Interrupted, match=r"Resume with: spen together .* --resume"):
        together.run(given(trained / "bert"), out, QUIET)
    with pytest.raises(ConfigError, match=r"is a part of spen together; resume with: spen together"):
        runner.resume(out / "tags")
    monkeypatch.undo()
    seconds = loops.Checkpoint(out / "checkpoint").load()["position"]["seconds"]
    together.resume(out, QUIET)
    for part in TASKS:
        check_same_runs(out / part, trained / "both" / part)
        assert sp.RunFolder(out / part).times()[0]["seconds"] > seconds > 0
    assert len(list((out / "checkpoint").glob("*.json"))) <= 2
    together.resume(out, QUIET)  # done: nothing happens


@pytest.mark.parametrize("files", [0, 1, 2, 3, 5])
def test_a_run_killed_before_training_resumes(trained: Path, tmp_path: Path, monkeypatch, files: int) -> None:
    """Killed while it writes the folder's first files, before any training."""
    out, replace, replaced = tmp_path / "both", Path.replace, []

    class KilledError(BaseException):
        pass

    def kill(path: Path, target: Path) -> Path:
        if len(replaced) == files:
            raise KilledError
        replaced.append(target)
        return replace(path, target)

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(Path, "replace", kill)
        together.run(given(trained / "bert"), out, QUIET)
    assert not list(out.rglob("*.safetensors"))
    if files:
        for part in TASKS:
            with pytest.raises(ConfigError, match=r"resume with: spen together|is not a run folder"):
                runner.resume(out / part)
        with pytest.raises(ConfigError, match=r"not empty.*spen together .* --resume"):
            together.run(given(trained / "bert"), out, QUIET)
        together.resume(out, QUIET)
    else:
        together.run(given(trained / "bert"), out, QUIET)
    for part in TASKS:
        check_same_runs(out / part, trained / "both" / part)


def test_a_turn_moves_its_part_and_the_encoder_by_its_own_gradient(tmp_path: Path, monkeypatch) -> None:
    """A turn's optimiser gets the gradient of its part alone, at the current weights."""
    gradients, step = [], active.ActivePhase.step

    def record_and_step(self, accelerator: Any) -> Any:
        gradients.append([None if p.grad is None else p.grad.clone() for p in self.parameters])
        return step(self, accelerator)

    monkeypatch.setattr(active.ActivePhase, "step", record_and_step)
    trainers: list[loops.Together] = []
    monkeypatch.setattr(loops.Together, "run", lambda self, resume: trainers.append(self))
    monkeypatch.setattr(together, "finish", lambda *_: None)
    together.run(given(tmp_path / "bert"), tmp_path / "both", QUIET)
    [trainer] = trainers
    for loop in trainer.loops.values():
        loop.begin(loop.stages[0])
        for module in loop.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
            elif isinstance(module, OneReading):
                module.config = module.config.model_copy(update={"dropout": 0.0})
    assert sorted(trainer.turns(0)) == ["roles"] * 5 + ["tags"] * 5
    [network] = (module for module in trainer.loops["tags"].model.modules() if isinstance(module, Transformer))
    shared = {id(parameter) for parameter in network.encoder.parameters()}
    for name in ("tags", "roles"):
        loop = trainer.loops[name]
        rows = loop.epochs.order(0)[0]
        batch = loop.task.collate([loop.train[row] for row in rows.tolist()], rows.tolist())
        loop.model.train()
        loss = -loop.model.inference_net.training_proposal(batch.x).log_prob(batch.gold)[:, 0].sum() / len(rows)
        parameters = loop.active[0].parameters
        assert shared <= {id(parameter) for parameter in parameters}
        expected_gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
        loop.run_batch(loop.stages[0], rows)
        for actual, expected in zip(gradients.pop(), expected_gradients, strict=True):
            assert (actual is None) == (expected is None)
            if actual is not None:
                torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)
        assert all(p.grad is None for other in trainer.loops.values() for p in other.model.parameters())


WRONG = {
    "energy": ({"energy": {"type": "linear_chain"}}, "spen together does not support energies"),
    "init": ({"init": {"inference_net": "runs/other"}}, "spen together does not support init"),
    "precision": ({"precision": "bf16"}, "roles: precision is bf16, but that of tags is no"),
    "epochs": ({"trainer": {"type": "cross_entropy", "epochs": 3}}, r"trainer.epochs is 3.*all.trainer.epochs=2"),
    "average": (
        {"trainer": {"type": "cross_entropy", "epochs": 2, "net": {"average": 0.9}}},
        "does not support trainer.net.average",
    ),
    "no encoder": ({"features": {"type": "bilstm"}}, "roles: found no pretrained encoders in its net"),
}


@pytest.mark.parametrize("case", WRONG)
def test_parts_that_do_not_fit_are_rejected_before_training(tmp_path: Path, case: str) -> None:
    change, message = WRONG[case]
    tables = given(tmp_path / "bert")
    tables["roles"] = ({**tables["roles"][0], **change}, "roles.json")
    with pytest.raises(ConfigError, match=message):
        together.run(tables, tmp_path / "both", QUIET)
    assert not (tmp_path / "both").exists()


def test_other_encoders_are_rejected(tmp_path: Path) -> None:
    tables = given(tmp_path / "bert")
    shutil.copytree(tmp_path / "bert", tmp_path / "other")
    tables["roles"] = (make_config(tmp_path / "other", "roles"), "roles.json")
    with pytest.raises(ConfigError, match=r"roles: its encoder's model is .*the parts share one encoder"):
        together.run(tables, tmp_path / "both", QUIET)


def test_the_command_has_arguments_of_parts_and_of_all(tmp_path: Path) -> None:
    file = tmp_path / "tags.json"
    file.write_text(json.dumps(make_config(tmp_path / "bert")))
    words = [f"a={file}", f"b={file}", "all.trainer.epochs=1", "b.trainer.batch_size=32"]
    command = ["together", str(tmp_path / "both"), *words, "--device", "cpu", "--quiet"]
    spen(*command, "c.seed=1", status=2)
    spen(*command[:2], "--resume", status=2)
    runs = [Path(line) for line in spen(*command).output.splitlines() if line]
    assert runs == [tmp_path / "both/a", tmp_path / "both/b"]
    assert [sp.RunFolder.open(run).config()["trainer"]["batch_size"] for run in runs] == [16, 32]
    assert "--resume" in spen(*command, status=2).stderr
