"""Finished runs that teach a net: energy `mean`, `method=static_mean` and its control `method=distillation`."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor

import spen_plugins as sp
from spen_plugins.builtin.energies.basic import MeanOfRuns
from spen_plugins.builtin.losses.basic import Likelihood
from spen_plugins.builtin.nets.basic import Independent
from spen_plugins.builtin.nets.crf import Crf
from spen_plugins.errors import ConfigError
from spen_plugins.testing import ToyFeatures, ToyImages, ToyLabels, ToyTags, check_energy
from spen_plugins.testing.comparing import collate
from tests.loaded import built, spen, trained

SMALL = {"features.hidden": "[8]", "trainer.epochs": "1", "trainer.batch_size": "200"}


@pytest.fixture(scope="module")
def teachers(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("teachers")
    return [
        trained("labels", folder / f"seed-{seed}", method="cross_entropy", seed=str(seed), **SMALL) for seed in (0, 1)
    ]


def make_parts(toy, *nets):
    """A task, an energy of these nets with random weights, and a batch."""
    torch.manual_seed(0)
    task = toy()
    nets_by_name = {str(i): cls(cls.Config(), task, ToyFeatures(task)) for i, cls in enumerate(nets)}
    energy = MeanOfRuns(MeanOfRuns.Config(), task, None, nets_by_name).double()
    for parameter in energy.parameters():
        parameter.data.normal_()
    return task, energy, collate(task, task.part("train")[:3])


TOYS = [(ToyLabels, Independent, Independent), (ToyTags, Independent, Crf), (ToyTags, Crf)]


def list_outputs(batch: sp.Batch, row: int) -> Tensor:
    """Every discrete y of one row, `(output, *variables)`, zero on padding."""
    shape = batch.gold.shape[2:]
    if len(shape) == 1:
        return torch.tensor(list(itertools.product((0.0, 1.0), repeat=shape[0])), dtype=torch.double)
    length = int(batch.x.mask[row].sum())
    tags = torch.tensor(list(itertools.product(range(shape[1]), repeat=length)))
    y = torch.zeros(len(tags), *shape, dtype=torch.double)
    y[:, :length] = torch.nn.functional.one_hot(tags, shape[1]).double()
    return y


@pytest.mark.parametrize("toy", TOYS)
def test_the_partition_function_is_one_and_the_marginals_match_all_outputs(toy) -> None:
    _, energy, batch = make_parts(*toy)
    bound = energy.at(batch.x)
    assert not bound.log_z().any()
    for row in range(len(batch)):
        y = list_outputs(batch, row)
        p = torch.exp(-bound(y.expand(len(batch), *y.shape))[row])
        torch.testing.assert_close(p.sum(), torch.ones((), dtype=torch.double))
        torch.testing.assert_close(bound.marginals()[row, 0], torch.einsum("n,n...->...", p, y))


@pytest.mark.parametrize("toy", TOYS)
def test_the_energy_is_that_of_the_mean_probability(toy) -> None:
    _, energy, batch = make_parts(*toy)
    probabilities = torch.stack([net(batch.x).log_prob(batch.gold).exp() for net in energy.nets.values()])
    torch.testing.assert_close(energy.at(batch.x)(batch.gold), -probabilities.mean(0).log())


@pytest.mark.parametrize("toy", TOYS)
def test_the_energy_of_the_mean_is_a_bound_for_independent_variables(toy) -> None:
    task, energy, batch = make_parts(*toy)
    q = task.space.independent(torch.randn(3, 1, *batch.gold.shape[2:]).double(), batch.x.mask)
    bound = energy.at(batch.x)
    for row in range(len(batch)):
        y = list_outputs(batch, row).expand(3, -1, *batch.gold.shape[2:])
        expected = (q.log_prob(y)[row].exp() * bound(y)[row]).sum()
        value = bound(q.mean)[row, 0]
        assert value >= expected - 1e-10
        if len(energy.nets) == 1:
            torch.testing.assert_close(value, expected)


@pytest.mark.parametrize("toy", [(ToyLabels, Independent), (ToyTags, Crf)])
def test_one_teacher_is_seal_static_with_its_minus_ln_q(toy) -> None:
    """Terms and their gradients at the student's logits."""
    task, energy, batch = make_parts(*toy)
    [teacher] = energy.nets.values()
    logits = torch.randn(3, 1, *batch.gold.shape[2:]).double().requires_grad_()
    student = task.space.independent(logits, batch.x.mask)
    loss = Likelihood(Likelihood.Config(entropy=0.0), task)
    terms = loss.net_terms(energy.at(batch.x), batch, student)
    expected = -teacher(batch.x).log_prob(student.mean)[:, 0]
    torch.testing.assert_close(terms["energy"], expected, rtol=0, atol=1e-12)
    gradients = [
        torch.autograd.grad(value.sum(), logits, retain_graph=True)[0] for value in (terms["energy"], expected)
    ]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)


@pytest.mark.parametrize("toy", TOYS)
def test_distillation_is_cross_entropy_against_the_mean(toy) -> None:
    task, energy, batch = make_parts(*toy)
    logits = torch.randn(3, 1, *batch.gold.shape[2:]).double()
    student = task.space.independent(logits, batch.x.mask)
    loss = Likelihood(Likelihood.Config(marginals=True), task)
    terms = loss.net_terms(energy.at(batch.x), batch, student)
    for row in range(len(batch)):  # Σ_y p(y) (−ln q(y))
        y = list_outputs(batch, row).expand(3, -1, *batch.gold.shape[2:])
        p = torch.exp(-energy.at(batch.x)(y)[row])
        torch.testing.assert_close(terms["distillation"][row], -(p * student.log_prob(y)[row]).sum())


def test_the_nets_are_fixed_and_without_dropout() -> None:
    _, energy, _ = make_parts(ToyLabels, Independent)
    energy.train()
    assert not any(module.training for module in energy.modules())
    assert not any(parameter.requires_grad for parameter in energy.parameters())


def test_contracts() -> None:
    task, energy, _ = make_parts(ToyTags, Independent, Crf)
    check_energy(energy, task)


def test_densities_have_no_sum() -> None:
    task = ToyImages()
    net = torch.nn.Module()
    net.uses_energy = net.chooses = False
    energy = MeanOfRuns(MeanOfRuns.Config(), task, None, {"a": net})
    with pytest.raises(ConfigError, match="no closed-form sum over all outputs"):
        energy.log_z(None)


@pytest.mark.parametrize("method", ["static_mean", "distillation"])
def test_runs_teach_a_net(teachers, tmp_path, method) -> None:
    """The run stores its teachers' weights and training times."""
    copies = [shutil.copytree(run, tmp_path / "of" / run.name) for run in teachers]
    run = trained("labels", tmp_path / "x", method=method, **{"init.energy": str(tmp_path / "of"), **SMALL})
    folder = sp.RunFolder(run)
    assert list(folder.config()["energy"]["nets"]) == ["seed-0", "seed-1"]
    assert folder.config()["init"]["energy"] == [str(copy) for copy in copies]
    seconds = folder.environment()["teachers"]
    assert list(seconds.values()) == [sum(t["seconds"] for t in sp.RunFolder(copy).times()) for copy in copies]
    weights = folder.weights()
    for name, copy in zip(("seed-0", "seed-1"), copies, strict=True):
        for key, value in sp.RunFolder(copy).weights().items():
            assert torch.equal(weights[key.replace("inference_net.", f"energy.nets.{name}.")], value)
    shutil.rmtree(tmp_path / "of")
    assert sp.load(run).predict([{"features": {}}], energy=True)[0]["energy"] > 0


def test_a_mean_of_runs_teaches_like_its_runs(teachers, tmp_path) -> None:
    spen("decode", *teachers, tmp_path / "mean", "--mean")
    losses = []
    for number, init in enumerate(([str(run) for run in teachers], str(tmp_path / "mean"))):
        teacher = init if isinstance(init, str) else json.dumps(init)
        run = trained("labels", tmp_path / str(number), method="static_mean", **{"init.energy": teacher, **SMALL})
        losses.append(sp.RunFolder(run).history()[0]["losses"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_without_weight_the_energy_is_the_control(teachers, tmp_path) -> None:
    """There is no dropout, since building the teachers consumes random numbers."""
    small = {**SMALL, "features.dropout": "0", "seed": "3"}
    options = {"init.energy": str(teachers[0].parent), "trainer.energy_weight": "0"}
    run = trained("labels", tmp_path / "x", method="static_mean", **small, **options)
    control = trained("labels", tmp_path / "y", method="cross_entropy", **small)
    configs = [sp.RunFolder(path).config() for path in (run, control)]
    assert (
        configs[0]["trainer"]["net"] == configs[1]["trainer"]["net"]
        and configs[0]["features"] == configs[1]["features"]
    )
    assert sp.RunFolder(run).history()[0]["losses"] == sp.RunFolder(control).history()[0]["losses"]


def test_rows_without_gold_are_taught_too(teachers) -> None:
    task, energy, batch = make_parts(ToyLabels, Independent)
    student = task.space.independent(torch.randn(3, 1, *batch.gold.shape[2:]).double())
    unlabelled = sp.Batch(batch.x, batch.rows, None, torch.zeros_like(batch.labelled))
    loss = Likelihood(Likelihood.Config(), task)
    terms, expected = (loss.net_terms(energy.at(b.x), b, student) for b in (unlabelled, batch))
    for name in terms:
        torch.testing.assert_close(terms[name], expected[name])


def test_invalid_teachers_are_rejected(teachers, tmp_path) -> None:
    def start(**arguments: str) -> None:
        trained("labels", tmp_path / "x", **{"method": "static_mean", **SMALL, **arguments})

    with pytest.raises(ConfigError, match=r"init\.energy names none"):
        start()
    with pytest.raises(ConfigError, match="neither a run folder nor a folder of runs"):
        start(**{"init.energy": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"found a list, but energy .* starts from one run"):
        start(method="nce", **{"init.energy": json.dumps([str(run) for run in teachers])})
    with pytest.raises(ConfigError, match=r"seed-0 is a run of task 'multilabel'; expected .* this task, 'tagging'"):
        trained("tags", tmp_path / "x", method="distillation", **{"init.energy": str(teachers[0])})
    other = Path(shutil.copytree(teachers[0], tmp_path / "other"))
    facts = json.loads((other / "vocabulary.json").read_text())
    (other / "vocabulary.json").write_text(json.dumps({**facts, "labels": facts["labels"][::-1]}))
    with pytest.raises(ConfigError, match="was trained with other labels"):
        start(**{"init.energy": str(other)})
    (other / "metrics.json").unlink()
    with pytest.raises(ConfigError, match="has no scores yet"):
        start(**{"init.energy": str(other)})
    descent = trained("labels", tmp_path / "spen", method="spen", **{"features.hidden": "[8]", "trainer.epochs": "1"})
    with pytest.raises(ConfigError, match="Gbi predicts with an energy"):
        start(**{"init.energy": str(descent)})
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("config", ["labels", "texts", "tags", "names", "roles"])
@pytest.mark.parametrize("method", ["static_mean", "distillation"])
def test_the_configs_have_the_methods(config, method) -> None:
    """Without runs, each method raises an error that names its requirement."""
    with pytest.raises(ConfigError, match="energy 'mean' combines finished runs"):
        built(config, method=method)


def test_a_crf_and_a_net_teach_a_tagger(tmp_path) -> None:
    small = {"trainer.epochs": "1", "features.hidden": "8"}
    for method in ("cross_entropy", "crf"):
        trained("tags", tmp_path / "of" / method, method=method, **small)
    run = trained("tags", tmp_path / "x", method="static_mean", **{"init.energy": str(tmp_path / "of"), **small})
    assert {"inference_net.energy", "inference_net.entropy"} <= sp.RunFolder(run).history()[0]["losses"].keys()
