"""Feature network `shared`: an energy on the inference net's vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import spen_plugins as sp
from spen_plugins.testing import check_energy
from tests.loaded import built, loaded

SHARED = {"type": "shared"}


def make_model(**tables: Any) -> tuple[sp.Task, sp.Model]:
    """The sample's labels, and a net with an energy on its vectors."""
    config = {
        "task": {"type": "multilabel", "corpus": "sample"},
        "features": {"type": "mlp", "hidden": [5], "dropout": 0.5},
        "inference_net": {"type": "independent"},
        "energy": {"type": "local", "features": SHARED},
        "trainer": {"type": "cross_entropy"},
    }
    experiment = built(config | tables)
    return experiment.task, experiment.model


def test_it_equals_an_energy_with_a_copy_of_the_features_of_the_net() -> None:
    task, model = make_model()
    _, copied = make_model(energy={"type": "local"})
    copied.energy.features.load_state_dict(model.inference_net.features.state_dict())
    copied.energy.local.load_state_dict(model.energy.local.state_dict())
    assert not [name for name, _ in model.energy.named_parameters() if "features" in name]
    batch = task.collate(task.part("train")[:7])
    energies, expected = (source.eval().energy.at(batch.x)(batch.gold) for source in (model, copied))
    torch.testing.assert_close(energies, expected)
    energies.sum().backward()
    assert all(p.grad is None for p in model.inference_net.parameters()), "the energy trains what it puts on top"
    model.inference_net.double()
    check_energy(model.energy, task)


def test_a_batch_is_read_once_until_a_weight_changes() -> None:
    task, model = make_model()
    network = model.inference_net.features
    calls: list[bool] = []
    network.register_forward_hook(lambda module, args, output: calls.append(torch.is_grad_enabled()))
    batch, other_batch = (task.collate(task.part("train")[start : start + 7]) for start in (0, 7))
    model.train()
    proposal = model.propose(batch.x)
    features = model.energy.features(batch.x)
    assert len(calls) == 1 and not features.requires_grad
    torch.testing.assert_close(features, proposal.features.detach(), rtol=0, atol=0)  # with its dropout
    assert model.energy.features(batch.x) is features
    with torch.no_grad():
        next(network.parameters()).mul_(2)
    assert model.energy.features(batch.x) is not features and calls == [True, False]
    model.energy.features(other_batch.x)
    model.eval()
    model.energy.features(other_batch.x)
    assert len(calls) == 4


@pytest.mark.parametrize("fused", [False, True])
def test_features_are_recomputed_after_a_step_of_the_net_but_not_of_the_energy(fused: bool) -> None:
    task, model = make_model()
    model.eval()
    batch = task.collate(task.part("train")[:7])
    features = model.energy.features(batch.x)
    for net, is_recomputed in ((model.energy, False), (model.inference_net, True)):
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.1, fused=fused)
        for parameter in net.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        assert (model.energy.features(batch.x) is not features) == is_recomputed
    torch.testing.assert_close(model.energy.features(batch.x), model.inference_net.features(batch.x))


@pytest.mark.parametrize(
    "tables",
    [
        {"features": SHARED, "energy": None},
        {"inference_net": {"type": "independent", "features": SHARED}},
        {"inference_net": {"type": "gbi"}, "trainer": {"type": "energy"}, "energy_loss": {"type": "ssvm"}},
    ],
    ids=["the net's own", "the net's own table", "a net without any"],
)
def test_without_a_network_of_the_net_it_is_a_config_error(tables: dict[str, Any]) -> None:
    with pytest.raises(sp.ConfigError, match="'shared' reuse those of the inference net"):
        make_model(**tables)


def test_it_is_trained_and_restored(tmp_path: Path) -> None:
    settings = {"features.hidden": [8], "energy.hidden": 4, "energy_loss.samples": 3, "trainer.epochs": 2}
    settings |= {"trainer.epoch_updates": 1, "energy.features.type": "shared"}
    sp.train("labels", out=tmp_path / "run", quiet=True, **settings)
    names = load_file(tmp_path / "run/weights.safetensors")
    assert any(name.startswith("energy.") for name in names)
    assert not any(name.startswith("energy.features.") for name in names)
    predictor = sp.load(tmp_path / "run", refine="rerank")
    batch = predictor.task.collate(loaded("multilabel", corpus="sample").part("test")[:5])
    with torch.no_grad():
        energies = predictor.energy.at(batch.x)(batch.gold)
    assert torch.isfinite(energies).all() and energies.std() > 0
