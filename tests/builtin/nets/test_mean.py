"""The inference net `mean` in a config: its nets, names and errors, and training as a mixture."""

from __future__ import annotations

import pytest
import torch

import spen_plugins as sp
from spen_plugins.builtin.nets.basic import Mean
from spen_plugins.config.experiment import parse_experiment
from spen_plugins.errors import ConfigError
from spen_plugins.registry import Registry
from spen_plugins.testing import ToyLabels
from tests.loaded import built, trained

NETS = {
    "a": {"type": "independent", "features": {"type": "mlp", "hidden": [3]}},
    "b": {"type": "independent", "features": {"type": "mlp", "hidden": [4]}},
}
CONFIG = {
    "task": {"type": "multilabel", "corpus": "sample"},
    "inference_net": {"type": "mean", "nets": NETS},
    "trainer": {"type": "cross_entropy", "epochs": 1, "batch_size": 200},
}


def test_probabilities_are_the_mean_of_the_nets() -> None:
    experiment = built(CONFIG)
    net, batch = experiment.model.inference_net.eval(), experiment.task.collate(experiment.task.part("test")[:3])
    proposals = [part(batch.x) for part in net.nets.values()]
    proposal = net(batch.x)
    torch.testing.assert_close(proposal.mean, (proposals[0].mean + proposals[1].mean) / 2)
    torch.testing.assert_close(
        proposal.log_prob(batch.gold), torch.stack([q.log_prob(batch.gold).exp() for q in proposals]).mean(0).log()
    )
    assert {name.partition(".features.")[0] for name in net.state_dict() if "features" in name} == {"nets.a", "nets.b"}


def test_a_mean_is_trained_as_a_mixture_and_stored(tmp_path) -> None:
    run = trained(CONFIG, tmp_path / "x")
    assert sp.load(run).predict([{"features": {}}])
    assert sp.RunFolder(run).config()["inference_net"]["nets"]["b"]["features"]["hidden"] == [4]


@pytest.mark.parametrize(
    ("nets", "message"),
    [
        ({}, "found no nets"),
        ({"keys": NETS["a"]}, "'keys' is not a valid module name in PyTorch"),
        ({"a": {"type": "gbi", "net": NETS["a"]}}, "nets.a: Gbi predicts with an energy"),
    ],
)
def test_nets_that_cannot_be_part_of_a_mean(nets, message) -> None:
    energy = {"type": "local", "features": NETS["a"]["features"]}
    with pytest.raises(ConfigError, match=message):
        built({**CONFIG, "inference_net": {"type": "mean", "nets": nets}, "energy": energy})


def test_a_whole_table_has_the_experiments_features() -> None:
    nets = {name: {"type": "independent"} for name in "ab"}
    config = {**CONFIG, "features": NETS["a"]["features"], "inference_net": {"type": "mean", "nets": nets}}
    node = parse_experiment(config, "test", Registry()).inference_net
    assert "features" not in node.table()["nets"]["a"]
    assert node.table(with_features=True)["nets"]["a"]["features"]["hidden"] == [3]


def test_the_mean_of_one_net_is_its_distribution() -> None:
    class Constant(sp.InferenceNet):
        def forward(self, x, energy=None):
            return proposal

    task = ToyLabels()
    proposal = task.space.independent(torch.randn(2, 1, task.space.shape[-1]))
    assert Mean(Mean.Config(), task, None, {"a": Constant(sp.Config(), task)})(None) is proposal
