"""The shipped configs: every data set with every method is a valid experiment, and says what its table says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spen_plugins.config import evaluate, parameters
from spen_plugins.errors import ConfigError
from spen_plugins.experiment import check
from spen_plugins.registry import Registry

ROOT = Path(__file__).resolve().parent.parent
MLC, SRL = ROOT / "configs/mlc_seal.jsonnet", ROOT / "configs/srl_seal.jsonnet"
REGISTRY = Registry()

SEAL = ("nce", "ranking", "margin", "margin_compound", "regression", "regression_s")
MULTILABEL = ("sample", "bibtex", "delicious", "genbase", "cal500", "spo_fun", "expr_fun", "mine.arff", "my/file")
CASES = [
    *((MLC, data, method) for data in MULTILABEL for method in ("cross_entropy", *SEAL)),
    *(
        (SRL, data, method)
        for data in ("sample", "ewt", "files", "a.conll")
        for method in ("cross_entropy", "crf", *SEAL)
    ),
]


def experiment(path: Path, **arguments: str) -> dict:
    config = evaluate(path, arguments)
    check(config, path, REGISTRY)
    return config


@pytest.mark.parametrize(("path", "data", "method"), CASES)
@pytest.mark.parametrize("schedule", ["light", "released"])
def test_every_data_set_with_every_method_is_an_experiment(path: Path, data: str, method: str, schedule: str) -> None:
    config = experiment(path, data=data, method=method, schedule=schedule)
    assert ("energy" in config) == (method in SEAL)
    if method in SEAL:
        assert config["energy_loss"]["type"] == f"seal.{method}"
        trainer = config["trainer"]
        if schedule == "light":
            assert trainer["rounds"] == 1 and max(trainer["energy_steps"], trainer["net_steps"]) <= 3


def test_released_bibtex_nce_is_the_authors_row() -> None:
    config = experiment(MLC, data="bibtex", schedule="released")
    trainer = config["trainer"]
    assert (trainer["rounds"], trainer["energy_steps"], trainer["net_steps"]) == (5, 12, 1)  # "12:5"
    assert (trainer["energy_weight"], config["energy_loss"]["samples"]) == (5.51, 20)
    assert trainer["energy_optimizer"]["lr"] == 4.51e-5 and trainer["net_optimizer"]["lr"] == 1.17e-3
    assert config["features"]["hidden"] == [400, 400] and config["features"]["dropout"] == 0.5
    assert config["energy"]["hidden"] == 200


def test_margin_turns_the_players_round() -> None:
    trainer = experiment(MLC, data="bibtex", method="margin", schedule="released")["trainer"]
    assert (trainer["first"], trainer["rounds"], trainer["energy_steps"], trainer["net_steps"]) == ("net", 1, 1, 6)


def test_light_bibtex_has_the_rates_of_three_steps() -> None:
    trainer = experiment(MLC, data="bibtex")["trainer"]
    assert (trainer["energy_steps"], trainer["net_steps"], trainer["energy_optimizer"]["lr"]) == (3, 1, 2e-4)


def test_arguments_reach_their_keys() -> None:
    given = {"samples": "7", "energy_weight": "0", "energy_steps": "2", "net_steps": "3", "rounds": "4", "epochs": "5"}
    given |= {"net_lr": "0.01", "energy_lr": "0.02", "weight_decay": "0.03", "batch_size": "6", "patience": "8"}
    given |= {"hidden": "[9, 10]", "dropout": "0.25", "global_hidden": "11", "threshold": "validation", "seed": "12"}
    config = experiment(MLC, data="genbase", **given)
    trainer = config["trainer"]
    assert trainer["energy_optimizer"] == {"type": "adamw", "lr": 0.02, "weight_decay": 0.03}
    assert trainer["net_optimizer"] == {"type": "adamw", "lr": 0.01, "weight_decay": 0.03}
    assert [trainer[k] for k in ("energy_weight", "energy_steps", "net_steps", "rounds", "epochs")] == [0, 2, 3, 4, 5]
    assert (trainer["batch_size"], trainer["patience"], config["energy_loss"]["samples"]) == (6, 8, 7)
    assert config["features"] == {"type": "mlp", "hidden": [9, 10], "dropout": 0.25}
    assert (config["energy"]["hidden"], config["task"]["threshold"], config["seed"]) == (11, "validation", 12)


def test_own_files_go_in_by_path() -> None:
    task = experiment(MLC, data="mine.arff", split="mine.json")["task"]
    assert (task["file"], task["split"]) == ("mine.arff", "mine.json")
    given = {"task.train": "a.conll", "task.validation": "b.conll", "task.test": "c.conll"}
    task = experiment(SRL, data="files", **given)["task"]
    assert (task["train"], task["validation"], task["test"]) == ("a.conll", "b.conll", "c.conll")


def test_encoder_is_a_bilstm_or_the_name_or_folder_of_a_model() -> None:
    assert experiment(SRL)["features"]["type"] == "bilstm"
    for name in ("bert-base-cased", "models/mine"):
        config = experiment(SRL, encoder=name)
        assert config["features"] == {"type": "transformer", "model": name}
        assert config["trainer"]["net_optimizer"]["lr"] < 1e-4


def test_energy_by_name_or_as_a_table() -> None:
    assert experiment(SRL, energy="linear_chain")["energy"]["type"] == "linear_chain"
    assert experiment(SRL, energy='{"type": "seal.self_attention"}')["energy"]["type"] == "seal.self_attention"


@pytest.mark.parametrize(
    ("path", "argument", "names"),
    [
        (MLC, "data", ("bibtex", "expr_fun", "files", "sample")),
        (MLC, "method", ("cross_entropy", *SEAL)),
        (MLC, "schedule", ("light", "released")),
        (SRL, "data", ("ewt", "files", "sample")),
        (SRL, "method", ("cross_entropy", "crf", *SEAL)),
        (SRL, "energy", ("linear_chain", "local", "self_attention")),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(path: Path, argument: str, names: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=rf"unknown {argument} \"nonsense\"; known: ") as error:
        evaluate(path, {argument: "nonsense"})
    assert all(name in str(error.value) for name in names)


@pytest.mark.parametrize("path", [MLC, SRL])
def test_docs_name_every_argument(path: Path) -> None:
    text = (ROOT / "docs/configs.md").read_text()
    named = {name for line in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", line)}
    assert {parameter.name for parameter in parameters(path)} <= named


def test_every_argument_has_a_default() -> None:
    assert all(parameter.default is not None for path in (MLC, SRL) for parameter in parameters(path))
