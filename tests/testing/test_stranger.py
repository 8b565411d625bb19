"""A plugin of every hook by somebody who has read docs/plugins.md: it is found, keeps the contracts and trains."""

from __future__ import annotations

import ast
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import Result
from typer.testing import CliRunner

import spen_plugins as sp
from spen_plugins import figures, nn, testing
from tests.loaded import ROOT

SOURCE = Path(__file__).parent / "stranger" / "acme.py"
WORDS = {"weather": ["rain", "wind", "snow"], "sports": ["goal", "match", "team"], "money": ["bank", "price", "loan"]}


def lines(n: int, seed: int) -> str:
    rng = random.Random(seed)
    topics = [sorted(WORDS)[i % 3] for i in range(n)]
    return "".join(json.dumps({"text": " ".join(rng.choices(WORDS[t], k=3)), "topic": t}) + "\n" for t in topics)


def run_spen(*words: str) -> Result:
    """`spen-run` with these words."""
    from spen_plugins.cli.run import app

    return CliRunner().invoke(app, [*words, "--device", "cpu", "--quiet"])


@pytest.fixture
def config(site, tmp_path: Path) -> dict[str, Any]:
    """The plugin, installed, and an experiment of nothing but it."""
    site.install("acme", SOURCE.read_text(encoding="utf-8"))
    files = {part: tmp_path / f"{part}.jsonl" for part in sp.PARTS}
    for seed, file in enumerate(files.values()):
        file.write_text(lines(30, seed))
    return {
        "task": {"type": "acme.topics", **{part: str(file) for part, file in files.items()}},
        "features": {"type": "acme.sums"},
        "inference_net": {"type": "acme.linear"},
        "energy": {"type": "acme.pairs", "strength": 0.5},
        "energy_loss": {"type": "acme.hinge", "cost_net": {"type": "acme.louder"}},
        "trainer": {"type": "acme.turns", "epochs": 1, "batch_size": 4, "net": {"lr": 0.05}, "energy": {"lr": 0.01}},
    }


def test_it_imports_public_names_alone() -> None:
    public = {"spen_plugins": sp.__all__, "spen_plugins.nn": nn.__all__, "spen_plugins.figures": figures.__all__}
    for node in ast.walk(ast.parse(SOURCE.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("spen_"):
            assert {alias.name for alias in node.names} <= set(public[node.module])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sp":
            assert node.attr in public["spen_plugins"]


def test_it_has_every_hook(config: dict[str, Any]) -> None:
    registry = sp.Registry()
    [plugin] = [plugin for plugin in registry.check() if plugin.name == "acme"]
    assert plugin.error is None
    from spen_plugins.registry.kinds import KINDS

    for kind in KINDS:
        assert any(name.startswith("acme.") for name in registry.names(kind)), kind


def test_its_components_keep_the_contracts(config: dict[str, Any]) -> None:
    import spen_acme as acme

    torch.manual_seed(0)
    task = acme.Topics(acme.Topics.Config(**{key: value for key, value in config["task"].items() if key != "type"}))
    task.load()

    def features() -> sp.FeatureNetwork:
        return acme.Sums(acme.Sums.Config(), task)

    net, energy = acme.Linear(sp.Config(), task, features()), acme.Pairs(acme.Pairs.Config(), task, features())
    cost_net = acme.Louder(sp.Config(), task)
    loss = acme.Hinge(acme.Hinge.Config(), task, cost_net=cost_net)
    testing.check_task(task)
    testing.check_space(task.space)
    testing.check_feature_network(features(), task)
    testing.check_inference_net(net, task)
    testing.check_energy(energy, task)
    testing.check_cost_net(cost_net, net, task)
    testing.check_energy_loss(loss, energy, net, task)
    testing.check_trainer(acme.Turns(acme.Turns.Config()), sp.Model(net, energy, loss), task)


def test_it_trains_predicts_and_is_loaded_again(config: dict[str, Any], tmp_path: Path) -> None:
    file, out = tmp_path / "mine.json", tmp_path / "run"
    file.write_text(json.dumps(config))
    done = run_spen(str(file), "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "accuracy" in sp.RunFolder.open(out).metrics()["test"]
    from spen_plugins.cli.main import app

    drawn = CliRunner().invoke(app, ["plot", "topic-shares", str(out), "--out", str(tmp_path / "shares")])
    assert drawn.exit_code == 0 and (tmp_path / "shares.svg").is_file(), drawn.output
    for path in sp.PARTS:
        (tmp_path / f"{path}.jsonl").unlink()
    answers = sp.load(out).predict([{"text": "rain and snow"}, {"text": ""}], energy=True)
    assert all(answer["topic"] in WORDS and isinstance(answer["energy"], float) for answer in answers)


def test_its_command_and_its_model_are_found(config: dict[str, Any], tmp_path: Path) -> None:
    from spen_plugins.cli.main import app

    done = CliRunner().invoke(app, ["count-topics", str(tmp_path / "train.jsonl")])
    assert done.exit_code == 0 and done.output.split() == ["money", "10", "sports", "10", "weather", "10"]
    assert sp.Registry().resolve("model", "acme.spen_multilabel")().name == "model"


def test_its_errors_are_sentences(config: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    del config["energy_loss"]["cost_net"]
    file.write_text(json.dumps(config))
    done = run_spen(str(file), "--out", str(tmp_path / "run"))
    assert done.exit_code == 2 and "needs a cost net" in done.output
    config["energy_loss"]["cost_net"] = {"type": "acme.louder"}
    (tmp_path / "train.jsonl").write_text('{"texts": "rain"}\n')
    file.write_text(json.dumps(config))
    done = run_spen(str(file), "--out", str(tmp_path / "run"))
    assert done.exit_code == 2 and "train.jsonl:1" in done.output


def test_the_experiment_on_the_page_trains(site, tmp_path: Path) -> None:
    page = (ROOT / "docs/plugins.md").read_text(encoding="utf-8")
    [source] = re.findall(r"<!-- file: spen_acme.py -->\n```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    [experiment] = re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    site.install("acme", source)
    file, out = tmp_path / "mine.json", tmp_path / "run"
    file.write_text(experiment)
    assert run_spen(str(file), "--out", str(out), "trainer.epochs=1").exit_code == 0
    assert sp.RunFolder.open(out).metrics()["test"]
