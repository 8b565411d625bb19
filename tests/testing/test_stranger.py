"""A plugin written from docs/plugins.md: it is found, keeps the contracts and trains."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import spen_plugins as sp
from spen_plugins import testing
from spen_plugins.registry.kinds import KINDS
from tests.loaded import ROOT, loaded, parsed, spen, spen_run, written
from tests.pages import blocks, files

SOURCE = Path(__file__).parent / "stranger" / "acme.py"


@pytest.fixture
def config(site) -> dict[str, Any]:
    """An experiment with all components of the plugin, which is installed."""
    site.install("acme", SOURCE.read_text(encoding="utf-8"))
    return {
        "task": {"type": "multilabel", "corpus": "sample"},
        "features": {"type": "acme.sums"},
        "inference_net": {"type": "independent"},
        "energy": {"type": "acme.pairs", "strength": 0.5},
        "energy_loss": {"type": "acme.hinge", "cost_net": {"type": "acme.louder"}},
        "trainer": {"type": "seal.dynamic", "epochs": 1},
    }


def test_the_plugin_is_found(config: dict[str, Any]) -> None:
    registry = sp.Registry()
    [plugin] = [plugin for plugin in registry.check() if plugin.name == "acme"]
    assert plugin.error is None
    for kind in ("features", "energy", "energy_loss", "cost_net", "figure", "model"):
        assert any(name.startswith("acme.") for name in registry.names(kind)), kind
    assert registry.resolve("model", "acme.spen_multilabel")().name == "model"


def test_the_pages_minimal_net_keeps_the_contract() -> None:
    [block] = [block for block in blocks("docs/plugins.md", "python") if "sp.InferenceNet" in block]
    names: dict[str, Any] = {}
    exec(block, names)
    for task in (testing.ToyLabels(), testing.ToyTags()):
        testing.check_inference_net(names["Linear"](sp.Config(), task, testing.ToyFeatures(task)), task)


def test_the_plugin_and_the_tutorial_have_every_hook() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in [SOURCE, *(ROOT / "docs/tutorial").rglob("*.py")])
    assert {kind.hook for kind in KINDS.values()} == set(re.findall(r"^def (spen_\w+)", sources, re.MULTILINE))


def test_its_components_keep_the_contracts(config: dict[str, Any]) -> None:
    import spen_acme as acme

    task = loaded("multilabel", corpus="sample")
    features = acme.Sums(acme.Sums.Config(), task)
    independent, settings = parsed("inference_net", "independent")
    net, energy = independent(settings, task, features), acme.Pairs(acme.Pairs.Config(), task, features)
    cost_net = acme.Louder(sp.Config(), task)
    testing.check_feature_network(features, task)
    testing.check_energy(energy, task)
    testing.check_cost_net(cost_net, net, task)
    testing.check_energy_loss(acme.Hinge(acme.Hinge.Config(), task, cost_net=cost_net), energy, net, task)


def test_it_trains_and_its_figure_is_drawn(config: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "run"
    spen_run(written(tmp_path / "mine.json", json.dumps(config)), "--out", out, "--device", "cpu", "--quiet")
    assert "example_f1" in sp.RunFolder.open(out).metrics()["test"]
    spen("plot", "label-counts", out, "--out", tmp_path / "counts")
    assert (tmp_path / "counts.svg").is_file()


def test_its_errors_are_sentences(config: dict[str, Any], tmp_path: Path) -> None:
    del config["energy_loss"]["cost_net"]
    path = written(tmp_path / "mine.json", json.dumps(config))
    assert (
        "needs a cost net" in spen_run(path, "--out", tmp_path / "run", "--device", "cpu", "--quiet", status=2).output
    )


def test_the_experiment_on_the_page_trains(site, tmp_path: Path) -> None:
    site.install("acme", files("docs/plugins.md")["spen_acme.py"])
    [experiment] = blocks("docs/plugins.md", "json")
    path, out = written(tmp_path / "mine.json", experiment), tmp_path / "run"
    spen_run(path, "--out", out, "--device", "cpu", "--quiet", "trainer.epochs=1")
    assert sp.RunFolder.open(out).metrics()["test"]
