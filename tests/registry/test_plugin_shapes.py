"""What a component of one's own may get wrong, told where it happens: shapes, terms, stages, keys of its config."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import spen_plugins as sp
from spen_plugins.errors import ConfigError, PluginError
from spen_plugins.loop import ledger
from spen_plugins.loop.ownership import check_stages
from spen_plugins.registry.kinds import KINDS
from spen_plugins.settings.fields import validate
from tests.loop.test_loop import ToyEnergy, ToyNet, ToyTask, energy_phase, make_loop, net_phase


@pytest.fixture
def task() -> ToyTask:
    task = ToyTask(sp.Config())
    task.load()
    return task


def energy_of(shape: Any) -> type[ToyEnergy]:
    class Energy(ToyEnergy):
        def forward(self, features: Any, y: torch.Tensor) -> torch.Tensor:
            return shape(super().forward(features, y))

    return Energy


@pytest.mark.parametrize(
    "shape", [lambda e: e.unsqueeze(-1), lambda e: e.sum(), lambda e: e.mT], ids=["more", "one", "turned"]
)
def test_energies_are_a_number_an_output(task: ToyTask, shape: Any) -> None:
    batch = task.collate(task.part("train")[:3])
    energy = energy_of(shape)(sp.Config(), task)
    with pytest.raises(PluginError, match=r"^Energy gave energies of shape .* expected \(batch, sample\) = \(3, 2\)"):
        energy.at(batch.x)(torch.zeros(3, 2, 4))


def test_terms_are_a_number_an_example() -> None:
    ledger.check_terms({"a": torch.zeros(3)}, 3, "p")
    for terms, says in (
        ({}, "the loss of phase 'p' is {}; expected tensors by name, at least one"),
        (torch.zeros(3), "the loss of phase 'p' is tensor.*; expected tensors by name"),
        ({"a": 1.0}, r"loss 'a' of phase 'p': found 1\.0; expected a tensor of shape \(batch,\)"),
        (
            {"a": torch.tensor(0.0)},
            r"loss 'a' of phase 'p': found \(\); expected .* \(batch,\) = \(3,\)",
        ),
        ({"a": torch.zeros(3), "b": torch.zeros(3, 1)}, r"loss 'b' .* \(3, 1\)"),
    ):
        with pytest.raises(PluginError, match=says):
            ledger.check_terms(terms, 3, "p")


def test_a_loss_of_a_whole_batch_is_refused_in_training(task: ToyTask, tmp_path: Any) -> None:
    model = sp.Model(ToyNet(sp.Config(), task), ToyEnergy(sp.Config(), task), None)
    phase = net_phase()
    wrong = sp.Phase(**{**vars(phase), "loss": lambda context: {"ce": sum(phase.loss(context).values()).mean()}})
    with pytest.raises(PluginError, match="loss 'ce' of phase"):
        make_loop(model, task, [sp.Stage("s", (energy_phase(), wrong), 1)], tmp_path / "run").run()


@pytest.mark.parametrize(
    ("stages", "says"),
    [
        ([], "trains for no epoch: found the stages none"),
        ([("a", 0), ("b", 0)], "trains for no epoch: found the stages a, b with 0"),
        ([("a", 1), ("a", 2)], "found the stages a, a; expected a name of its own for each"),
    ],
)
def test_stages_that_train_nothing_or_share_a_name(task: ToyTask, stages: Any, says: str) -> None:
    model = sp.Model(ToyNet(sp.Config(), task), ToyEnergy(sp.Config(), task), None)
    phases = (energy_phase(), net_phase())
    with pytest.raises(ConfigError, match=says):
        check_stages(model, [sp.Stage(name, phases, epochs) for name, epochs in stages])
    check_stages(model, [sp.Stage("a", phases, 0), sp.Stage("b", phases, 1)])


@pytest.mark.parametrize("field", ["type", "features", "net"])
def test_a_field_may_not_be_called_as_a_key_of_the_table(field: str) -> None:
    config = type("Config", (sp.Config,), {"__annotations__": {field: int}, field: 1})
    energy = type("Mine", (sp.Energy,), {"Config": config, "parts": {"net": "inference_net"}})
    with pytest.raises(PluginError, match=f"Mine.Config has a field '{field}', a key that its table has already"):
        KINDS["energy"].check(energy, "energy 'mine'")


@pytest.mark.parametrize(("kind", "wrong"), [(int, "hello"), (float, float("inf"))])
def test_a_default_is_checked_as_a_value_is(kind: type, wrong: Any) -> None:
    config = type("Config", (sp.Config,), {"__annotations__": {"scale": kind}, "scale": wrong})
    with pytest.raises(ConfigError, match=r"mine\.json: 'energy\.scale': found .*; expected "):
        validate(config, {}, "energy", "mine.json")
    assert validate(config, {"scale": 2}, "energy", "mine.json").scale == 2
