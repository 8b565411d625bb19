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
from tests.builtin.tasks.labels.test_multilabel import draw_labels, make_proposal
from tests.loaded import QUIET, loaded, spen


def enumerate_sets(p: Tensor) -> tuple[Tensor, Tensor]:
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
    best = best_sets(p)
    for row, chosen in zip(p, best, strict=True):
        sets, expected = enumerate_sets(row)
        assert expected[(sets == chosen).all(1)].item() == pytest.approx(expected.max().item(), abs=1e-9)
        ordered = row.sort(descending=True).values.unsqueeze(0)
        assert expected_f1(ordered, labels).max().item() == pytest.approx(expected.max().item(), abs=1e-12)


def test_few_nodes_are_as_good_as_those_of_the_exact_polynomial(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = torch.Generator().manual_seed(0)
    p = torch.sigmoid(
        2 * torch.randn(4, 400, generator=rng, dtype=torch.double) + torch.tensor([[-6], [-3], [-1], [0]])
    )
    ordered = p.sort(descending=True).values
    approximate = expected_f1(ordered, 300)
    monkeypatch.setattr(module, "_count_nodes", lambda degree, growth: -(-degree // 2))
    assert (approximate - expected_f1(ordered, 300)).abs().max() < 1e-10


def test_all_sizes_that_may_be_best_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = torch.Generator().manual_seed(0)
    p = torch.sigmoid(torch.randn(20, 90, generator=rng) + torch.linspace(-6, 1, 20).unsqueeze(1))
    best = best_sets(p)
    monkeypatch.setattr(module, "FIRST", 90)
    monkeypatch.setattr(module, "CELLS", 1)  # one example at a time
    assert torch.equal(best, best_sets(p))
    assert best.sum(1).max() > 32


def test_order_and_impossible_labels_do_not_matter() -> None:
    rng = torch.Generator().manual_seed(0)
    p = torch.rand(5, 7, generator=rng)
    order = torch.randperm(7, generator=rng)
    assert torch.equal(best_sets(p)[:, order], best_sets(p[:, order]))
    padded = torch.cat([p, torch.zeros(5, 3)], 1)
    assert torch.equal(best_sets(padded), torch.cat([best_sets(p), torch.zeros(5, 3, dtype=torch.bool)], 1))
    assert not best_sets(torch.zeros(2, 3)).any() and best_sets(torch.zeros(0, 3)).shape == (0, 3)
    assert torch.equal(best_sets(torch.tensor([[1.0, 0.5]])), torch.tensor([[True, False]]))  # a tie: fewer labels
    torch.testing.assert_close(tempered(p, 2.0), torch.sigmoid(torch.logit(p.double()) / 2))
    assert torch.equal(best_sets(p, 0.0), p > 0.5)


def test_the_best_allowed_decoder_is_chosen() -> None:
    p, gold = draw_labels()
    decoders = {
        "threshold": [LabelDecoder(t) for t in GRID],
        "expected_f1": [LabelDecoder(temperature=t) for t in TEMPERATURES],
    }
    best = {name: max(example_f1(d(p), gold).mean().item() for d in options) for name, options in decoders.items()}
    for name, score in (*best.items(), ("validation", max(best.values()))):
        task = loaded("multilabel", corpus="sample", decode=name, threshold="validation")
        metric = task.metric()
        metric.update(*make_proposal(p, gold))
        task.fit_threshold(metric)
        assert metric.compute()["example_f1"] == pytest.approx(score)
        assert name == "validation" or task.decoder in decoders[name]
        restored = MultiLabel(task.config)
        restored.restore(json.loads(json.dumps(task.facts())))
        assert restored.decoder == task.decoder and restored.protocol()["threshold"] == task.protocol()["threshold"]
        q, _ = make_proposal(p, gold)
        assert torch.equal(restored.decode(q)[:, 0] > 0.5, task.decoder(p))
    fixed = Fit("expected_f1", temperature=2.0)
    assert fixed(p, gold) == LabelDecoder(temperature=2.0) and str(fixed) == "fixed"
    with pytest.raises(ConfigError, match=r"decode_temperature requires task\.decode"):
        loaded("multilabel", corpus="sample", decode_temperature=2.0)


@pytest.mark.parametrize("decoder", [LabelDecoder(0.6), LabelDecoder(temperature=0.0)])
def test_the_likeliest_label_replaces_an_empty_set(decoder: LabelDecoder) -> None:
    p = torch.tensor([[0.1, 0.4, 0.2], [0.7, 0.8, 0.3], [0.3, 0.3, 0.3]])
    filled = replace(decoder, nonempty=True)
    expected = [[False, True, False], [True, True, False]]
    assert decoder(p).any(1).tolist() == [False, True, False]
    dependent = Mixture.of([LabelSet(["a", "b", "c"]).independent(torch.logit(p).unsqueeze(1))])
    for predicted in (filled(p), filled([dependent])):
        assert predicted[:2].tolist() == expected and predicted[2].sum() == 1


def test_a_nonempty_task_predicts_no_empty_set() -> None:
    task = loaded("multilabel", corpus="sample", decode="validation", threshold="validation", nonempty=True)
    p = torch.full((6, 40), 0.01)
    p[:, 3], p[:3, 5] = 0.2, 0.97
    gold = torch.zeros(6, 40, dtype=torch.bool)
    gold[:3, 5] = gold[3:, 3] = True
    metric = task.metric()
    metric.update(*make_proposal(p, gold))
    task.fit_threshold(metric)
    assert metric.compute()["accuracy"] == 1 and task.protocol()["threshold"].startswith("0.5; for an empty set")
    restored = MultiLabel(task.config)
    restored.restore(json.loads(json.dumps(task.facts())))
    q, _ = make_proposal(p, gold)
    assert torch.equal(restored.decode(q)[:, 0] > 0.5, gold) and torch.equal(restored.k_best(q, 2)[:, 0] > 0.5, gold)
    plain = loaded("multilabel", corpus="sample")
    assert torch.equal(restored.k_best(q, 8)[:3], plain.k_best(q, 8)[:3])  # of rows with a label above the threshold
    restored.decoder = LabelDecoder(temperature=1.0, nonempty=True)
    assert restored.use_threshold() == 0.5 and restored.decoder == LabelDecoder(nonempty=True)


SELECTIONS = ("example_f1", "micro_f1", "macro_f1", "accuracy")


def test_selection_scores_differ() -> None:
    p, gold = draw_unequal()
    assert len({Fit("threshold", "validation", selection=name)(p, gold) for name in SELECTIONS}) == len(SELECTIONS)


def draw_unequal() -> tuple[Tensor, Tensor]:
    """Probabilities and gold for which the best threshold differs by selection score."""
    rng = torch.Generator().manual_seed(1)
    gold = torch.rand(60, 6, generator=rng) < torch.tensor([0.7, 0.5, 0.3, 0.2, 0.1, 0.05])
    p = torch.sigmoid(1.5 * torch.randn(60, 6, generator=rng) + 2 * gold - torch.linspace(0.5, 2.5, 6))
    return p, gold


@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_selection_score_chooses_the_decoder(selection: str) -> None:
    p, gold = draw_unequal()
    task = loaded("multilabel", corpus="sample", decode="validation", threshold="validation", selection=selection)
    metric = task.metric()
    metric.update(*make_proposal(p, gold))
    task.fit_threshold(metric)
    temperatures = [0.0] if selection == "accuracy" else TEMPERATURES
    candidates = [*(LabelDecoder(t) for t in GRID), *(LabelDecoder(temperature=t) for t in temperatures)]
    by_hand = {decoder: scores(decoder(p), gold)[selection] for decoder in candidates}
    assert by_hand[task.decoder] == max(by_hand.values()) > min(by_hand.values())
    assert metric.compute()[task.selection] == pytest.approx(by_hand[task.decoder])
    assert task.protocol()["threshold"].endswith("the most probable set") == (selection == "accuracy")
    if (parts := metric.ratios()) is None:
        assert selection == "macro_f1"
    else:
        numerator, denominator = parts
        assert numerator.sum() / denominator.sum() == pytest.approx(by_hand[task.decoder])
        partial = task.metric()  # on some of the examples
        partial.update(*make_proposal(p[5:9], gold[5:9]))
        assert numerator[5:9].sum() / denominator[5:9].sum() == pytest.approx(partial.compute()[selection])


def test_predictions_and_the_k_best_start_from_the_decoded_set() -> None:
    task = loaded("multilabel", corpus="sample", decode="expected_f1", decode_temperature=1.5)
    examples = task.part("test")[:4]
    batch = task.collate(examples)
    q = task.space.independent(2 * torch.randn(4, 1, 40, generator=torch.Generator().manual_seed(0)) - 2)
    decoded = task.decode(q)
    assert torch.equal(task.k_best(q, 3)[:, :1], decoded)
    for answer, row in zip(task.predictions(q, batch, examples), decoded[:, 0], strict=True):
        assert sorted(answer["labels"]) == sorted(task.space.labels[i] for i in row.nonzero()[:, 0].tolist())


def test_the_boundary_separates_predicted_labels_from_others() -> None:
    logits = torch.tensor([[3.0, -1.0, 0.0], [1.0, 2.0, 4.0], [1.0, 2.0, 4.0]])
    predicted = torch.tensor([[True, False, True], [True, True, True], [False, False, False]])
    assert between(logits, predicted).tolist() == [[-0.5], [0.0], [5.0]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "ce"
    settings = {"trainer.epochs": 2, "features.hidden": [8]}
    sp.train("labels", method="cross_entropy", out=path, quiet=True, device="cpu", **settings)
    return path


def test_decode_uses_the_nets_of_the_run(run: Path, tmp_path: Path) -> None:
    spen("decode", run, tmp_path / "f1", "--by", "expected_f1")
    decoded, original = RunFolder.open(tmp_path / "f1"), RunFolder.open(run)
    assert {name: tensor.tolist() for name, tensor in decoded.weights().items()} == {
        name: tensor.tolist() for name, tensor in original.weights().items()
    }
    assert decoded.config()["task"]["decode"] == "expected_f1" and decoded.facts()["decode_temperature"] in TEMPERATURES
    assert "highest expected F1" in decoded.metrics()["protocol"]["threshold"]
    predictor, task = sp.load(tmp_path / "f1"), loaded("multilabel", corpus="sample")
    answers = predictor.predict_examples(task.part("test"))
    gold = [{task.space.labels[i] for i in example.gold.tolist()} for example in task.part("test")]
    f1 = [2 * len(g & {*a["labels"]}) / max(1, len(g) + len(a["labels"])) for a, g in zip(answers, gold, strict=True)]
    assert sum(f1) / len(f1) == pytest.approx(decoded.metrics()["test"]["example_f1"])
    spen("decode", run, tmp_path / "whole", "--selection", "accuracy", "--nonempty")
    nonempty = RunFolder.open(tmp_path / "whole")
    assert all(answer["labels"] for answer in sp.load(tmp_path / "whole").predict_examples(task.part("test")))
    correct = sum(nonempty.ratios("test")["numerator"].tolist())
    assert correct / len(task.part("test")) == pytest.approx(nonempty.metrics()["test"]["accuracy"])
    text = " ".join(spen("compare", run, tmp_path / "whole", "--scores", "accuracy").output.split())
    assert "accuracy − " in text and "no bootstrap over examples, as the runs were selected by different scores" in text
    for arguments, message in (
        (("compare", run, tmp_path / "whole"), "name one with --scores"),
        (("decode", run, tmp_path / "no", "--selection", "f1"), "task.selection"),
        (("decode", run, run), "not empty"),
        (("decode", tmp_path, "x"), "no config.json"),
    ):
        assert message in spen(*arguments, status=2).output


def test_a_killed_decode_leaves_no_run_and_can_be_repeated(run: Path, tmp_path: Path) -> None:
    arguments = ("decode", run, tmp_path / "out", "--by", "threshold")

    def die(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if not (child := os.fork()):
        decoding.finish = die  # everything is written except the scores
        spen(*arguments)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not (tmp_path / "out").exists() and len(list(tmp_path.iterdir())) == 1
    spen(*arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "what the killed one wrote is removed"
    assert RunFolder.open(tmp_path / "out").metrics() is not None


def test_a_full_disk_leaves_no_decoded_run(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("decode", run, tmp_path / "out", "--by", "threshold")
    for function in ("copyfile", "fsync"):
        with monkeypatch.context() as patch:

            def fail(*_: object) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            patch.setattr(decoding.shutil if function == "copyfile" else os, function, fail)
            result = CliRunner().invoke(app, list(map(str, arguments)))
        assert result.exit_code in (1, 2) and "No space left" in result.output, result.output
        assert not any(tmp_path.iterdir())
    spen(*arguments)


def test_the_old_decoder_gives_the_old_scores(run: Path, tmp_path: Path) -> None:
    spen("decode", run, tmp_path / "same", "--by", "threshold", "--threshold", "0.5")
    decoded, original = RunFolder.open(tmp_path / "same"), RunFolder.open(run)
    assert decoded.metrics() == original.metrics() and decoded.calibration() == original.calibration()


def test_minimisers_of_the_energy_are_rounded(tmp_path: Path) -> None:
    """Coordinates are not probabilities: where all are near 0, the set of all labels has the highest expected F1."""
    settings = {"trainer.epochs": 1, "features.hidden": [8], "task.decode": "expected_f1"}
    path = tmp_path / "nce"
    sp.train("labels", method="nce", out=path, quiet=True, device="cpu", **settings)
    plain, refined = sp.load(path), sp.load(path, refine="gbi")
    assert plain.task.decoder.temperature is not None and plain.refined == {}
    assert (refined.task.decoder, refined.refined["refined"]["threshold"]) == (LabelDecoder(0.5), 0.5)
    examples = loaded("multilabel", corpus="sample").part("test")[:5]
    for output, batch, _ in refined.proposals(examples):
        assert torch.equal(refined.task.decode(output, batch.x) > 0, output.mean > 0.5)
    assert sp.load(path, refine="rerank").task.decoder == plain.task.decoder


@pytest.mark.parametrize("options", [{"decode": "expected_f1"}, {"threshold": "validation"}], ids=["f1", "threshold"])
def test_a_run_by_energy_predicts_as_the_energy_does(options: dict[str, str], tmp_path: Path) -> None:
    settings = {"trainer.epochs": 1, "features.hidden": [8], **{f"task.{key}": value for key, value in options.items()}}
    path = tmp_path / "nce"
    sp.train("labels", method="nce", out=path, quiet=True, device="cpu", **settings)
    examples = loaded("multilabel", corpus="sample").part("test")
    plain = RunFolder.open(path).metrics()["protocol"]
    net_only = {"type": "reweight", "weight": 0.0, "temperature": 1.0, "samples": 9}
    refinements = ({"type": "rerank", "k": 1}, {"type": "rerank", "k": 4}, {"type": "gbi"}, net_only)
    for number, refine in enumerate(refinements):
        out = decode_by_energy(path, tmp_path / str(number), refine, QUIET)
        refined, saved = sp.load(path, refine=refine), sp.load(out)
        assert saved.task.decoder == refined.task.decoder
        # Probabilities are calibrated to the outputs of each net.
        expected = [set(answer["labels"]) for answer in refined.predict_examples(examples)]
        assert [set(answer["labels"]) for answer in saved.predict_examples(examples)] == expected
        protocol = RunFolder.open(out).metrics()["protocol"]
        assert protocol["refined"].items() >= refine.items() and "refined" not in plain
        if refine["type"] == "gbi":
            assert protocol["threshold"].endswith(", fixed")
        elif refine is net_only:
            assert protocol["threshold"] == "none: the energy has weight 0, and the net alone decides"
            refined_protocol = evaluating.protocol(
                refined.folder, refined.model, refined.task, refined.refined["refined"]
            )
            assert refined_protocol["threshold"] == protocol["threshold"]
        else:
            assert protocol["refined"] == {**refine, "candidates": "best"}
            assert protocol["threshold"] == "none: the energy decides"
        assert protocol.items() >= evaluating.protocol(saved.folder, saved.model, saved.task).items()
        notes = " ".join(compare(read_groups([str(path), str(out)])).notes)
        assert f"refined: {{'type': '{refine['type']}'" in notes and "against none" in notes
    result = spen("decode", tmp_path / "1", tmp_path / "no", "--by", "threshold", status=2)
    assert "'rerank' chooses outputs by the energy" in " ".join(result.output.split())
    assert not (tmp_path / "no").exists()
