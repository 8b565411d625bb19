"""Loss `likelihood` against sums over all outputs."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch

import spen_plugins as sp
from spen_plugins.builtin.energies.basic import LinearChain, Local
from spen_plugins.builtin.losses.basic import Likelihood
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.testing import ToyFeatures, ToyImages, ToyLabels, ToyTags
from spen_plugins.testing.comparing import collate
from tests.loaded import trained

ENERGIES = [(ToyLabels, Local), (ToyTags, Local), (ToyTags, LinearChain)]


def make_parts(toy, cls, n: int = 3):
    torch.manual_seed(0)
    task = toy()
    energy = cls(cls.Config(), task, ToyFeatures(task)).double().eval()
    for parameter in energy.parameters():
        parameter.data.normal_()
    return task, energy, collate(task, task.part("train")[:n])


def list_outputs(task, batch, row: int) -> torch.Tensor:
    """Every discrete y of one row, `(1, output, *variables)`, zero on padding."""
    shape = batch.gold.shape[2:]
    if len(shape) == 1:
        return torch.tensor(list(itertools.product((0.0, 1.0), repeat=shape[0])), dtype=torch.double).unsqueeze(0)
    length = int(batch.x.mask[row].sum())
    tags = torch.tensor(list(itertools.product(range(shape[1]), repeat=length)))
    y = torch.zeros(len(tags), *shape, dtype=torch.double)
    y[:, :length] = torch.nn.functional.one_hot(tags, shape[1]).double()
    return y.unsqueeze(0)


def enumerate_energies(task, energy, batch):
    """Yields each row with all its outputs and their energies."""
    for row in range(len(batch)):
        y = list_outputs(task, batch, row)
        yield row, y, energy.at(batch.x)(y.expand(len(batch), *y.shape[1:]))[row]


@pytest.mark.parametrize(("toy", "cls"), ENERGIES)
def test_the_energy_learns_minus_ln_p(toy, cls) -> None:
    task, energy, batch = make_parts(toy, cls)
    net = Independent(Independent.Config(), task, ToyFeatures(task)).double()
    bound = energy.at(batch.x)
    losses = Likelihood(Likelihood.Config(), task)(bound, batch, net(batch.x))
    for row, y, energies in enumerate_energies(task, energy, batch):
        gold = (y[0] == batch.gold[row]).flatten(1).all(1)
        assert gold.sum() == 1
        torch.testing.assert_close(losses[row], -torch.log_softmax(-energies, 0)[gold][0])


@pytest.mark.parametrize(("toy", "cls"), ENERGIES)
def test_the_net_learns_the_divergence_from_p(toy, cls) -> None:
    task, energy, batch = make_parts(toy, cls)
    net = Independent(Independent.Config(), task, ToyFeatures(task)).double()
    bound, proposal = energy.at(batch.x), net(batch.x)
    terms = Likelihood(Likelihood.Config(), task).net_terms(bound, batch, proposal)
    divergences = sum(terms.values()) + bound.log_z()
    for row, y, energies in enumerate_energies(task, energy, batch):
        log_q = proposal.log_prob(y.expand(len(batch), *y.shape[1:]))[row]
        log_p = torch.log_softmax(-energies, 0)
        torch.testing.assert_close(divergences[row], (log_q.exp() * (log_q - log_p)).sum())
        torch.testing.assert_close(log_q.exp().sum(), torch.ones((), dtype=torch.double))


@pytest.mark.parametrize(("toy", "cls"), ENERGIES)
def test_marginals_are_over_all_outputs_and_the_net_learns_them(toy, cls) -> None:
    task, energy, batch = make_parts(toy, cls)
    net = Independent(Independent.Config(), task, ToyFeatures(task)).double()
    bound, proposal = energy.at(batch.x), net(batch.x)
    terms = Likelihood(Likelihood.Config(marginals=True), task).net_terms(bound, batch, proposal)
    for row, y, energies in enumerate_energies(task, energy, batch):
        p = torch.softmax(-energies, 0)
        torch.testing.assert_close(bound.marginals()[row, 0], torch.einsum("n,n...->...", p, y[0]))
        log_q = proposal.log_prob(y.expand(len(batch), *y.shape[1:]))[row]
        torch.testing.assert_close(terms["distillation"][row], -(p * log_q).sum())


def test_without_entropy_the_net_minimises_the_energy() -> None:
    task, energy, batch = make_parts(ToyTags, LinearChain)
    proposal = Independent(Independent.Config(), task, ToyFeatures(task)).double()(batch.x)
    bound = energy.at(batch.x)
    terms = Likelihood(Likelihood.Config(entropy=0.0), task).net_terms(bound, batch, proposal)
    assert terms.keys() == {"energy"}
    torch.testing.assert_close(terms["energy"], bound(proposal.mean)[:, 0])


def test_energies_without_ln_z_and_real_outputs_are_rejected() -> None:
    class Other(sp.Energy):
        def forward(self, features, y):
            return y.flatten(2).sum(-1)

    task = ToyTags()
    batch = task.collate(task.part("train")[:2])
    with pytest.raises(sp.ConfigError, match="Other has no closed-form sum over all outputs"):
        Other(sp.Config(), task).at(batch.x).log_z()
    with pytest.raises(sp.ConfigError, match="Other has no closed-form marginals"):
        Other(sp.Config(), task).at(batch.x).marginals()
    with pytest.raises(sp.ConfigError, match="requires label sets or tag sequences"):
        Likelihood(Likelihood.Config(), ToyImages())


def test_ln_z_keeps_full_precision_under_autocast() -> None:
    _, energy, batch = make_parts(ToyTags, LinearChain)
    energy.float()
    energy.pairs.data *= 20
    y = batch.gold.float()
    exact = energy.at(batch.x).log_z(), energy.at(batch.x)(y)
    bound = energy.at(batch.x)
    scores = bound.features
    with torch.autocast("cpu", torch.float16):
        torch.testing.assert_close(energy.log_z(scores), exact[0])
        torch.testing.assert_close(energy(scores, y), exact[1])


@pytest.mark.parametrize(
    ("config", "settings", "message"),
    [
        ("names", {"energy": "skip_chain"}, r"Sum has no closed-form sum over all outputs; .* requires.* linear_chain"),
        ("srl_seal", {"energy": "self_attention"}, "SelfAttention has no closed-form sum over all outputs"),
        ("srl_seal", {"energy.features.type": "shared"}, "would change the fixed energy"),
    ],
)
def test_energies_that_cannot_teach_are_rejected_before_training(config, settings, message, tmp_path: Path) -> None:
    with pytest.raises(sp.ConfigError, match=message):
        trained(config, tmp_path / "run", method="static_crf", **settings)
    assert not (tmp_path / "run" / "history.jsonl").exists()


def test_a_crf_teaches_and_its_weights_stay_the_same_where_it_is_fixed(tmp_path: Path) -> None:
    settings = {"method": "static_crf", "trainer.epochs": "1", "trainer.energy_epochs": "1", "features.hidden": "8"}
    for config in ("srl_seal", "names"):
        first = trained(config, tmp_path / config, **settings)
        learning, teaching = sp.RunFolder(first).history()
        assert (learning["stage"], teaching["stage"]) == ("energy", "seal")
        assert {f"inference_net.{name}" for name in ("energy", "entropy", "cross_entropy")} <= teaching["losses"].keys()
    settings |= {"init.energy": str(first), "trainer.energy_epochs": "0", "trainer.energy_dropout": "true"}
    second = trained("names", tmp_path / "second", **settings)
    first_weights, second_weights = (sp.RunFolder(folder).weights() for folder in (first, second))
    energies = [name for name in first_weights if name.startswith("energy.")]
    assert energies and all(torch.equal(first_weights[name], second_weights[name]) for name in energies)
    assert [stage["stage"] for stage in sp.RunFolder(second).history()] == ["seal"]
