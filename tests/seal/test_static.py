"""SEAL-static: three stages of one trainer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from spen_plugins import RunFolder
from spen_plugins.errors import ConfigError
from spen_plugins.loop.loop import Loop
from spen_plugins.registry import Registry
from tests.loaded import experiment, trained
from tests.seal.toys import check_stopped_and_resumed

COMMON = {"features.hidden": "[16]", "energy.hidden": "8", "trainer.epochs": "2"}
SMALL = COMMON | {"trainer.energy_epochs": "2"}


def train(folder: Path, **arguments: str) -> Path:
    return trained("labels", folder, **(SMALL | arguments))


def read_weights(folder: Path, net: str) -> dict[str, torch.Tensor]:
    return {name: value for name, value in RunFolder(folder).weights().items() if name.startswith(net + ".")}


@pytest.fixture(scope="module")
def dvn(tmp_path_factory) -> Path:
    settings = {"inference_net.steps": "3", "energy_loss.descent.steps": "3"}
    return trained("labels", tmp_path_factory.mktemp("dvn") / "run", **COMMON, **settings, method="dvn")


def test_a_fixed_energy_keeps_every_bit(dvn, tmp_path):
    arguments = {"method": "static_regression", "init.energy": str(dvn), "trainer.energy_epochs": "0"}
    run = train(tmp_path / "static", **arguments)
    original, final = read_weights(dvn, "energy"), read_weights(run, "energy")
    assert original.keys() == final.keys() and all(torch.equal(original[name], final[name]) for name in original)
    assert [record["stage"] for record in RunFolder(run).history()] == ["seal", "seal"]
    assert "inference_net.energy" in RunFolder(run).history()[0]["losses"]


REJECTED = ("likelihood", "rules.imitation", "rules.expectation", "images.flow_nce")
"""Losses of other energies, of tasks with rules, and of masks."""


@pytest.mark.parametrize("loss", [name for name in Registry().names("energy_loss") if name not in REJECTED])
def test_no_loss_moves_a_fixed_energy(dvn, tmp_path, loss):
    arguments = {"method": "static_regression", "init.energy": str(dvn), "trainer.energy_epochs": "0"}
    arguments |= {"trainer.epochs": "1", "trainer.energy_dropout": "true"}
    run = train(tmp_path / "run", **arguments, energy_loss=f'{{"type": "{loss}"}}')
    original, final = read_weights(dvn, "energy"), read_weights(run, "energy")
    assert all(torch.equal(original[name], final[name]) for name in original)


@pytest.mark.parametrize("method", ["static_margin", "spen"])
def test_an_energy_does_not_learn_from_an_untrained_net_of_its_loss(tmp_path, method):
    arguments = {"energy.hidden": "8", "method": method, "energy_loss": '{"type": "seal.margin_compound"}'}
    with pytest.raises(ConfigError, match=r"CompoundMargin has its own net \(cost_net\).*'ssvm'"):
        trained("labels", tmp_path / "run", **arguments)


def test_the_energys_stage_leaves_the_net_alone_and_the_last_one_the_energy(tmp_path, monkeypatch):
    states = {}
    begin = Loop.begin

    def watch(self, stage, state=None):
        states["before " + stage.name] = {name: value.clone() for name, value in self.model.state_dict().items()}
        begin(self, stage, state)
        states[stage.name] = {name: value.clone() for name, value in self.model.state_dict().items()}

    monkeypatch.setattr(Loop, "begin", watch)
    run = train(tmp_path / "run", method="static_nce", **{"trainer.net_epochs": "2", "energy_loss.samples": "5"})

    def is_same(a, b, net):
        return all(torch.equal(states[a][name], states[b][name]) for name in states[a] if name.startswith(net))

    assert not is_same("net", "energy", "inference_net") and is_same("net", "energy", "energy")
    assert is_same("energy", "before seal", "inference_net") and not is_same("energy", "before seal", "energy")
    assert is_same("seal", "net", "inference_net")  # starts again from its initial weights
    final = RunFolder(run).weights()
    assert all(torch.equal(final[name], states["seal"][name]) for name in final if name.startswith("energy"))
    assert any(not torch.equal(final[name], states["seal"][name]) for name in final if name.startswith("inference_net"))


@pytest.mark.parametrize(("static_method", "alone_method"), [("static_nce", "nce_alone"), ("static_margin", "spen")])
def test_teaching_and_predicting_energies_are_learned_alike(tmp_path, static_method, alone_method):
    """Equal to the bit: in both, the net they learn from is fixed and has no dropout."""
    shared = {"trainer.net_epochs": "2", "trainer.net.lr": "0.01"}
    shared |= {"features.hidden": "[16, 16]", "features.dropout": "0.5", "energy.hidden": "8"}
    if alone_method == "spen":
        shared["energy_loss.descent.steps"] = "3"
    settings = {"trainer.energy_epochs": "1", "trainer.gbi.steps": "3"}
    teaching = train(tmp_path / "a", **shared | settings | {"method": static_method})
    arguments = shared | {"method": alone_method, "trainer.epochs": "1", "inference_net.steps": "3"}
    predicting = trained("labels", tmp_path / "b", **arguments)
    teaching_weights, predicting_weights = read_weights(teaching, "energy"), read_weights(predicting, "energy")
    assert teaching_weights.keys() == predicting_weights.keys() and all(
        torch.equal(teaching_weights[name], predicting_weights[name]) for name in teaching_weights
    )


def test_the_energys_epoch_is_chosen_by_its_predictions_or_its_loss(tmp_path):
    settings = {"trainer.gbi.steps": "3", "energy_loss.descent.steps": "3"}
    by_gbi = RunFolder(train(tmp_path / "a", method="static_regression", **settings)).history()
    settings = {"trainer.net_epochs": "1", "energy_loss.samples": "5"}
    by_loss = RunFolder(train(tmp_path / "b", method="static_nce", **settings)).history()
    energy = [record for record in by_gbi if record["stage"] == "energy"]
    assert len(energy) == 2 and all(0 <= record["score"] <= 1 for record in energy)
    assert all(record["score"] != record["validation"]["example_f1"] for record in energy)
    assert all(record["score"] < 0 for record in by_loss if record["stage"] == "energy")


STOPPED = {"method": "static_nce", "trainer.net_epochs": "1", "trainer.batch_size": "128", "energy_loss.samples": "3"}


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> Path:
    return train(tmp_path_factory.mktemp("whole") / "run", **STOPPED)


@pytest.mark.parametrize("stop_after", [1, 3, 9])
def test_a_resumed_static_run_ends_with_the_same_weights(reference, tmp_path, stop_after):
    """The run is stopped in the net's first stage, in the energy's, or in the net's last one."""
    assert len(RunFolder(reference).history()) == 5
    check_stopped_and_resumed(lambda folder: train(folder, **STOPPED), reference, tmp_path / "cut", stop_after)


def test_a_key_of_another_method_is_an_error():
    with pytest.raises(ConfigError, match=r"unknown key 'energy_loss\.descent'.* Known keys of energy_loss: "):
        experiment("labels", **SMALL, method="static_nce", **{"energy_loss.descent.steps": "3"})


def test_the_direct_ranking_loss_prefers_gold(tmp_path):
    arguments = {"features.hidden": "[32]", "trainer.epochs": "4", "trainer.cross_entropy_weight": "0"}
    history = RunFolder(trained("labels", tmp_path / "run", method="ranking_direct", **arguments)).history()
    losses = [record["losses"]["inference_net.ranking"] for record in history]
    assert losses[-1] < losses[0] and "inference_net.cross_entropy" not in history[0]["losses"]
