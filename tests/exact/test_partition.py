"""The loss with a net for ln Z, and estimates of likelihoods, against sums over all outputs."""

from __future__ import annotations

import itertools
import json
import math
from unittest.mock import patch

import pytest
import torch

import spen_plugins as sp
from spen_exact.partition import Partition, _extend_exp
from spen_plugins.builtin.energies.basic import LinearChain
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.loop.evaluation import average_likelihoods
from spen_plugins.nn import effective_samples, estimate_likelihoods, log_weights
from spen_plugins.report.compare import compare
from spen_plugins.report.tables import caption, cells, latex
from spen_plugins.runs.many.groups import read_groups
from spen_plugins.runs.predict.own_data import load_own_data
from spen_plugins.testing import ToyLabels, ToyTags
from spen_seal.dynamic import Dynamic
from spen_seal.labels import Labels
from spen_seal.static import Static
from tests.loaded import experiment, trained
from tests.seal.toys import Table, batch_of, make, proposal_for

LABELS = 4
SETS = torch.tensor(list(itertools.product([0.0, 1.0], repeat=LABELS)), dtype=torch.float64)


class EverySet(type(ToyLabels().space.independent(torch.zeros(1, 1, 1)))):
    """Independent labels whose samples are all label sets, each once: means over them are expectations of p = 1/2."""

    def sample(self, n: int) -> torch.Tensor:
        return SETS.expand(len(self.logits), -1, -1)


@pytest.fixture
def case():
    """A batch, any energy over its label sets, a uniform net, and ln Z."""
    torch.manual_seed(0)
    task = ToyLabels(labels=LABELS)
    batch, energy = batch_of(task, 3), Table(task, 3)
    bound = energy.at(batch.x)
    uniform = EverySet(task.space, torch.zeros(3, 1, LABELS, dtype=torch.float64))
    return task, batch, bound, uniform, (-bound(SETS.expand(3, -1, -1))).logsumexp(1)


def test_the_loss_is_an_upper_bound_that_is_tight_at_the_log_partition_function(case):
    task, batch, bound, uniform, log_z = case
    loss = make(Partition, task, samples=len(SETS))
    for shift in (0.0, 0.3, -0.7):
        with patch.object(Partition, "_compute_tau", lambda *_, shift=shift: log_z + shift):
            losses = sum(loss.terms(bound, batch, uniform).values())
        expected = bound(batch.gold)[:, 0] + log_z + shift + math.exp(-shift) - 1
        torch.testing.assert_close(losses, expected, rtol=0, atol=1e-12)


def test_its_gradient_at_the_log_partition_function_is_that_of_the_likelihood(case):
    task, batch, bound, uniform, log_z = case
    loss, table = make(Partition, task, samples=len(SETS)), bound.energy.table
    with patch.object(Partition, "_compute_tau", lambda *_: log_z.detach()):
        [gradient] = torch.autograd.grad(sum(loss.terms(bound, batch, uniform).values()).sum(), table)
    [expected] = torch.autograd.grad((bound(batch.gold)[:, 0] + log_z).sum(), table)
    torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-12)


def test_likelihoods_of_all_outputs_are_exact(case):
    _, batch, bound, uniform, log_z = case
    with patch("spen_plugins.nn.losses.SAMPLES", len(SETS)), patch("spen_plugins.nn.losses.TEMPERATURES", (1.0,)):
        likelihoods = estimate_likelihoods(bound, batch, uniform)
    torch.testing.assert_close(likelihoods["energy"], bound(batch.gold)[:, 0] + log_z, rtol=0, atol=1e-12)
    weights = torch.softmax(-bound(SETS.expand(3, -1, -1)), 1)
    torch.testing.assert_close(likelihoods["energy_ess"], 1 / weights.square().sum(1))
    uniform_weights = torch.zeros(2, 7, dtype=torch.float64)
    torch.testing.assert_close(effective_samples(uniform_weights), torch.full((2,), 7.0, dtype=torch.float64))


def test_weights_do_not_depend_on_how_many_are_drawn_at_once(case):
    _, _, bound, uniform, _ = case
    with patch("spen_plugins.nn.losses.AT_ONCE", 1):
        chunks = log_weights(bound, uniform, 2)
    torch.testing.assert_close(chunks, log_weights(bound, uniform, 1).repeat(1, 2))


def test_above_the_clip_the_exponential_continues_as_its_tangent():
    exponent = torch.tensor([-1.0, 2.0, 4.0], dtype=torch.float64, requires_grad=True)
    value = _extend_exp(exponent, 2.0)
    assert value.tolist() == pytest.approx([math.exp(-1), math.exp(2), 3 * math.exp(2)])
    [slope] = torch.autograd.grad(value.sum(), exponent)
    assert slope.tolist() == pytest.approx([math.exp(-1), math.exp(2), math.exp(2)])


@pytest.mark.parametrize(("toy", "energy"), [(ToyLabels, Labels), (ToyTags, LinearChain)])
def test_tau_starts_at_the_estimate_of_the_first_batch(toy, energy):
    task = toy()
    batch = batch_of(task)
    bound, proposal = make(energy, task).at(batch.x), proposal_for(task, batch).detach()
    loss = make(Partition, task, samples=20)
    torch.manual_seed(1)
    estimates = log_weights(bound, proposal, 20).logsumexp(1) - math.log(20)
    loss.train()
    torch.manual_seed(1)
    tau = loss.terms(bound, batch, proposal)["gold"] - bound(batch.gold)[:, 0]
    assert tau.mean().item() == pytest.approx(estimates.mean().item())
    torch.testing.assert_close(loss.terms(bound, batch, proposal)["gold"] - bound(batch.gold)[:, 0], tau)


def test_autocast_does_not_round_tau():
    task = ToyLabels()
    batch, loss = task.collate(task.part("train")[:4]), make(Partition, task).float()
    loss.started.fill_(True)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        loss.output.bias.fill_(67.3)
        tau = loss._compute_tau(batch, torch.zeros(len(batch), 1))
    torch.testing.assert_close(tau, torch.full_like(tau, 67.3))


def test_the_energys_player_trains_the_net_for_the_partition_function():
    task = ToyLabels(labels=LABELS)
    model = sp.Model(make(Independent, task), Table(task, 3), make(Partition, task))
    [stage] = Dynamic(Dynamic.Config(epochs=1)).stages(model, task)
    energy, net = stage.phases
    assert energy.trains == ("energy", "energy_loss") and net.trains == ("inference_net",) and not stage.frozen
    stages = Static(Static.Config(energy_epochs=1, select="loss")).stages(model, task)
    assert [s.name for s in stages] == ["energy", "seal"]
    assert stages[0].phases[0].trains == ("energy", "energy_loss")
    assert set(stages[1].frozen) == {"energy", "energy_loss"}
    with pytest.raises(sp.ConfigError, match="has no cost-augmented net"):
        sp.cost_net_phase(model, sp.Player())


def test_a_finished_run_has_the_negative_log_likelihood_of_gold(tmp_path):
    run = trained("labels", tmp_path / "run", method="nce", **{"trainer.epochs": "1"})
    nll = json.loads((run / "metrics.json").read_text())["test"]["nll"]
    assert set(nll) == {"net", "energy", "energy_ess"} and 1 <= nll["energy_ess"] <= 300
    predictor = sp.load(run)
    examples = load_own_data(predictor.experiment, predictor.folder, "").part("test")
    batch = predictor.task.collate(examples)
    with torch.no_grad():
        expected = -predictor.model.propose(batch.x).log_prob(batch.gold).mean().item()
    assert nll["net"] == pytest.approx(expected, rel=1e-5)


def test_tables_show_likelihoods_in_nats_and_the_lowest_in_bold(tmp_path):
    runs = []
    for name, nll, ess in (("a", 12.5, 3.0), ("b", 9.25, 60.0)):
        run = trained("labels", tmp_path / name, method="cross_entropy", **{"trainer.epochs": "1"})
        metrics = json.loads((run / "metrics.json").read_text())
        metrics["test"]["nll"] = {"net": nll, "energy_ess": ess}
        (run / "metrics.json").write_text(json.dumps(metrics))
        runs.append(str(run))
    comparison = compare(read_groups(runs), scores=["example_f1", "nll.net", "nll.energy_ess"])
    assert [row[2] for row in cells(comparison)] == ["12.50", "9.25"] and "nll in nats" in caption(comparison)
    assert r"\mathbf{9.25}" in latex(comparison) and r"\mathbf{60.00}" in latex(comparison)


def test_impossible_gold_is_counted_separately():
    values = {"net": torch.tensor([1.0, torch.inf]), "energy": torch.tensor([2.0, 4.0])}
    assert average_likelihoods([values]) == {"net": 1.0, "net_impossible": 0.5, "energy": 3.0}
    assert average_likelihoods([{"net": torch.tensor([torch.inf])}]) == {"net_impossible": 1.0}
    assert math.isnan(average_likelihoods([{"net": torch.tensor([torch.nan, 1.0])}])["net"])
    assert average_likelihoods([]) == {}


def test_the_method_uses_the_settings_of_nce():
    partition, nce = (experiment("labels", data="bibtex", method=method) for method in ("partition", "nce"))
    assert partition["energy_loss"]["type"] == "exact.partition" and partition["trainer"] == nce["trainer"]
