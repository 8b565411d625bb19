"""Arcs: the arc-factored model, the energy on top of it, and their config."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

import spen_plugins as sp
from spen_e2e.arcs import Arcs, ArcScorer, find_conflicts
from spen_e2e.arcs_task import RoleArcs
from spen_e2e.unroll import Unroll
from spen_e2e.unrolled import Unrolled
from spen_plugins.builtin.features.bilstm import BiLstm
from spen_plugins.config.evaluation import evaluate
from spen_plugins.testing import ToyTags, check_energy, check_inference_net, check_trainer
from spen_plugins.testing.comparing import collate, pick_by_length, relaxed
from tests.e2e.test_arcs_task import make as make_task
from tests.e2e.toys import make
from tests.loaded import experiment, loaded, trained

METHODS = ("local", "spen", "icnn", "spen_ssvm")
SMALL = {"hidden": 4, "width": 3, "global_hidden": 3}


@pytest.fixture(scope="module")
def task() -> RoleArcs:
    """Short sentences of the sample, some with several predicates."""
    task = loaded("e2e.arcs", corpus="sample", longest=3)
    short = [e for e in task.part("train") if len(e.pairs) < 45]
    several = [e for e in short if len(e.predicates) > 1]
    task._parts["train"] = [*several[:4], *[e for e in short if len(e.predicates) == 1][:4]]
    return task


def make_energy(task: RoleArcs, **fields) -> Arcs:
    """An energy whose global terms matter."""
    energy = make(Arcs, task, **SMALL, **fields).double().eval()
    for value in energy.parameters():
        value.data.normal_()
    return energy


@pytest.mark.parametrize("icnn", [False, True])
def test_contracts(task, icnn):
    check_energy(make(Arcs, task, **SMALL, icnn=icnn), task)


def test_contract_of_the_net(task):
    check_inference_net(make(ArcScorer, task, hidden=4), task)


def test_contract_on_a_bilstm(task):
    """The BiLSTM asks for the mask of words."""
    features = BiLstm(BiLstm.Config(word_dim=3, hidden=2, layers=1, affix_dim=0), task)
    check_inference_net(ArcScorer(ArcScorer.Config(hidden=3), task, features), task)


def test_the_energy_by_hand(task):
    """Loops over arcs."""
    energy = make_energy(task, sharpness=7.0)
    batch = collate(task, pick_by_length(task, 3))
    y, f = relaxed(task.space, batch, 2), energy.encode(batch.x)
    values = energy.at(batch.x)(y)
    role, core = energy.role, [task.space.tags.index(name) for name in task.inputs.core]
    assert core and (energy.core == torch.tensor(core)).all()
    for b, example in enumerate(pick_by_length(task, 3)):
        for s in range(2):
            total = torch.zeros((), dtype=torch.double)
            at_predicate, at_candidate, sentence = {}, {}, 0
            masses: dict[tuple[int, int], torch.Tensor] = {}
            for i, (p, c) in enumerate(example.pairs.tolist()):
                roles = y[b, s, i, 1:] @ role
                arc = torch.cat([roles * f.arcs[b, i], roles])
                at_predicate[p] = at_predicate.get(p, 0) + arc
                at_candidate[c] = at_candidate.get(c, 0) + arc
                sentence = sentence + arc
                total = total + (y[b, s, i] * f.local[b, i]).sum()
                for j, k in enumerate(core):
                    masses[p, j] = masses.get((p, j), 0) + y[b, s, i, k]
            for kind, sums in enumerate((at_predicate, at_candidate, {0: sentence})):
                count = (len(example.predicates), len(example.candidates), 1)[kind]
                for number in range(count):
                    sums_of_kind = sums.get(number, torch.zeros(2 * SMALL["width"], dtype=torch.double))
                    h = energy.first[kind](sums_of_kind) + f.contexts[kind][b, 0, number]
                    total = total + energy.tail[kind](h)[0]
            for (_, j), mass in masses.items():
                total = total + energy.log_repeat[j].exp() * F.softplus(mass - 1, beta=7.0)
            for i, j in combinations(range(len(example.pairs)), 2):
                (p, c), (q, d) = example.pairs[i], example.pairs[j]
                (first, last), (begin, end) = example.candidates[c], example.candidates[d]
                if p == q and first <= end and begin <= last:
                    excess = 2 - y[b, s, i, 0] - y[b, s, j, 0] - 1
                    total = total + energy.log_overlap.exp() * F.softplus(excess, beta=7.0)
            torch.testing.assert_close(values[b, s], total)


def test_conflicts_are_the_overlaps_of_a_predicate(task):
    examples = pick_by_length(task, 3)
    batch = task.collate(examples)
    width = batch.x.mask.shape[1]
    expected = set()
    for b, example in enumerate(examples):
        for i, j in combinations(range(len(example.pairs)), 2):
            (p, c), (q, d) = example.pairs[i], example.pairs[j]
            (first, last), (begin, end) = example.candidates[c], example.candidates[d]
            if p == q and first <= end and begin <= last:
                expected.add((b * width + i, b * width + j))
    firsts, seconds = find_conflicts(batch.x)
    assert {tuple(sorted(pair)) for pair in zip(firsts.tolist(), seconds.tolist(), strict=True)} == expected
    assert len(firsts) == len(expected)


def test_the_order_of_pairs_does_not_matter(task):
    energy, batch = make_energy(task), collate(task, pick_by_length(task, 3))
    y = relaxed(task.space, batch, 2)
    order = torch.randperm(y.shape[2])
    inputs = {k: v[:, order] if k.startswith("pair_") else v for k, v in batch.x.inputs.items()}
    permuted = replace(batch.x, inputs=inputs, mask=batch.x.mask[:, order])
    torch.testing.assert_close(energy.at(permuted)(y[:, :, order]), energy.at(batch.x)(y))


def test_padding_has_no_slope(task):
    energy, batch = make_energy(task), collate(task, pick_by_length(task, 4))
    y = relaxed(task.space, batch, 2).requires_grad_()
    [gradient] = torch.autograd.grad(energy.at(batch.x)(y).sum(), y)
    is_padding = ~batch.x.mask[:, None, :, None].expand_as(gradient)
    assert is_padding.any() and not gradient[is_padding].any() and gradient[~is_padding].any()


@pytest.mark.parametrize("icnn", [True, False])
def test_convex_along_segments(task, icnn):
    batch, worst = collate(task, pick_by_length(task, 3)), 0.0
    for seed in range(10):
        torch.manual_seed(seed)
        energy = make_energy(task, icnn=icnn)
        bound = energy.at(batch.x)
        a, b = (relaxed(task.space, batch, 1, seed=2 * seed + i) * 3 for i in range(2))
        s = torch.linspace(0, 1, 5, dtype=torch.float64)
        values = bound(a + s[None, :, None, None] * (b - a))
        excess = values - bound(a) - s * (bound(b) - bound(a))
        worst = max(worst, float((excess / values.abs()).detach().max()))
    assert worst < 1e-9 if icnn else worst > 1e-6


def test_constraints_only_grow_with_a_second_argument(task):
    """Two overlapping arguments, or a core role twice, cost about α; one costs next to nothing."""
    energy = make(Arcs, task, **SMALL, constraint=3.0, sharpness=200.0).double().eval()
    for module in energy.tail:
        module[-1].weight.data.zero_()  # no other global terms
    batch = collate(task, pick_by_length(task, 2)[:1])
    bound, example = energy.at(batch.x), pick_by_length(task, 2)[0]
    spans = [(p, *example.candidates[c]) for p, c in example.pairs.tolist()]
    arcs = [i for i, span in enumerate(spans) if span[0] == spans[0][0]]
    disjoint = next((i, j) for i, j in combinations(arcs, 2) if spans[i][2] < spans[j][1])
    overlapping = next((i, j) for i, j in combinations(arcs, 2) if spans[j][1] <= spans[i][2])
    core, modifier = (task.space.tags.index(name) for name in ("ARG0", "ARGM-TMP"))

    def cost(places, role) -> float:
        tags = torch.zeros(1, 1, len(spans), dtype=torch.long)
        tags[0, 0, list(places)] = role
        y = task.space.one_hot(tags, batch.x.mask).double()
        return float((bound(y) - (bound.features.local * y[:, 0]).sum()).detach())

    base = cost((), 0)
    for places, role, expected in (
        (disjoint, modifier, 0),
        (disjoint, core, 3),
        (overlapping, modifier, 3),
        (overlapping, core, 6),
        (disjoint[:1], core, 0),
    ):
        assert cost(places, role) - base == pytest.approx(expected, abs=0.2), (places, role)


def test_the_local_terms_are_a_copy_of_the_net(task):
    """With them alone and the entropy, the steps stay where the net begins."""
    net, energy = make(ArcScorer, task, hidden=4), make(Arcs, task, **SMALL)
    energy.features.load_state_dict(net.features.state_dict())
    energy.local.load_state_dict(net.local.state_dict())
    batch = collate(task, pick_by_length(task, 3))
    net, energy = net.double().eval(), energy.double().eval()
    log_p = torch.log_softmax(net(batch.x).logits[:, 0], -1) * batch.x.mask.unsqueeze(-1)
    torch.testing.assert_close(energy.encode(batch.x).local, -log_p)


def test_end_to_end(task):
    copies = {"energy.features": "inference_net.net.features", "energy.local": "inference_net.net.local"}
    scorer = make(ArcScorer, task, hidden=4)
    net = Unrolled(Unrolled.Config(steps=2, rates="learned", entropy=1), task, net=scorer)
    trainers = [
        Unroll(Unroll.Config(epochs=1, init_epochs=epochs, clamped_epochs=1, copies=copies)) for epochs in (0, 1)
    ]
    model = sp.Model(net, make(Arcs, task, **SMALL), None)
    check_trainer(trainers[0], model, task)
    check_trainer(trainers[1], model, task, ["inference_net.log_rates"])  # no step is made in stage `init`


@pytest.mark.parametrize("method", ["spen", "spen_ssvm"])
def test_a_run_with_trees(method, tmp_path):
    """A trained run, read from its folder alone, has the same scores, which it can't have without the trees."""
    make_task(tmp_path)
    arguments = {
        "data": str(tmp_path / "train"),
        "validation": str(tmp_path / "dev"),
        "test": str(tmp_path / "test"),
        "trees": str(tmp_path / "trees.conllu"),
        "method": method,
        "features.hidden": "3",
        "trainer.epochs": "1",
        ("trainer.init_epochs" if method == "spen" else "trainer.net_epochs"): "1",
    }
    run = trained("arcs", tmp_path / "run", **arguments)
    predictor = sp.load(run)
    scores = json.loads((run / "metrics.json").read_text())["test"]
    report = predictor.evaluate_file(str(tmp_path / "test"))
    assert report["scores"] == scores and set(scores) >= {"span_f1", "f1_none", "f1_heuristic", "f1_ilp", "violations"}
    assert report["protocol"]["candidates"].startswith("single words")
    [prediction] = predictor.predict(
        [{"words": ["She", "saw", "ships"], "predicates": [1], "heads": [1, -1, 1]}], energy=True
    )
    assert prediction["predicates"][0]["word"] == "saw" and isinstance(prediction["energy"], float)
    steps = list(predictor.trajectory_file(str(tmp_path / "test")))
    assert len(steps) == 11 and steps[-1]["score"] == scores["span_f1"]


def test_other_tasks_are_rejected():
    for cls in (Arcs, ArcScorer):
        with pytest.raises(sp.ConfigError, match=r"Use task 'e2e\.arcs'"):
            make(cls, ToyTags())
    with pytest.raises(sp.ConfigError, match="TextInputs"):
        ArcScorer(ArcScorer.Config(), SimpleNamespace(inputs=sp.TextInputs([]), space=None), None)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", ["sample", "ewt", "files"])
def test_every_data_set_with_every_method_is_an_experiment(data, method):
    table = experiment("arcs", data=data, method=method)
    assert ("energy" in table) == (method != "local")
    scorer = table["inference_net"] if method == "local" else table["inference_net"]["net"]
    assert scorer["type"] == "e2e.arc_scorer"
    if method != "local":
        assert table["energy"]["icnn"] == (method == "icnn")
        assert table["energy"]["hidden"] == scorer["hidden"]
    if method in ("spen", "icnn"):
        net = table["inference_net"]
        assert (net["type"], net["rates"], net["momentum"], net["method"]) == ("e2e.unrolled", "learned", 0, "mirror")
        assert net["steps"] == (3 if data == "sample" else 10)


def test_user_files():
    arguments = {"data": "a.conll", "validation": "b.conll", "trees": "t.conllu"}
    task = evaluate("arcs", arguments)["task"]
    assert task == {"type": "e2e.arcs", "train": "a.conll", "validation": "b.conll", "trees": ["t.conllu"]}
    with pytest.raises(sp.ConfigError, match="trees= require a training file"):
        evaluate("arcs", {"trees": "t.conllu"})
    assert evaluate("arcs", {**arguments, "encoder": "bert-base-cased"})["features"]["model"] == "bert-base-cased"
