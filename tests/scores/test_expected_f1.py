"""Label sets of highest expected F1, against enumeration; decoders chosen on validation; `spen decode`."""

from __future__ import annotations

import errno
import itertools
import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

import spen_plugins as sp
from spen_plugins.builtin.tasks.labels.multilabel import MultiLabel
from spen_plugins.cli.main import app
from spen_plugins.errors import ConfigError
from spen_plugins.report.compare import compare
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.many.groups import read_groups
from spen_plugins.runs.predict import evaluating
from spen_plugins.runs.train import decoding
from spen_plugins.runs.train.decoding import decode_by_energy
from spen_plugins.scores import expected_f1 as module
from spen_plugins.scores.expected_f1 import best_sets, expected_f1, tempered
from spen_plugins.scores.label_decoding import GRID, TEMPERATURES, Fit, LabelDecoder, between
from spen_plugins.scores.label_scores import example_f1, scores
from spen_plugins.spaces import LabelSet, Mixture
from tests.builtin.tasks.labels.test_multilabel import drawn, proposal
from tests.loaded import QUIET, loaded, spen


def enumerated(p: Tensor) -> tuple[Tensor, Tensor]:
    """All label sets, `(set, label)`, and the expected F1 of each under independent labels."""
    sets = torch.tensor(list(itertools.product([0.0, 1.0], repeat=len(p))), dtype=torch.double)
    weight = torch.where(sets > 0, p, 1 - p).prod(1)
    scores = torch.stack([example_f1((sets > 0)[i].expand(len(sets), -1), sets > 0) for i in range(len(sets))])
    return sets > 0, scores @ weight


@pytest.mark.parametrize("labels", range(1, 9))
def test_no_label_set_has_a_higher_expected_f1(labels: int) -> None:
    rng = torch.Generator().manual_seed(labels)
    p = torch.sigmoid(3 * torch.randn(6, labels, generator=rng, dtype=torch.double) - 1)
    p[0, 0], p[1, 0] = 1.0, 0.0
    found = best_sets(p)
    for row, chosen in zip(p, found, strict=True):
        sets, expected = enumerated(row)
        assert expected[(sets == chosen).all(1)].item() == pytest.approx(expected.max().item(), abs=1e-9)
        ordered = row.sort(descending=True).values.unsqueeze(0)
        assert expected_f1(ordered, labels).max().item() == pytest.approx(expected.max().item(), abs=1e-12)


def test_few_nodes_are_as_good_as_those_of_the_exact_polynomial(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = torch.Generator().manual_seed(0)
    p = torch.sigmoid(
        2 * torch.randn(4, 400, generator=rng, dtype=torch.double) + torch.tensor([[-6], [-3], [-1], [0]])
    )
    ordered = p.sort(descending=True).values
    few = expected_f1(ordered, 300)
    monkeypatch.setattr(module, "_count_nodes", lambda degree, growth: -(-degree // 2))
    assert (few - expected_f1(ordered, 300)).abs().max() < 1e-10


def test_all_sizes_that_may_be_best_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = torch.Generator().manual_seed(0)
    p = torch.sigmoid(torch.randn(20, 90, generator=rng) + torch.linspace(-6, 1, 20).unsqueeze(1))
    found = best_sets(p)
    monkeypatch.setattr(module, "FIRST", 90)
    monkeypatch.setattr(module, "CELLS", 1)  # an example at a time
    assert torch.equal(found, best_sets(p))
    assert found.sum(1).max() > 32


def test_order_and_impossible_labels_do_not_matter() -> None:
    rng = torch.Generator().manual_seed(0)
    p = torch.rand(5, 7, generator=rng)
    order = torch.randperm(7, generator=rng)
    assert torch.equal(best_sets(p)[:, order], best_sets(p[:, order]))
    more = torch.cat([p, torch.zeros(5, 3)], 1)
    assert torch.equal(best_sets(more), torch.cat([best_sets(p), torch.zeros(5, 3, dtype=torch.bool)], 1))
    assert not best_sets(torch.zeros(2, 3)).any() and best_sets(torch.zeros(0, 3)).shape == (0, 3)
    assert torch.equal(best_sets(torch.tensor([[1.0, 0.5]])), torch.tensor([[True, False]]))  # equal: the fewer labels
    torch.testing.assert_close(tempered(p, 2.0), torch.sigmoid(torch.logit(p.double()) / 2))
    assert torch.equal(best_sets(p, 0.0), p > 0.5)


def test_the_decoder_is_the_best_that_may_be_chosen() -> None:
    p, gold = drawn()
    by = {
        "threshold": [LabelDecoder(t) for t in GRID],
        "expected_f1": [LabelDecoder(temperature=t) for t in TEMPERATURES],
    }
    best = {name: max(example_f1(d(p), gold).mean().item() for d in some) for name, some in by.items()}
    for name, score in (*best.items(), ("validation", max(best.values()))):
        task = loaded("multilabel", corpus="sample", decode=name, threshold="validation")
        metric = task.metric()
        metric.update(*proposal(p, gold))
        task.fit_threshold(metric)
        assert metric.compute()["example_f1"] == pytest.approx(score)
        assert name == "validation" or task.decoder in by[name]
        again = MultiLabel(task.config)
        again.restore(json.loads(json.dumps(task.facts())))
        assert again.decoder == task.decoder and again.protocol()["threshold"] == task.protocol()["threshold"]
        made, _ = proposal(p, gold)
        assert torch.equal(again.decode(made)[:, 0] > 0.5, task.decoder(p))
    fixed = Fit("expected_f1", temperature=2.0)
    assert fixed(p, gold) == LabelDecoder(temperature=2.0) and str(fixed) == "fixed"
    with pytest.raises(ConfigError, match=r"decode_temperature requires task\.decode"):
        loaded("multilabel", corpus="sample", decode_temperature=2.0)


@pytest.mark.parametrize("decoder", [LabelDecoder(0.6), LabelDecoder(temperature=0.0)])
def test_the_likeliest_label_stands_in_for_an_empty_set(decoder: LabelDecoder) -> None:
    p = torch.tensor([[0.1, 0.4, 0.2], [0.7, 0.8, 0.3], [0.3, 0.3, 0.3]])
    filled = replace(decoder, nonempty=True)
    expected = [[False, True, False], [True, True, False]]
    assert decoder(p).any(1).tolist() == [False, True, False]
    dependent = Mixture.of([LabelSet(["a", "b", "c"]).independent(torch.logit(p).unsqueeze(1))])
    for found in (filled(p), filled([dependent])):
        assert found[:2].tolist() == expected and found[2].sum() == 1


def test_a_nonempty_task_predicts_no_empty_set() -> None:
    task = loaded("multilabel", corpus="sample", decode="validation", threshold="validation", nonempty=True)
    p = torch.full((6, 40), 0.01)
    p[:, 3], p[:3, 5] = 0.2, 0.97
    gold = torch.zeros(6, 40, dtype=torch.bool)
    gold[:3, 5] = gold[3:, 3] = True
    metric = task.metric()
    metric.update(*proposal(p, gold))
    task.fit_threshold(metric)
    assert metric.compute()["accuracy"] == 1 and task.protocol()["threshold"].startswith("0.5; for an empty set")
    again = MultiLabel(task.config)
    again.restore(json.loads(json.dumps(task.facts())))
    made, _ = proposal(p, gold)
    assert torch.equal(again.decode(made)[:, 0] > 0.5, gold) and torch.equal(again.k_best(made, 2)[:, 0] > 0.5, gold)
    plain = loaded("multilabel", corpus="sample")
    assert torch.equal(again.k_best(made, 8)[:3], plain.k_best(made, 8)[:3])  # of rows with a label above the threshold
    again.decoder = LabelDecoder(temperature=1.0, nonempty=True)
    assert again.use_threshold() == 0.5 and again.decoder == LabelDecoder(nonempty=True)


SELECTIONS = ("example_f1", "micro_f1", "macro_f1", "accuracy")


def test_selection_scores_differ() -> None:
    p, gold = unequal()
    assert len({Fit("threshold", "validation", selection=name)(p, gold) for name in SELECTIONS}) == len(SELECTIONS)


def unequal() -> tuple[Tensor, Tensor]:
    """Probabilities and gold for which each selection score has another best threshold."""
    rng = torch.Generator().manual_seed(1)
    gold = torch.rand(60, 6, generator=rng) < torch.tensor([0.7, 0.5, 0.3, 0.2, 0.1, 0.05])
    p = torch.sigmoid(1.5 * torch.randn(60, 6, generator=rng) + 2 * gold - torch.linspace(0.5, 2.5, 6))
    return p, gold


@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_selection_score_chooses_the_decoder(selection: str) -> None:
    p, gold = unequal()
    task = loaded("multilabel", corpus="sample", decode="validation", threshold="validation", selection=selection)
    metric = task.metric()
    metric.update(*proposal(p, gold))
    task.fit_threshold(metric)
    ts = [0.0] if selection == "accuracy" else TEMPERATURES
    among = [*(LabelDecoder(t) for t in GRID), *(LabelDecoder(temperature=t) for t in ts)]
    by_hand = {decoder: scores(decoder(p), gold)[selection] for decoder in among}
    assert by_hand[task.decoder] == max(by_hand.values()) > min(by_hand.values())
    assert metric.compute()[task.selection] == pytest.approx(by_hand[task.decoder])
    assert task.protocol()["threshold"].endswith("the most probable set") == (selection == "accuracy")
    if (parts := metric.ratios()) is None:
        assert selection == "macro_f1"
    else:
        numerator, denominator = parts
        assert numerator.sum() / denominator.sum() == pytest.approx(by_hand[task.decoder])
        one = task.metric()  # of some examples alone
        one.update(*proposal(p[5:9], gold[5:9]))
        assert numerator[5:9].sum() / denominator[5:9].sum() == pytest.approx(one.compute()[selection])


def test_predictions_and_the_k_best_start_from_the_set_that_is_decoded() -> None:
    task = loaded("multilabel", corpus="sample", decode="expected_f1", decode_temperature=1.5)
    examples = task.part("test")[:4]
    batch = task.collate(examples)
    made = task.space.independent(2 * torch.randn(4, 1, 40, generator=torch.Generator().manual_seed(0)) - 2)
    decoded = task.decode(made)
    assert torch.equal(task.k_best(made, 3)[:, :1], decoded)
    for answer, row in zip(task.predictions(made, batch, examples), decoded[:, 0], strict=True):
        assert sorted(answer["labels"]) == sorted(task.space.labels[i] for i in row.nonzero()[:, 0].tolist())


def test_the_boundary_is_between_what_is_predicted_and_the_rest() -> None:
    logits = torch.tensor([[3.0, -1.0, 0.0], [1.0, 2.0, 4.0], [1.0, 2.0, 4.0]])
    predicted = torch.tensor([[True, False, True], [True, True, True], [False, False, False]])
    assert between(logits, predicted).tolist() == [[-0.5], [0.0], [5.0]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "ce"
    few = {"trainer.epochs": 2, "features.hidden": [8]}
    sp.train("labels", method="cross_entropy", out=path, quiet=True, device="cpu", **few)
    return path


def test_a_run_is_decoded_anew_with_its_own_nets(run: Path, tmp_path: Path) -> None:
    spen("decode", run, tmp_path / "f1", "--by", "expected_f1")
    new, old = RunFolder.open(tmp_path / "f1"), RunFolder.open(run)
    assert {name: tensor.tolist() for name, tensor in new.weights().items()} == {
        name: tensor.tolist() for name, tensor in old.weights().items()
    }
    assert new.config()["task"]["decode"] == "expected_f1" and new.facts()["decode_temperature"] in TEMPERATURES
    assert "highest expected F1" in new.metrics()["protocol"]["threshold"]
    predictor, task = sp.load(tmp_path / "f1"), loaded("multilabel", corpus="sample")
    found = predictor.predict_examples(task.part("test"))
    gold = [{task.space.labels[i] for i in example.gold.tolist()} for example in task.part("test")]
    f1 = [2 * len(g & {*a["labels"]}) / max(1, len(g) + len(a["labels"])) for a, g in zip(found, gold, strict=True)]
    assert sum(f1) / len(f1) == pytest.approx(new.metrics()["test"]["example_f1"])
    spen("decode", run, tmp_path / "whole", "--selection", "accuracy", "--nonempty")
    whole = RunFolder.open(tmp_path / "whole")
    assert all(answer["labels"] for answer in sp.load(tmp_path / "whole").predict_examples(task.part("test")))
    right = sum(whole.ratios("test")["numerator"].tolist())
    assert right / len(task.part("test")) == pytest.approx(whole.metrics()["test"]["accuracy"])
    both = " ".join(spen("compare", run, tmp_path / "whole", "--scores", "accuracy").output.split())
    assert "accuracy − " in both and "no bootstrap over examples, as the runs were selected by different scores" in both
    for words, said in (
        (("compare", run, tmp_path / "whole"), "name one with --scores"),
        (("decode", run, tmp_path / "no", "--selection", "f1"), "task.selection"),
        (("decode", run, run), "not empty"),
        (("decode", tmp_path, "x"), "no config.json"),
    ):
        assert said in spen(*words, status=2).output


def test_a_killed_decode_leaves_no_run_and_the_same_command_goes_on(run: Path, tmp_path: Path) -> None:
    words = ("decode", run, tmp_path / "out", "--by", "threshold")

    def die(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if not (child := os.fork()):
        decoding.finish = die  # all is written but for the scores
        spen(*words)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not (tmp_path / "out").exists() and len(list(tmp_path.iterdir())) == 1
    spen(*words)
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "what the killed one wrote is removed"
    assert RunFolder.open(tmp_path / "out").metrics() is not None


def test_a_full_disk_leaves_no_decoded_run(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("decode", run, tmp_path / "out", "--by", "threshold")
    for what in ("copyfile", "fsync"):
        with monkeypatch.context() as patch:

            def full(*_: object) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            patch.setattr(decoding.shutil if what == "copyfile" else os, what, full)
            done = CliRunner().invoke(app, list(map(str, words)))
        assert done.exit_code in (1, 2) and "No space left" in done.output, done.output
        assert not any(tmp_path.iterdir())
    spen(*words)


def test_the_old_decoder_gives_the_old_scores(run: Path, tmp_path: Path) -> None:
    spen("decode", run, tmp_path / "same", "--by", "threshold", "--threshold", "0.5")
    same, old = RunFolder.open(tmp_path / "same"), RunFolder.open(run)
    assert same.metrics() == old.metrics() and same.calibration() == old.calibration()


def test_what_minimises_the_energy_is_rounded(tmp_path: Path) -> None:
    """Its coordinates are no probabilities: where all are near 0, the set of highest expected F1 is that of all."""
    few = {"trainer.epochs": 1, "features.hidden": [8], "task.decode": "expected_f1"}
    path = tmp_path / "nce"
    sp.train("labels", method="nce", out=path, quiet=True, device="cpu", **few)
    plain, refined = sp.load(path), sp.load(path, refine="gbi")
    assert plain.task.decoder.temperature is not None and plain.refined == {}
    assert (refined.task.decoder, refined.refined["refined"]["threshold"]) == (LabelDecoder(0.5), 0.5)
    examples = loaded("multilabel", corpus="sample").part("test")[:5]
    for found, batch, _ in refined.proposals(examples):
        assert torch.equal(refined.task.decode(found, batch.x) > 0, found.mean > 0.5)
    assert sp.load(path, refine="rerank").task.decoder == plain.task.decoder


@pytest.mark.parametrize("decided", [{"decode": "expected_f1"}, {"threshold": "validation"}], ids=["f1", "threshold"])
def test_a_run_by_energy_predicts_as_the_energy_does(decided: dict[str, str], tmp_path: Path) -> None:
    few = {"trainer.epochs": 1, "features.hidden": [8], **{f"task.{key}": value for key, value in decided.items()}}
    path = tmp_path / "nce"
    sp.train("labels", method="nce", out=path, quiet=True, device="cpu", **few)
    examples = loaded("multilabel", corpus="sample").part("test")
    plain = RunFolder.open(path).metrics()["protocol"]
    alone = {"type": "reweight", "weight": 0.0, "temperature": 1.0, "samples": 9}
    refinements = ({"type": "rerank", "k": 1}, {"type": "rerank", "k": 4}, {"type": "gbi"}, alone)
    for number, refine in enumerate(refinements):
        out = decode_by_energy(path, tmp_path / str(number), refine, QUIET)
        asked, kept = sp.load(path, refine=refine), sp.load(out)
        assert kept.task.decoder == asked.task.decoder
        # Probabilities are calibrated to what each net gives.
        wanted = [set(answer["labels"]) for answer in asked.predict_examples(examples)]
        assert [set(answer["labels"]) for answer in kept.predict_examples(examples)] == wanted
        protocol = RunFolder.open(out).metrics()["protocol"]
        assert protocol["refined"].items() >= refine.items() and "refined" not in plain
        if refine["type"] == "gbi":
            assert protocol["threshold"].endswith(", fixed")
        elif refine is alone:
            assert protocol["threshold"] == "none: the energy has weight 0, and the net alone decides"
            asked_now = evaluating.protocol(asked.folder, asked.model, asked.task, asked.refined["refined"])
            assert asked_now["threshold"] == protocol["threshold"]
        else:
            assert protocol["refined"] == {**refine, "candidates": "best"}
            assert protocol["threshold"] == "none: the energy decides"
        assert protocol.items() >= evaluating.protocol(kept.folder, kept.model, kept.task).items()
        warned = " ".join(compare(read_groups([str(path), str(out)])).notes)
        assert f"refined: {{'type': '{refine['type']}'" in warned and "against none" in warned
    done = spen("decode", tmp_path / "1", tmp_path / "no", "--by", "threshold", status=2)
    assert "'rerank' chooses outputs by the energy" in " ".join(done.output.split())
    assert not (tmp_path / "no").exists()
