"""Several encoders in a run: each has a folder of its own among the run's assets, and pieces of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from spen_plugins.builtin.features.transformer import Transformer
from spen_plugins.builtin.tasks.roles.srl import SemanticRoles
from spen_plugins.config.evaluation import evaluate
from spen_plugins.errors import ConfigError
from spen_plugins.runs.train import runner
from tests.builtin.features.test_encoders import SENTENCE, ready, save_model
from tests.loaded import loaded

ALIKE = [("日本", "模型"), ("x.1", "x-1"), ("x.1", "x_1"), ("a/b", "a-b"), ("a" * 100 + "/b", "c" + "a" * 99 + "/b")]


@pytest.fixture
def task() -> SemanticRoles:
    return loaded("srl", corpus="sample")


def encoders(task: SemanticRoles, names: tuple[str, str]) -> list[Transformer]:
    """Networks of two encoders, whose tokenisers differ."""
    networks = []
    for name, ending in zip(names, ("##s", "##w"), strict=True):
        folder = Path(name)
        folder.mkdir(parents=True)
        save_model(folder)
        vocabulary = (folder / "vocab.txt").read_text()
        (folder / "vocab.txt").write_text(vocabulary.replace("##s", ending))
        networks.append(ready(task, Transformer, model=f"./{name}"))
    return networks


@pytest.mark.parametrize("names", ALIKE, ids=["letters", "dots", "lines", "slashes", "long"])
def test_two_encoders_have_assets_and_pieces_of_their_own(
    task: SemanticRoles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    networks = encoders(task, names)
    assert len({network.indexer()[0] for network in networks}) == 2
    assert all("." not in network.indexer()[0] for network in networks)
    for network in networks:
        network.save_assets(tmp_path / "assets")
    assert len(list((tmp_path / "assets").iterdir())) == 2
    wanted = [network.indexer()[1].index(SENTENCE).ids.tolist() for network in networks]
    assert wanted[0] != wanted[1]
    again = [
        ready(task, Transformer, model=Transformer.relocated(n.config, tmp_path / "assets").model) for n in networks
    ]
    assert [network.indexer()[1].index(SENTENCE).ids.tolist() for network in again] == wanted


@pytest.mark.parametrize("name", ["minilm", "bert-base-cased"])
def test_a_name_of_plain_letters_is_the_folder_s(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert Transformer.relocated(Transformer.Config(model=name), tmp_path).model == str(tmp_path / name)


def test_a_changed_tokeniser_is_seen(task: SemanticRoles, tmp_path: Path) -> None:
    save_model(tmp_path)
    (tmp_path / "README.md").write_text("Not read.")
    network = ready(task, Transformer, model=str(tmp_path))
    before = network.checksums()
    assert {Path(path).name for path in before} >= {"config.json", "vocab.txt"}
    assert not {Path(path).name for path in before} & {"README.md", "model.safetensors"}
    (tmp_path / "vocab.txt").write_text((tmp_path / "vocab.txt").read_text() + "##more\n")
    now = network.checksums()
    assert {path for path in now if before[path] != now[path]} == {str(tmp_path / "vocab.txt")}


def test_a_run_is_not_resumed_with_another_tokeniser(tmp_path: Path) -> None:
    (model := tmp_path / "bert").mkdir()
    save_model(model)
    words = {"encoder": str(model), "method": "cross_entropy", "trainer.epochs": "1"}
    config = evaluate("configs/tags.jsonnet", words)
    run = runner.run(config, "tags", tmp_path / "run", runner.RunOptions("cpu", quiet=True))
    (run / "metrics.json").unlink()
    *others, last, first = (model / "vocab.txt").read_text().split()
    (model / "vocab.txt").write_text("\n".join([*others, first, last]) + "\n")
    with pytest.raises(ConfigError, match=r"files it reads changed since it began: .*vocab\.txt"):
        runner.resume(run, runner.RunOptions(quiet=True))
