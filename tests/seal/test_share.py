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


def make_contexts(factor: float = 1.0, batches: int = 3) -> list[OneBatch]:
    torch.manual_seed(0)
    task, _ = toy("labels")
    model = sp.Model(make(Independent, task), make(Labels, task, hidden=3), make(Nce, task))
    inner = model.energy
    contexts = [OneBatch(model, batch_of(task, n)) for n in range(4, 4 - batches, -1)]
    for context in contexts:
        bound = inner.at(context.batch.x)
        context.__dict__["energy"] = lambda y, bound=bound: factor * bound(y)
    return contexts


def compute_norms(terms: sp.Terms, context: OneBatch) -> tuple[float, float]:
    """Norms of the energy's and cross entropy's gradients at the logits."""
    logits = [context.proposal.logits]
    gradients = [torch.autograd.grad(terms[n].sum(), logits, retain_graph=True)[0] for n in ("energy", "cross_entropy")]
    return tuple(float(gradient.norm()) for gradient in gradients)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_the_first_update_has_the_share_itself(share: float) -> None:
    [context, *_] = make_contexts()
    energy, gold = compute_norms(SharedLoss(share, 2.0, False)(context), context)
    assert energy / (energy + gold) == pytest.approx(share)


def test_later_updates_have_the_ratio_of_running_means() -> None:
    loss, norms = SharedLoss(0.5, 1.0, False), []
    for context in make_contexts():
        weight_before = loss.energy_weight
        energy, gold = compute_norms(loss(context), context)
        norms.append((energy / loss.energy_weight, gold))
        assert loss.energy_weight != weight_before
    weights = torch.tensor([0.98**2, 0.98, 1.0], dtype=torch.float64)
    energies, golds = torch.tensor(norms, dtype=torch.float64).T
    expected = float((weights @ golds) / (weights @ energies))
    assert loss.energy_weight == pytest.approx(expected)
    assert loss.measures(context)["energy_weight"].tolist() == pytest.approx([expected])


def test_the_scale_of_the_energy_does_not_matter() -> None:
    plain, scaled = SharedLoss(0.3, 1.0, False), SharedLoss(0.3, 1.0, False)
    for one, other in zip(make_contexts(), make_contexts(1000.0), strict=True):
        plain_terms, scaled_terms = plain(one), scaled(other)
        assert plain_terms.keys() == scaled_terms.keys()
        for name in plain_terms:
            torch.testing.assert_close(plain_terms[name], scaled_terms[name], rtol=1e-9, atol=1e-12)
    assert plain.energy_weight == pytest.approx(1000 * scaled.energy_weight)


def test_an_energy_without_a_gradient_has_a_finite_weight() -> None:
    [context, *_] = make_contexts(0.0)
    loss = SharedLoss(0.5, 1.0, False)
    terms = loss(context)
    assert loss.energy_weight == LARGEST
    assert not terms["energy"].any() and terms["cross_entropy"].all()


def test_an_energy_that_rests_keeps_its_scale() -> None:
    loss = SharedLoss(0.5, 1.0, False)
    for context in make_contexts():
        loss(context)
    state = loss.state_dict()["means"]
    resting = make_contexts(0.0)[0]
    for _ in range(100):
        loss(resting)
    assert loss.state_dict()["means"][1] == state[1] > 0
    late = SharedLoss(0.5, 1.0, False)
    for _ in range(100):
        late(resting)
    late(make_contexts()[0])
    first = SharedLoss(0.5, 1.0, False)
    first(make_contexts()[0])
    assert late.state_dict()["means"][1] == first.state_dict()["means"][1]


def test_validation_does_not_move_the_means() -> None:
    [context, *_] = make_contexts()
    context.training = False
    loss = SharedLoss(0.5, 1.0, False)
    loss(context)
    assert loss.energy_weight == 0.0 and loss.state_dict() == {"means": [0.0, 0.0], "seen": 0}


def test_a_share_requires_cross_entropy() -> None:
    with pytest.raises(ValidationError, match="requires a cross_entropy_weight above 0"):
        Dynamic.Config(energy_share=0.5, cross_entropy_weight=0)
    for share in (0, 1, -0.5):
        with pytest.raises(ValidationError, match="energy_share"):
            Dynamic.Config(energy_share=share)


SMALL = {
    "features.hidden": "[24]",
    "energy.hidden": "8",
    "energy_loss.samples": "3",
    "trainer.epochs": "2",
    "trainer.batch_size": "128",
    "trainer.energy_share": "0.5",
    "trainer.gradient_norms_every": "1",
}


def train(folder: Path, **arguments: str) -> Path:
    return trained("labels", folder, **SMALL, **arguments)


@pytest.mark.parametrize("method", ["nce", "static_nce"])
def test_a_resumed_run_continues_with_the_same_weight(tmp_path: Path, method: str) -> None:
    arguments = {"method": method} | (
        {"trainer.net_epochs": "1", "trainer.energy_epochs": "1"} if "static" in method else {}
    )
    reference = train(tmp_path / "whole", **arguments)
    records = sp.RunFolder(reference).history()
    first = next(number for number, record in enumerate(records) if record["stage"] == "seal")
    batches = records[first]["updates"]["inference_net"]
    stop_after = batches * first + 2  # in the first epoch of the stage with the energy
    check_stopped_and_resumed(lambda folder: train(folder, **arguments), reference, tmp_path / "cut", stop_after)
    assert records[-1]["measures"]["inference_net.energy_weight"] > 0 and records[-1]["stage"] == "seal"


def test_parts_of_a_batch_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(sp.ConfigError, match="requires accumulate=1 and one process"):
        train(tmp_path / "run", method="nce", **{"trainer.accumulate": "2"})
