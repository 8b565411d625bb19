"""The energy's weight by its share of the gradient at the net's output."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

import spen_plugins as sp
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.trainer import OneBatch
from spen_seal.contrast import Nce
from spen_seal.dynamic import Dynamic
from spen_seal.labels import Labels
from spen_seal.net import LARGEST, SharedLoss
from tests.loaded import trained
from tests.seal.toys import batch_of, check_stopped_and_resumed, make, toy


def contexts(factor: float = 1.0, batches: int = 3) -> list[OneBatch]:
    torch.manual_seed(0)
    task, _ = toy("labels")
    model = sp.Model(make(Independent, task), make(Labels, task, hidden=3), make(Nce, task))
    inner = model.energy
    context = [OneBatch(model, batch_of(task, n)) for n in range(4, 4 - batches, -1)]
    for one in context:
        bound = inner.at(one.batch.x)
        one.__dict__["energy"] = lambda y, bound=bound: factor * bound(y)
    return context


def norms(terms: sp.Terms, context: OneBatch) -> tuple[float, float]:
    """Of the energy's and cross entropy's gradients at the logits."""
    logits = [context.proposal.logits]
    found = [torch.autograd.grad(terms[n].sum(), logits, retain_graph=True)[0] for n in ("energy", "cross_entropy")]
    return tuple(float(gradient.norm()) for gradient in found)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_the_first_update_has_the_share_itself(share: float) -> None:
    [context, *_] = contexts()
    energy, gold = norms(SharedLoss(share, 2.0, False)(context), context)
    assert energy / (energy + gold) == pytest.approx(share)


def test_later_updates_have_the_ratio_of_running_means() -> None:
    loss, seen = SharedLoss(0.5, 1.0, False), []
    for context in contexts():
        weight_before = loss.energy_weight
        energy, gold = norms(loss(context), context)
        seen.append((energy / loss.energy_weight, gold))
        assert loss.energy_weight != weight_before
    weights = torch.tensor([0.98**2, 0.98, 1.0], dtype=torch.float64)
    energies, golds = torch.tensor(seen, dtype=torch.float64).T
    wanted = float((weights @ golds) / (weights @ energies))
    assert loss.energy_weight == pytest.approx(wanted)
    assert loss.measures(context)["energy_weight"].tolist() == pytest.approx([wanted])


def test_the_scale_of_the_energy_does_not_matter() -> None:
    ours, theirs = SharedLoss(0.3, 1.0, False), SharedLoss(0.3, 1.0, False)
    for one, other in zip(contexts(), contexts(1000.0), strict=True):
        mine, yours = ours(one), theirs(other)
        assert mine.keys() == yours.keys()
        for name in mine:
            torch.testing.assert_close(mine[name], yours[name], rtol=1e-9, atol=1e-12)
    assert ours.energy_weight == pytest.approx(1000 * theirs.energy_weight)


def test_an_energy_without_a_gradient_has_a_finite_weight() -> None:
    [context, *_] = contexts(0.0)
    loss = SharedLoss(0.5, 1.0, False)
    terms = loss(context)
    assert loss.energy_weight == LARGEST
    assert not terms["energy"].any() and terms["cross_entropy"].all()


def test_an_energy_that_rests_keeps_its_scale() -> None:
    loss = SharedLoss(0.5, 1.0, False)
    for context in contexts():
        loss(context)
    before = loss.state_dict()["means"]
    resting = contexts(0.0)[0]
    for _ in range(100):
        loss(resting)
    assert loss.state_dict()["means"][1] == before[1] > 0
    late = SharedLoss(0.5, 1.0, False)
    for _ in range(100):
        late(resting)
    late(contexts()[0])
    first = SharedLoss(0.5, 1.0, False)
    first(contexts()[0])
    assert late.state_dict()["means"][1] == first.state_dict()["means"][1]


def test_validation_does_not_move_the_means() -> None:
    [context, *_] = contexts()
    context.training = False
    loss = SharedLoss(0.5, 1.0, False)
    loss(context)
    assert loss.energy_weight == 0.0 and loss.state_dict() == {"means": [0.0, 0.0], "seen": 0}


def test_a_share_needs_something_beside_the_energy() -> None:
    with pytest.raises(ValidationError, match="requires a cross_entropy_weight above 0"):
        Dynamic.Config(energy_share=0.5, cross_entropy_weight=0)
    for wrong in (0, 1, -0.5):
        with pytest.raises(ValidationError, match="energy_share"):
            Dynamic.Config(energy_share=wrong)


SMALL = {
    "features.hidden": "[24]",
    "energy.hidden": "8",
    "energy_loss.samples": "3",
    "trainer.epochs": "2",
    "trainer.batch_size": "128",
    "trainer.energy_share": "0.5",
    "trainer.gradient_norms_every": "1",
}


def train(folder: Path, **others: str) -> Path:
    return trained("labels", folder, **SMALL, **others)


@pytest.mark.parametrize("method", ["nce", "static_nce"])
def test_a_stopped_run_goes_on_with_the_same_weight(tmp_path: Path, method: str) -> None:
    others = {"method": method} | (
        {"trainer.net_epochs": "1", "trainer.energy_epochs": "1"} if "static" in method else {}
    )
    whole = train(tmp_path / "whole", **others)
    records = sp.RunFolder(whole).history()
    first = next(number for number, record in enumerate(records) if record["stage"] == "seal")
    batches = records[first]["updates"]["inference_net"]
    at = batches * first + 2  # in the first epoch of the stage with the energy
    check_stopped_and_resumed(lambda folder: train(folder, **others), whole, tmp_path / "cut", at)
    assert records[-1]["measures"]["inference_net.energy_weight"] > 0 and records[-1]["stage"] == "seal"


def test_parts_of_a_batch_are_refused(tmp_path: Path) -> None:
    with pytest.raises(sp.ConfigError, match="requires accumulate=1 and one process"):
        train(tmp_path / "run", method="nce", **{"trainer.accumulate": "2"})
