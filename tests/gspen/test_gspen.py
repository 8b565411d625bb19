"""Beliefs of a star against enumeration, mirror ascent against its fixed point, the gap, the stages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import spen_plugins as sp
from spen_gspen.beliefs import Beliefs
from spen_gspen.energy import StarGraph
from spen_gspen.gap import Gap
from spen_gspen.mirror import Mirror, MirrorNet, find_beliefs
from spen_gspen.staged import Staged
from spen_plugins.builtin.energies.basic import Local
from spen_plugins.builtin.losses.basic import Ssvm
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.nn import Star, StarLabels
from spen_plugins.testing import ToyLabels, ToyTags, check_energy, check_energy_loss, check_inference_net, check_trainer
from tests.exact.toys import all_sets
from tests.seal.toys import batch_of, make


def make_star(labels: int, hubs: list[int], scale: float = 1.5) -> Star:
    torch.manual_seed(labels)
    scores = scale * torch.randn(3, labels, dtype=torch.double)
    return Star(scores, scale * torch.randn(3, len(hubs), labels, dtype=torch.double), torch.tensor(hubs))


def make_energy(labels: int = 6, scale: float = 1.0, global_scale: float = 1.0, **fields: object) -> StarGraph:
    """An energy whose pairs and global term are not 0."""
    torch.manual_seed(0)
    energy = make(StarGraph, ToyLabels(labels=labels), **{"hidden": 5, "pair_hidden": 4, **fields})
    with torch.no_grad():
        energy.pairs[-1].weight.normal_(std=scale)
        energy.v.normal_(std=global_scale)
    return energy


@pytest.mark.parametrize(("labels", "hubs"), [(1, [0]), (5, [2]), (10, [7]), (6, [4, 1])])
def test_beliefs_are_those_of_all_sets(labels: int, hubs: list[int]) -> None:
    star, y = make_star(labels, hubs), all_sets(labels)
    beliefs, sets = Beliefs(star), y.expand(3, -1, -1)
    log_p = star.score(sets).log_softmax(1)
    p = log_p.exp()
    torch.testing.assert_close(star.log_z(), star.score(sets).logsumexp(1), rtol=0, atol=1e-12)
    torch.testing.assert_close(beliefs.labels, p @ y, rtol=0, atol=1e-12)
    for h, hub in enumerate(hubs):
        torch.testing.assert_close(beliefs.pairs[:, h], p @ (y * y[:, hub : hub + 1]), rtol=0, atol=1e-12)
    torch.testing.assert_close(beliefs.entropy(), -(p * log_p).sum(1), rtol=0, atol=1e-12)
    other = Star(star.scores.flip(0), star.pairs.flip(0) * 2, star.hubs)
    torch.testing.assert_close(beliefs.expect(other), (p * other.score(sets)).sum(1), rtol=0, atol=1e-12)


def test_autocast_does_not_change_beliefs() -> None:
    star = make_star(60, [4, 1], scale=1.0)
    star = Star(star.scores.float(), star.pairs.float(), star.hubs)
    fresh, beliefs = replace(star), Beliefs(star)
    expected = beliefs.labels, beliefs.pairs, beliefs.entropy()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        beliefs = Beliefs(fresh)
        for values, expected_values in zip((beliefs.labels, beliefs.pairs, beliefs.entropy()), expected, strict=True):
            torch.testing.assert_close(values, expected_values)


def test_the_energy_of_a_label_set_is_that_of_its_beliefs() -> None:
    energy, y = make_energy(), all_sets(6)
    potentials = energy.at(batch_of(ToyLabels(labels=6), 3).x).features
    for output in (y[5], y[62]):
        certain = Star((2 * output - 1).expand(3, -1) * 300, torch.zeros_like(potentials.pairs), energy.hubs)
        value = energy(potentials, output.expand(3, 1, -1))[:, 0]
        torch.testing.assert_close(energy.belief_energy(potentials, Beliefs(certain)), value, rtol=0, atol=1e-9)


def test_the_slope_of_the_global_term_is_its_gradient() -> None:
    energy = make_energy()
    y = torch.rand(4, 6, dtype=torch.double, requires_grad=True)
    [gradient] = torch.autograd.grad(energy.score_globally(y).sum(), y)
    torch.testing.assert_close(energy.global_slope(y), gradient, rtol=0, atol=1e-12)


@pytest.mark.parametrize("entropy", [0.5, 1.0, 2.0])
def test_the_end_of_the_ascent_is_a_fixed_point(entropy: float) -> None:
    energy = make_energy(entropy=entropy)
    potentials = energy.at(batch_of(ToyLabels(labels=6)).x).features
    last = find_beliefs(energy, potentials, Mirror(steps=400, rate=0.3, decayed=False))[-1]
    slope = energy.global_slope(Beliefs(last).labels)
    torch.testing.assert_close(last.scores, (potentials.scores + slope) / entropy, rtol=0, atol=1e-8)
    torch.testing.assert_close(last.pairs, potentials.pairs / entropy, rtol=0, atol=1e-12)


@pytest.mark.parametrize("entropy", [0.3, 1.0])
def test_small_steps_never_raise_the_energy(entropy: float) -> None:
    """With η ≤ 1 / (ε + L), L the Lipschitz constant of ∇T in the geometry of the entropy; here L ≤ 1/4 Σ |v| ‖M‖²."""
    energy = make_energy(entropy=entropy, global_scale=3.0)
    potentials = energy.at(batch_of(ToyLabels(labels=6)).x).features
    bound = float((energy.v.detach().abs() * energy.measure.weight.detach().abs().sum(1).square()).sum() / 4)
    rate = entropy / (entropy + bound)
    path = find_beliefs(energy, potentials, Mirror(steps=50, rate=rate, decayed=False))
    values = torch.stack([energy.belief_energy(potentials, Beliefs(star)) for star in path])
    assert (values.diff(dim=0) <= 1e-10).all() and (values[-1] < values[0]).all()


def test_without_a_global_term_the_start_is_exact() -> None:
    """It is the star's distribution, and the loss is its likelihood; a cost shifts the scores by Δ."""
    task = ToyLabels(labels=6)
    energy, batch, y = make_energy(global_scale=0.0), batch_of(task), all_sets(6)
    potentials = energy.at(batch.x).features
    proposal = make(MirrorNet, task)(batch.x, energy.at(batch.x))
    assert isinstance(proposal, StarLabels)
    sets = y.expand(4, -1, -1)
    torch.testing.assert_close(
        proposal.log_prob(sets), potentials.score(sets).log_softmax(1).detach(), rtol=0, atol=1e-12
    )
    loss, gold = make(Gap, task), batch.gold
    values = potentials.score(sets)
    gold_score = potentials.score(gold)[:, 0]
    torch.testing.assert_close(loss.gap(energy.at(batch.x), batch, 0.0), values.logsumexp(1) - gold_score)
    distance = (sets - gold).abs().sum(2)
    for cost in (1.0, 2.5):
        expected = (values + cost * distance).logsumexp(1) - gold_score
        torch.testing.assert_close(loss.gap(energy.at(batch.x), batch, cost), expected)
        torch.testing.assert_close(make(Gap, task, cost=cost)(energy.at(batch.x), batch, proposal), expected)


def test_the_gradient_is_that_of_the_least_augmented_energy() -> None:
    """Danskin's theorem, by finite differences of a loss that repeats its search."""
    task = ToyLabels(labels=5)
    energy, batch = make_energy(labels=5, entropy=0.7), batch_of(task)
    loss = make(Gap, task, mirror={"steps": 300, "rate": 0.5, "decayed": False})
    parameters = [energy.local.weight, energy.pairs[-1].weight, energy.measure.weight, energy.v]

    def value() -> torch.Tensor:
        return loss(energy.at(batch.x), batch, None).sum()

    gradients = torch.autograd.grad(value(), parameters)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        direction, size = torch.randn_like(parameter), 1e-5
        with torch.no_grad():
            parameter += size * direction
            above = value()
            parameter -= 2 * size * direction
            below = value()
            parameter += size * direction
        torch.testing.assert_close((gradient * direction).sum(), (above - below) / (2 * size), rtol=1e-6, atol=1e-7)


def test_rows_without_gold_have_no_loss() -> None:
    task = ToyLabels(labels=6)
    energy, batch, loss = make_energy(), batch_of(task), make(Gap, task)
    labelled = torch.tensor([True, False, True, False])
    losses = loss(energy.at(batch.x), batch, None)
    partial_losses = loss(energy.at(batch.x), replace(batch, labelled=labelled), None)
    torch.testing.assert_close(partial_losses, losses * labelled)
    assert not loss(energy.at(batch.x), replace(batch, gold=None), None).any()


def test_a_proposal_keeps_its_path() -> None:
    task = ToyLabels(labels=6)
    energy, batch, net = make_energy(), batch_of(task), make(MirrorNet, task, steps=3)
    net.keep_iterates = True
    proposal = net(batch.x, energy.at(batch.x))
    assert len(proposal.iterates) == 4
    torch.testing.assert_close(proposal.iterates[-1], proposal.mean)
    scores = energy.at(batch.x).features.scores
    torch.testing.assert_close(net.training_proposal(batch.x, energy.at(batch.x)).logits[:, 0], scores)


def test_hubs_have_names() -> None:
    task = ToyLabels(labels=6)
    names = task.space.labels
    assert make(StarGraph, task, hubs=[names[4], names[1]]).hubs.tolist() == [4, 1]
    for hubs, message in (
        (["label_4"], "unknown label 'label_4'. Did you mean 'label4'"),
        ([names[1], names[1]], "twice; expected each label once"),
    ):
        with pytest.raises(sp.ConfigError, match=message):
            make(StarGraph, task, hubs=hubs)


def test_the_contract() -> None:
    for hubs in (1, 2):
        task = ToyLabels(labels=6)
        check_energy(make_energy(hubs=hubs), task)
        check_inference_net(make(MirrorNet, task), task, make_energy(hubs=hubs))
        check_energy_loss(make(Gap, task), make_energy(hubs=hubs), make(Independent, task), task)
        model = sp.Model(make(MirrorNet, task), make_energy(hubs=hubs), make(Gap, task))
        check_trainer(Staged(Staged.Config()), model, task)
    for cls in (StarGraph, MirrorNet, Gap):
        with pytest.raises(sp.ConfigError, match=r"requires label sets"):
            make(cls, ToyTags())


def test_a_stage_continues_from_the_previous_one() -> None:
    task = ToyLabels(labels=6)
    model = sp.Model(make(MirrorNet, task), make_energy(), make(Gap, task))
    stages = Staged(Staged.Config(net_epochs=2, global_epochs=3, epochs=4)).stages(model, task)
    assert [(stage.name, stage.epochs, stage.goes_on) for stage in stages] == [
        ("labels", 2, False),
        ("global", 3, True),
        ("pairs", 4, True),
    ]
    stages = Staged(Staged.Config(net_epochs=0, global_epochs=0)).stages(model, task)
    assert [(stage.name, stage.goes_on) for stage in stages] == [("pairs", False)]


def test_parts_of_other_methods_are_an_error() -> None:
    task = ToyLabels(labels=6)
    other, batch = make(Local, task), batch_of(task)
    for call in (make(MirrorNet, task), make(MirrorNet, task).training_proposal):
        with pytest.raises(sp.ConfigError, match=r"requires energy 'gspen\.star'; found Local"):
            call(batch.x, other.at(batch.x))
        with pytest.raises(sp.ConfigError, match=r"found no energy\. Set energy\.type to 'gspen\.star'"):
            call(batch.x)
    with pytest.raises(sp.ConfigError, match=r"requires energy 'gspen\.star'; found Local"):
        make(Gap, task)(other.at(batch.x), batch, None)
    model = sp.Model(make(MirrorNet, task), make_energy(), make(Ssvm, task))
    with pytest.raises(sp.ConfigError, match=r"found StarGraph, Ssvm, MirrorNet"):
        Staged(Staged.Config()).stages(model, task)


@pytest.mark.parametrize("config", ["labels", "texts"])
def test_a_run_predicts_as_it_was_scored(config: str, tmp_path: Path) -> None:
    epochs = {f"trainer.{name}": 1 for name in ("epochs", "net_epochs", "global_epochs")}
    settings = {"task.decode": "expected_f1", **epochs}
    sp.train(config, method="gspen", out=tmp_path / "run", quiet=True, device="cpu", **settings)
    folder, predictor = sp.RunFolder.open(tmp_path / "run"), sp.load(tmp_path / "run")
    assert predictor.model.energy.hubs.tolist() == folder.weights()["energy.hubs"].tolist()
    assert "under the exact law" in folder.metrics()["protocol"]["threshold"]
