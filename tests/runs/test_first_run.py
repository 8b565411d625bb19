"""A newcomer trains `srl_seal` on the sample corpus with its defaults, then predicts, evaluates and scores."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

import spen_plugins as sp
from spen_plugins.samples import srl
from tests.loaded import ROOT, loaded, spen, spen_run

pytestmark = pytest.mark.usefixtures("whole_samples")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The run folder and the output, from a separate process on the whole corpus."""
    folder = tmp_path_factory.mktemp("runs") / "first"
    code = "import sys; from spen_plugins.cli.run import main; sys.exit(main())"
    line = [sys.executable, "-c", code, "configs/srl_seal.jsonnet", "--out", str(folder)]
    result = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder, result.stdout


def score_majority() -> dict[str, Any]:
    """Scores of giving each word its most frequent training tag, by its side of the predicate."""
    task = loaded("srl", corpus="sample")
    counts: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)

    def read_part(name: str) -> Any:
        batch = task.collate(list(task.part(name)))
        positions = batch.x.inputs["predicate"].argmax(1, keepdim=True)
        side = torch.sign(torch.arange(batch.x.inputs["words"].shape[1]) - positions)
        return batch, batch.x.inputs["words"], side

    batch, words, side = read_part("train")
    gold = batch.gold[:, 0].argmax(-1)
    for word, sign, tag in zip(words[batch.x.mask], side[batch.x.mask], gold[batch.x.mask], strict=True):
        counts[int(word), int(sign)][int(tag)] += 1
    outside = task.space.tags.index("O")
    batch, words, side = read_part("test")
    best = [
        [
            counts[int(w), int(s)].most_common(1)[0][0] if counts[int(w), int(s)] else outside
            for w, s in zip(*row, strict=True)
        ]
        for row in zip(words, side, strict=True)
    ]
    metric = task.metric()
    logits = 20 * torch.nn.functional.one_hot(torch.tensor(best), len(task.space.tags)).float().unsqueeze(1)
    metric.update(task.space.independent(logits, batch.x.mask), batch)
    return metric.compute()


GOLD = "Anna\t-\t(ARG0*)\nsent\tsend\t(V*)\nthe\t-\t(ARG1*\nletter\t-\t*)\n.\t-\t*\n"


def test_each_command_does_its_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newcomer's commands, with one short epoch of training."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(srl, "SIZES", {"train": 100, "validation": 20, "test": 20})
    folder, file = tmp_path / "first", tmp_path / "gold.conll"
    file.write_text(GOLD)

    settings = ("trainer.epochs=1", "energy_loss.samples=2")
    output = spen_run("configs/srl_seal.jsonnet", *settings, "--out", folder).stdout
    assert "span_f1" in output and "CoNLL-2005" in output, "scores with their definition"
    predicted = json.loads(spen("predict", folder, "examples/sentences.conll").stdout.splitlines()[0])
    assert predicted["predicate"]["word"] == "sent" and {"words", "tags", "arguments"} <= predicted.keys()
    answer = json.loads(spen("evaluate", folder, file).stdout)
    assert 0 <= answer["scores"]["span_f1"] <= 1 and "1 examples" in answer["protocol"]["split"]
    scored = json.loads(spen("score", folder, file).stdout)
    assert isinstance(scored["energy"], float)


@pytest.mark.slow
def test_it_learns(run: tuple[Path, str]) -> None:
    folder, output = run
    scores = sp.RunFolder(folder).metrics()["test"]
    assert scores["span_f1"] > score_majority()["span_f1"] + 0.3
    assert scores["span_f1"] > 0.9 and scores["ucr"] < 0.1
    assert "span_f1" in output and "CoNLL-2005" in output, "scores with their definition"


@pytest.mark.slow
def test_a_file_is_annotated_evaluated_and_scored(run: tuple[Path, str], tmp_path: Path) -> None:
    folder = run[0]
    [first, *_] = map(json.loads, spen("predict", folder, ROOT / "examples/sentences.conll").stdout.splitlines())
    arguments = {(argument["role"], argument["text"]) for argument in first["arguments"]}
    assert ("ARG0", "Anna") in arguments and first["predicate"]["word"] == "sent"
    file = tmp_path / "gold.conll"
    file.write_text(GOLD)
    answer = json.loads(spen("evaluate", folder, file).stdout)
    assert answer["scores"]["span_f1"] == 1.0 and "1 examples" in answer["protocol"]["split"]
    energies = json.loads(spen("score", folder, file).stdout)
    wrong_file = tmp_path / "wrong.conll"
    wrong_file.write_text(GOLD.replace("ARG0", "ARG1"))
    worse = json.loads(spen("score", folder, wrong_file).stdout)
    predictor = sp.load(folder)
    for path, scored in ((file, energies), (wrong_file, worse)):
        batch = predictor.task.collate(predictor.task.read(str(path)))
        with torch.no_grad():
            energy = predictor.model.energy.at(batch.x)(batch.gold)
        assert scored["energy"] == pytest.approx(energy.item(), rel=1e-5), "the energy itself, of which low is good"
