"""Structured tuning: its loss, its stages, and a run of `roles`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch

import spen_plugins as sp
from spen_plugins.registry import Registry
from spen_plugins.testing import ToyFeatures, ToyTags, check_energy, check_energy_loss
from spen_plugins.testing.comparing import collate
from spen_rules.names import AtMostOne, ExactlyOne, Excludes, Implies
from spen_rules.roles import UniqueRole
from spen_rules.tuning import Tuning
from spen_rules.violation import Violation
from tests.loaded import trained

SMALL = {"features.hidden": "8", "features.word_dim": "8", "trainer.epochs": "1", "trainer.tuning_epochs": "1"}


def make_net(name: str, task: sp.Task) -> sp.InferenceNet:
    cls, config = Registry().parse("inference_net", {"type": name}, "inference_net", "test")
    return cls(config, task, ToyFeatures(task)).double()


@pytest.fixture
def context() -> sp.OneBatch:
    """The constraint of unique roles, and a CRF that starts a role at most words, on a batch of tags."""
    task = ToyTags()
    crf = make_net("crf", task)
    with torch.no_grad():
        crf.output.bias[find_tag("B-A0")] = 3.0
    model = sp.Model(crf, UniqueRole(UniqueRole.Config(), task), Violation(Violation.Config(), task))
    return sp.OneBatch(model, collate(task, task.part("train")[:4]))


@pytest.mark.parametrize("logic", ["godel", "product"])
@pytest.mark.parametrize(
    ("cls", "fields"),
    [
        (UniqueRole, {}),
        (AtMostOne, {"names": ["A0", "B-A1"]}),
        (ExactlyOne, {"names": ["A0", "B-A1"]}),
        (Implies, {"pairs": [("B-A1", "I-A0")]}),
        (Excludes, {"pairs": [("B-A0", "B-A1")]}),
    ],
)
def test_constraints_on_tags_keep_the_contract(cls, fields, logic):
    task = ToyTags()
    check_energy(cls(cls.Config(logic=logic, **fields), task), task)


@pytest.mark.parametrize("source", ["marginals", "emissions"])
def test_the_loss_keeps_the_contract_with_an_energy_that_learns(source):
    task = ToyTags()
    cls, config = Registry().parse("energy", {"type": "linear_chain"}, "energy", "test")
    check_energy_loss(
        Violation(Violation.Config(of=source), task), cls(config, task, ToyFeatures(task)), make_net("crf", task), task
    )


def test_marginals_and_emissions_differ_only_for_a_crf(context):
    batch, energy = context.batch, context.energy
    marginals, emissions = (Violation(Violation.Config(of=source), ToyTags()) for source in ("marginals", "emissions"))
    crf = context.proposal
    proposal = crf.space.independent(crf.logits, batch.x.mask)
    [term], [other] = ([loss.net_terms(energy, batch, proposal)["violation"]] for loss in (marginals, emissions))
    torch.testing.assert_close(term, other, rtol=0, atol=0)
    torch.testing.assert_close(emissions.net_terms(energy, batch, crf)["violation"], other, rtol=0, atol=0)
    torch.testing.assert_close(marginals.net_terms(energy, batch, crf)["violation"], energy(crf.mean)[:, 0])


def test_gold_has_no_violation_where_it_keeps_the_rule(context):
    batch = context.batch
    begin_counts = batch.gold[:, 0][..., [find_tag("B-A0"), find_tag("B-A1")]].sum(1)
    violations = context.model.energy_loss.measures(context.energy, batch, context.proposal)["violation of gold"]
    assert ((violations == 0) == (begin_counts <= 1).all(-1)).all()
    unlabelled = dataclasses.replace(batch, gold=None, labelled=batch.labelled & False)
    assert not context.model.energy_loss(context.energy, unlabelled, context.proposal).any()


def find_tag(name: str) -> int:
    return ToyTags().space.tags.index(name)


def compute_gradients(context: sp.OneBatch, weight: float) -> list[torch.Tensor]:
    """Returns the gradients of the loss of stage 2."""
    trainer = Tuning(Tuning.Config(energy_weight=weight))
    _, tuning = trainer.stages(context.model, ToyTags())
    terms = tuning.phases[0].loss(sp.OneBatch(context.model, context.batch))
    return list(torch.autograd.grad(sum(terms.values()).mean(), list(context.model.inference_net.parameters())))


def test_without_a_weight_the_loss_is_cross_entropy_and_a_weight_adds_its_term(context):
    parameters = list(context.model.inference_net.parameters())
    net_gradients = torch.autograd.grad(sp.cross_entropy(context).mean(), parameters, retain_graph=True)
    torch.testing.assert_close(compute_gradients(context, 0.0), list(net_gradients), rtol=1e-12, atol=1e-12)
    term = context.model.energy_loss.net_terms(context.energy, context.batch, context.proposal)["violation"].mean()
    added = torch.autograd.grad(term, parameters, allow_unused=True)
    expected = [a if b is None else a + 0.7 * b for a, b in zip(net_gradients, added, strict=True)]
    torch.testing.assert_close(compute_gradients(context, 0.7), expected, rtol=1e-9, atol=1e-12)
    assert any(b is not None and b.any() for b in added)


def test_a_run_trains_a_crf_and_then_tunes_it(tmp_path: Path):
    run = sp.RunFolder(trained("roles", tmp_path / "run", method="structured_tuning", **SMALL))
    records = [json.loads(line) for line in (run.path / "history.jsonl").read_text().splitlines()]
    assert [(r["stage"], set(r["losses"])) for r in records] == [
        ("net", {"inference_net.cross_entropy"}),
        ("tuning", {"inference_net.cross_entropy", "inference_net.violation"}),
    ]
    assert records[1]["learning_rate"]["inference_net"] == pytest.approx(
        records[0]["learning_rate"]["inference_net"] / 3
    )
    assert {"span_f1", "ucr"} <= run.metrics()["test"].keys()
