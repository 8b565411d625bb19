"""Refined outputs and their margin: closed forms, the limit K = 0, padding; the methods of the configs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import spen_plugins as sp
from spen_alen.margin import Margin
from spen_alen.refine import Refine
from spen_infnet.objectives import Margin as InfnetMargin
from spen_plugins.builtin.energies.basic import LinearChain
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.nn import margin_cost
from spen_seal.labels import Labels
from tests.seal.toys import make, proposal_for, toy

ENERGIES = {"labels": Labels, "tags": LinearChain}


class Quadratic(sp.Energy):
    """E(y) = s / 2 ‖y − c‖², with a centre for each example."""

    def __init__(self, task: sp.Task, like: torch.Tensor, s: float) -> None:
        super().__init__(sp.Config(), task)
        self.centre = torch.nn.Parameter(torch.randn_like(like[:, :1]))
        self.s = s

    def forward(self, features: object, y: torch.Tensor) -> torch.Tensor:
        return self.s / 2 * (y - self.centre).square().flatten(2).sum(-1)


def sum_terms(terms: sp.Terms) -> torch.Tensor:
    return sum(terms.values()).sum()


@pytest.mark.parametrize("cost", ["score", "l1", "mean_l1"])
@pytest.mark.parametrize("name", ENERGIES)
def test_without_steps_it_matches_the_game_of_one_cost_augmented_net(name: str, cost: str) -> None:
    task, batch = toy(name)
    energy, proposal = make(ENERGIES[name], task), proposal_for(task, batch)
    alen = make(Margin, task, cost=cost, refine={"steps": 0})
    infnet = make(InfnetMargin, task, cost=cost)
    values, gradients = [], []
    for loss in (alen, infnet):
        energy_loss = sum_terms(loss.terms(energy.at(batch.x), batch, proposal))
        net_loss = sum_terms(loss.net_terms(energy.at(batch.x), batch, proposal))
        values.append(energy_loss.detach())
        energy_gradients = torch.autograd.grad(
            energy_loss, list(energy.parameters()), retain_graph=True, allow_unused=True
        )
        gradients.append([*energy_gradients, *torch.autograd.grad(net_loss, proposal.logits, retain_graph=True)])
    torch.testing.assert_close(*values, rtol=0, atol=1e-12)
    for one, other in zip(*gradients, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("steps", [1, 3, 6])
def test_the_refined_output_of_a_quadratic_energy_is_known(steps: int) -> None:
    """In each coordinate, K projected steps from inside leave (1 − ηs)^K of the distance to the projected centre."""
    task, batch = toy("labels")
    proposal, s, lr = proposal_for(task, batch), 2.0, 0.15
    energy = Quadratic(task, batch.gold, s)
    net = Refine(Refine.Config(steps=steps, lr=lr, pick="last"), task, net=FixedNet(task, proposal))
    start, centre = proposal.mean.detach(), energy.centre.detach()
    # A clamped coordinate stays at its bound, which the unclamped path leaves in one direction only.
    expected = (centre + (1 - lr * s) ** steps * (start - centre)).clamp(0, 1)
    mean = net(batch.x, energy.at(batch.x)).mean
    torch.testing.assert_close(mean, expected.clamp(1e-4, 1 - 1e-4), rtol=0, atol=1e-12)

    # With Δ the L1 distance to gold, the centre moves by (1 − 2 gold) / s: E − Δ is quadratic inside the box.
    loss = make(Margin, task, cost="l1", refine={"steps": steps, "lr": lr, "pick": "last"})
    shifted = centre + (1 - 2 * batch.gold) / s
    expected = (shifted + (1 - lr * s) ** steps * (start - shifted)).clamp(0, 1)
    torch.testing.assert_close(loss.find_offending(energy.at(batch.x), batch, proposal), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", ["projected", "mirror", "logits"])
@pytest.mark.parametrize("name", ENERGIES)
def test_small_steps_lower_the_energy_of_every_example(name: str, method: str) -> None:
    task, batch = toy(name)
    energy, proposal = make(ENERGIES[name], task), proposal_for(task, batch)
    settings = {"steps": 5, "lr": 1e-3, "pick": "last", "method": method}
    net, bound = Refine(Refine.Config(**settings), task, net=FixedNet(task, proposal)), energy.at(batch.x)
    net.keep_iterates = True
    with torch.no_grad():
        refined = net(batch.x, bound)
        assert len(refined.iterates) == 6
        values = torch.cat([bound(y) for y in refined.iterates], 1)
    assert (values.diff(dim=1) < 0).all()
    loss = make(Margin, task, refine=settings)
    assert (loss.measures(bound, batch, proposal)["gain"] > 0).all()


def test_the_terms_are_those_of_the_three_outputs() -> None:
    task, batch = toy("labels")
    energy, proposal = make(Labels, task), proposal_for(task, batch)
    loss, bound = make(Margin, task, distance_weight=0.3, net_cost=False), energy.at(batch.x)
    refined, y = loss.find_offending(bound, batch, proposal), proposal.mean
    assert not refined.requires_grad and not torch.equal(refined, y)

    def hinge(output: torch.Tensor) -> torch.Tensor:
        cost = margin_cost(task.space, output, batch.gold, None, "score")
        return (cost - bound(output) + bound(batch.gold)).clamp(min=0)[:, 0]

    expected = (hinge(y) + hinge(refined) + hinge((y + refined) / 2)) / 3
    torch.testing.assert_close(loss.terms(bound, batch, proposal)["hinge"], expected)
    net_terms = loss.net_terms(bound, batch, proposal)
    torch.testing.assert_close(net_terms["energy"], bound(y)[:, 0])
    torch.testing.assert_close(net_terms["distance"], 0.3 * (y - refined).square().sum((1, 2)))


def test_rows_without_gold_have_no_cost() -> None:
    task, batch = toy("labels")
    energy, proposal = make(Labels, task), proposal_for(task, batch)
    loss, bound = make(Margin, task), energy.at(batch.x)
    labelled = torch.tensor([True, False, True, False])
    partial, unlabelled = replace(batch, labelled=labelled), replace(batch, gold=None)
    assert (loss.terms(bound, partial, proposal)["hinge"][~labelled] == 0).all()
    plain, mixed = loss.net_terms(bound, unlabelled, proposal), loss.net_terms(bound, partial, proposal)
    for name, term in plain.items():
        torch.testing.assert_close(mixed[name][~labelled], term[~labelled])
    assert not loss.terms(bound, unlabelled, proposal)["hinge"].any()


def test_padding_and_neighbours_do_not_matter() -> None:
    task, batch = toy("tags")
    energy, net = make(LinearChain, task), make(Independent, task)
    loss = make(Margin, task)
    batch_terms = _compute_terms(loss, energy, net, batch)
    for row, length in enumerate(batch.x.mask.sum(1).tolist()):
        inputs = {key: value[row : row + 1, :length] for key, value in batch.x.inputs.items()}
        x = sp.X(inputs, batch.x.mask[row : row + 1, :length], 1)
        single = replace(
            batch,
            x=x,
            rows=batch.rows[row : row + 1],
            gold=batch.gold[row : row + 1, :, :length],
            labelled=batch.labelled[row : row + 1],
        )
        for name, term in _compute_terms(loss, energy, net, single).items():
            torch.testing.assert_close(term[0], batch_terms[name][row], rtol=0, atol=1e-9)


def test_a_net_to_start_from_is_required() -> None:
    with pytest.raises(sp.ConfigError, match=r"alen\.refine.* requires inference_net\.net"):
        make(Refine, toy("labels")[0])


@pytest.mark.parametrize("method", ["alen", "ialen"])
def test_a_run_predicts_as_it_was_scored(method: str, tmp_path: Path) -> None:
    settings = {"trainer.epochs": 1, "trainer.warmup_epochs": 1, "features.hidden": [8]}
    sp.train("labels", method=method, out=tmp_path / "run", quiet=True, device="cpu", **settings)
    folder = sp.RunFolder.open(tmp_path / "run")
    names = folder.weights().keys()
    assert any(name.startswith("energy.") for name in names)
    sp.train("texts", method=method, out=tmp_path / "texts", quiet=True, device="cpu", **settings)
    predictor = sp.load(tmp_path / "run")
    assert type(predictor.model.inference_net).__name__ == {"alen": "Refine", "ialen": "Independent"}[method]


class FixedNet(sp.InferenceNet):
    """A net with a fixed output."""

    def __init__(self, task: sp.Task, proposal: sp.Proposal) -> None:
        super().__init__(sp.Config(), task)
        self.proposal = proposal

    def forward(self, x: sp.X, energy: sp.BoundEnergy | None = None) -> sp.Proposal:
        return self.proposal


def _compute_terms(loss: Margin, energy: sp.Energy, net: sp.InferenceNet, batch: sp.Batch) -> sp.Terms:
    bound, proposal = energy.at(batch.x), net(batch.x)
    return {**loss.terms(bound, batch, proposal), **loss.net_terms(bound, batch, proposal)}
