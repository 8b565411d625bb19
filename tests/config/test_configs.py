"""The shipped configs: every data set with every method is a valid experiment with the documented settings."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from spen_plugins.config.evaluation import evaluate, parameters
from spen_plugins.config.experiment import parse_experiment
from spen_plugins.config.shipped import find
from spen_plugins.data.catalogue import CATALOGUE
from spen_plugins.errors import ConfigError, PluginError
from spen_plugins.registry import Registry
from tests.loaded import ROOT, trained

MLC, SRL = ROOT / "configs/labels.jsonnet", ROOT / "configs/srl_seal.jsonnet"
TEXT = ROOT / "configs/texts.jsonnet"
ROLES = ROOT / "configs/roles.jsonnet"
POS, NER, PREDICATES = (ROOT / f"configs/{name}.jsonnet" for name in ("tags", "names", "predicates"))
ALL = sorted([*ROOT.glob("configs/*.jsonnet"), *ROOT.glob("plugins/*/*/configs/*.jsonnet")])
REGISTRY = Registry()

SEAL = ("nce", "ranking", "margin", "margin_compound", "regression", "regression_s")
MULTILABEL = ("sample", "bibtex", "delicious", "genbase", "cal500", "spo_fun", "expr_fun", "mine.arff", "my/file")
CASES = [
    *((MLC, data, method, "light") for data in MULTILABEL for method in ("cross_entropy", *SEAL)),
    *((MLC, data, method, "released") for data in ("sample", "my/file") for method in ("cross_entropy", *SEAL)),
    *(
        (SRL, data, method, schedule)
        for data in ("sample", "ewt", "files")
        for method in ("cross_entropy", "crf", *SEAL)
        for schedule in ("light", "released")
    ),
]
"""`RELEASED` has the other data sets with the released schedule."""
BASELINES = ("cross_entropy", "crf")
ONE_NET = ("margin", "perceptron", "contrastive", "slack")
IMPLICIT = ("implicit_cd", "implicit_ssvm", "implicit_dvn", "alternating_cd")
METHODS = (*BASELINES, *ONE_NET, "compound", "nce", "static_crf", "unrolled", *IMPLICIT)
ENERGIES = ("chain", "ge_a", "ge_b", "ge_c", "skip_chain", "high_order")
DATA = {POS: ("sample", "twitter_pos", "ewt", "files"), NER: ("sample", "wnut17", "btc", "gum", "wikigold", "files")}
TAGGER_CASES = [(path, data) for path, names in DATA.items() for data in names]
USER_FILES = {"data": "a.conll", "validation": "b.conll", "test": "c.conll"}


def experiment(path: Path, **arguments: str) -> dict:
    """The checked config, complete with its defaults."""
    return parse_experiment(evaluate(path, arguments), path, REGISTRY).table()


def select_settings(trainer: dict, name: str) -> dict:
    """The settings of a player that the released numbers specify."""
    return {key: trainer[name][key] for key in ("type", "lr", "weight_decay")}


@pytest.mark.parametrize(("path", "data", "method", "schedule"), CASES)
def test_every_data_set_with_every_method_is_an_experiment(path: Path, data: str, method: str, schedule: str) -> None:
    encoder = {"encoder": "bert-base-cased"} if path == SRL and schedule == "released" else {}
    config = experiment(path, data=data, method=method, schedule=schedule, **encoder)
    assert ("energy" in config) == (method in SEAL)
    if method in SEAL:
        assert config["energy_loss"]["type"] == f"seal.{method}"
        trainer = config["trainer"]
        if schedule == "light":
            assert trainer["rounds"] == {("genbase", "nce"): 10, ("expr_fun", "nce"): 3}.get((data, method), 1)
            assert max(trainer["energy"]["steps"], trainer["net"]["steps"]) <= 3


@pytest.mark.parametrize("data", MULTILABEL)
@pytest.mark.parametrize("schedule", ["light", "released"])
def test_every_data_set_can_be_learned_through_the_steps(data: str, schedule: str) -> None:
    config = experiment(MLC, data=data, method="unrolled", schedule=schedule)
    assert config["inference_net"]["type"] == "e2e.unrolled" and config["trainer"]["type"] == "e2e.unroll"
    assert "energy_loss" not in config
    assert config["trainer"]["copies"] == {
        "energy.features": "inference_net.net.features",
        "energy.local": "inference_net.net.output",
    }


@pytest.mark.parametrize("data", MULTILABEL)
@pytest.mark.parametrize("method", ["implicit_cd", "implicit_ssvm", "implicit_dvn", "alternating_cd"])
def test_every_data_set_can_be_learned_implicitly(data: str, method: str) -> None:
    config = experiment(MLC, data=data, method=method)
    losses = {"implicit_ssvm": "seal.margin", "implicit_dvn": "seal.regression"}
    assert config["energy_loss"]["type"] == losses.get(method, "implicit.cd")
    assert config["trainer"]["type"] == "implicit.bilevel" and config["energy"]["type"] == "seal.labels"
    assert config["trainer"]["inverse"] == ("none" if method == "alternating_cd" else "series")


# What SEAL's authors released with their code. Layers are [number, width]; dropout follows each layer but the last.
RELEASED = [
    # data, method, layers, dropout, global, λ1, λ2, perceptron, K, std, energy lr, net lr, weight decay, energy:net
    ("bibtex", "cross_entropy", [2, 400], 0.4, 200, 0, 1, None, None, None, 0.001, 0.005, 1e-05, (1, 1)),
    ("bibtex", "nce", [2, 400], 0.5, 200, 5.51, 1, None, 20, None, 4.51e-05, 0.00117, 1e-05, (12, 5)),
    ("bibtex", "ranking", [2, 400], 0.5, 200, 9.21, 1, None, 40, None, 4.48e-05, 0.00144, 1e-05, (9, 10)),
    ("bibtex", "regression", [2, 400], 0.5, 200, 3.24, 1, None, None, None, 0.00563, 0.00309, 3.37e-06, (9, 1)),
    ("bibtex", "regression_s", [2, 200], 0.5, 200, 9.94, 1, None, 10, 1.12, 0.0066, 0.00105, 1e-05, (5, 5)),
    ("bibtex", "margin", [2, 400], 0.5, 200, 1, 3.89, 0.00152, None, None, 6.88e-05, 0.00159, 1e-05, (1, 6)),
    ("delicious", "cross_entropy", [2, 400], 0.1, 200, 0, 1, None, None, None, 0.001, 0.00292, 1e-05, (1, 1)),
    ("delicious", "nce", [2, 400], 0.5, 200, 0.91, 1, None, 20, None, 0.00373, 0.000848, 1e-05, (6, 5)),
    ("delicious", "ranking", [2, 400], 0.5, 200, 1.01, 1, None, 80, None, 0.000859, 9.95e-05, 1e-05, (3, 10)),
    ("delicious", "regression", [2, 400], 0.5, 200, 9.27, 1, None, None, None, 0.000114, 0.00176, 1e-05, (3, 5)),
    ("delicious", "regression_s", [2, 400], 0.5, 200, 9.85, 1, None, 5, 0.603, 0.000129, 0.00331, 1e-05, (6, 1)),
    ("delicious", "margin", [2, 400], 0.2, 200, 1, 5.6, 0.00118, None, None, 0.0027, 0.00497, 1e-05, (1, 1)),
    ("genbase", "cross_entropy", [1, 400], 0, 200, 0, 1, None, None, None, 0.001, 0.00198, 1e-05, (1, 1)),
    ("genbase", "nce", [1, 400], 0, 200, 0.00203, 1, None, 100, None, 0.000547, 0.00125, 1e-05, (9, 10)),
    ("genbase", "ranking", [1, 400], 0, 200, 0.00193, 1, None, 100, None, 1.69e-05, 0.00166, 1e-05, (3, 10)),
    ("genbase", "regression", [1, 400], 0, 200, 0.00243, 1, None, None, None, 0.000366, 0.00136, 1e-05, (6, 10)),
    ("genbase", "regression_s", [1, 400], 0, 200, 0.0276, 1, None, 20, 4, 0.000464, 0.000997, 1e-05, (3, 10)),
    ("genbase", "margin", [1, 400], 0, 400, 1, 7.53, 0.0101, None, None, 0.00027, 0.000742, 1e-05, (1, 10)),
    ("cal500", "cross_entropy", [5, 500], 0.2, 200, 0, 1, None, None, None, 0.001, 0.00986, 1e-05, (1, 1)),
    ("cal500", "nce", [5, 500], 0.2, 400, 0.478, 1, None, 20, None, 0.00779, 0.00491, 1e-05, (9, 10)),
    ("cal500", "ranking", [5, 500], 0.2, 400, 8.72, 1, None, 40, None, 0.00244, 4.58e-05, 1e-05, (6, 5)),
    ("cal500", "regression", [5, 500], 0.2, 400, 1.38, 1, None, None, None, 0.00599, 0.00691, 1e-05, (3, 10)),
    ("cal500", "regression_s", [5, 500], 0.2, 400, 8.89, 1, None, 30, 2.85, 0.00866, 0.00623, 1e-05, (9, 5)),
    ("cal500", "margin", [5, 500], 0.2, 400, 1, 3.99, 0.0049, None, None, 0.00051, 0.00827, 1e-05, (1, 10)),
    ("spo_fun", "cross_entropy", [4, 300], 0.1, 200, 0, 1, None, None, None, 0.001, 0.01, 1e-05, (1, 1)),
    ("spo_fun", "nce", [4, 300], 0.1, 300, 1, 1, None, 40, None, 0.00821, 0.000544, 1e-05, (3, 10)),
    ("spo_fun", "ranking", [4, 300], 0.1, 300, 1.19, 1, None, 40, None, 0.00612, 0.00109, 1e-05, (3, 5)),
    ("spo_fun", "regression", [4, 300], 0.1, 300, 9.05, 1, None, None, None, 0.00139, 0.000155, 1e-05, (12, 5)),
    ("spo_fun", "regression_s", [5, 500], 0.2, 400, 0.0194, 1, None, 10, 0.091, 0.000212, 0.000935, 1e-05, (9, 10)),
    ("spo_fun", "margin", [4, 300], 0.2, 300, 1, 0.63, 0.00521, None, None, 7.93e-05, 0.00224, 1e-05, (1, 10)),
    ("expr_fun", "cross_entropy", [4, 200], 0.2, 200, 0, 1, None, None, None, 0.001, 0.005, 1e-05, (1, 1)),
    ("expr_fun", "nce", [4, 200], 0.2, 400, 4.14, 1, None, 80, None, 5.25e-05, 0.000216, 1e-05, (6, 10)),
    ("expr_fun", "ranking", [4, 200], 0.2, 400, 1.05, 1, None, 40, None, 0.0102, 0.000522, 1e-05, (6, 5)),
    ("expr_fun", "regression", [4, 200], 0.2, 400, 0.138, 1, None, None, None, 0.000327, 0.00059, 1e-05, (9, 5)),
    ("expr_fun", "regression_s", [4, 200], 0.2, 400, 0.0212, 1, None, 5, 0.217, 3.16e-05, 0.000878, 1e-05, (9, 5)),
    ("expr_fun", "margin", [4, 200], 0.2, 400, 1, 4.04, 0.00112, None, None, 0.000103, 0.00122, 1e-05, (1, 5)),
]


@pytest.mark.parametrize("row", RELEASED, ids=lambda row: "-".join(row[:2]))
def test_released_hyper_parameters_are_the_authors(row: tuple) -> None:
    data, method, (layers, width), dropout, wide, λ1, λ2, perceptron, k, std, energy_lr, net_lr, decay, steps = row
    arguments = {"data": data, "method": method, "schedule": "released"}
    config = experiment(MLC, **arguments)
    trainer, features = config["trainer"], config["features"]
    assert (features["hidden"], features["dropout"], trainer["batch_size"]) == ([width] * layers, dropout, 32)
    if method == "cross_entropy":
        assert select_settings(trainer, "net") == {"type": "adamw", "lr": net_lr, "weight_decay": decay}
        assert (trainer["rounds"], trainer["net"]["steps"]) == steps == (1, 1)
        return
    assert select_settings(trainer, "energy") == {"type": "adamw", "lr": energy_lr, "weight_decay": decay}
    assert select_settings(trainer, "net") == {"type": "adamw", "lr": net_lr, "weight_decay": decay}
    assert (trainer["energy_weight"], trainer["cross_entropy_weight"]) == (λ1, λ2)
    assert config["energy"] == {"type": "seal.labels", "hidden": wide}
    loss = evaluate(MLC, arguments)["energy_loss"]
    assert (loss.get("samples"), loss.get("std"), loss.get("perceptron_weight")) == (k, std, None)
    # "12:5" is 5 rounds of 12 updates of the energy and 1 of the net; for margins the net is the inner player.
    energy_steps, net_steps = steps
    turns = (energy_steps, 1, net_steps) if method == "margin" else (net_steps, energy_steps, 1)
    assert (trainer["rounds"], trainer["energy"]["steps"], trainer["net"]["steps"]) == turns
    assert trainer["first"] == ("net" if method == "margin" else "energy")
    if method == "margin":
        compound = experiment(MLC, **arguments | {"method": "margin_compound"})
        assert compound.pop("energy_loss") == loss | {
            "type": "seal.margin_compound",
            "perceptron_weight": perceptron,
            "cost": config.pop("energy_loss")["cost"],
        }
        assert compound == config


def test_light_bibtex_has_its_own_rates() -> None:
    trainer = experiment(MLC, data="bibtex")["trainer"]
    assert (trainer["energy"]["steps"], trainer["net"]["steps"], trainer["energy"]["lr"]) == (1, 1, 6e-4)
    plain = experiment(MLC, data="bibtex", method="cross_entropy")
    assert (plain["trainer"]["net"]["lr"], plain["features"]["dropout"]) == (5e-4, 0.5)


PLAYER_SETTINGS = (
    "trainer.energy.lr",
    "trainer.energy_weight",
    "trainer.cross_entropy_weight",
    "trainer.energy_dropout",
)
USELESS = [
    *((path, method, name) for path, method in ((MLC, "cross_entropy"), (SRL, "crf")) for name in PLAYER_SETTINGS),
    *((MLC, method, "energy_loss.samples") for method in ("margin", "margin_compound", "regression")),
    *((SRL, method, "energy_loss.std") for method in ("margin", "margin_compound", "regression")),
    (MLC, "regression_s", "energy_loss.redraw"),
    (MLC, "nce", "net_lr"),
    (SRL, "crf", "features.hiden"),
]


@pytest.mark.parametrize(("path", "method", "name"), USELESS)
def test_an_unused_number_is_an_error(path: Path, method: str, name: str) -> None:
    """A method's tables have fixed keys; the message lists them."""
    table, _, key = name.rpartition(".")
    patterns = {
        "trainer": r"\bepochs\b",
        "trainer.energy": r"\bnet\b",
        "energy_loss": "Known",
        "features": r"\bhidden\b",
    }
    with pytest.raises(ConfigError, match=patterns.get(table, r"\bmethod\b")) as error:
        experiment(path, method=method, **{name: "3"})
    unknown = "trainer.energy" if table == "trainer.energy" else name
    match = re.search(rf"unknown (?:key|argument) '{unknown}'\.(.*)", str(error.value), re.DOTALL)
    assert match and re.search(rf"\b{key}: ", match[1]) is None


@pytest.mark.parametrize("name", ["energy_loss.samples", "energy_loss.std", "energy.hidden"])
@pytest.mark.parametrize("path", [MLC, SRL, TEXT])
def test_a_method_without_an_energy_has_no_table_for_one(path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name.partition('.')[0]}\.type: expected the name of a type, found none"):
        experiment(path, method="cross_entropy", **{name: "3"})


@pytest.mark.parametrize("method", ["cross_entropy", "crf"])
def test_energy_is_only_for_methods_with_an_energy(method: str) -> None:
    with pytest.raises(ConfigError, match=f"method={method} has no energy; omit energy="):
        evaluate(SRL, {"method": method, "energy": "local"})


def test_a_method_with_a_missing_plugin(site) -> None:
    """The error names the package to install; the other methods still work."""
    core_registry = Registry([str(site.path)])
    for path, method, plugin in ((MLC, "nce", "seal"), (SRL, "ranking", "seal"), (POS, "compound", "infnet")):
        parse_experiment(evaluate(path, {"method": "cross_entropy"}), path, core_registry)
        with pytest.raises(
            PluginError, match=rf"the plugin '{plugin}', which is not installed.*pip install spen-{plugin}"
        ):
            parse_experiment(evaluate(path, {"method": method}), path, core_registry)


@pytest.mark.parametrize("data", [None, "files"])
@pytest.mark.parametrize("path", [MLC, SRL])
def test_files_named_by_overrides_replace_the_corpus(path: Path, data: str | None) -> None:
    arguments = {"task.train": "a.conll", "task.validation": "b.conll", "task.test": "c.conll"}
    config = experiment(path, **arguments, **({"data": data} if data else {}))
    task = config["task"]
    assert (task["train"], task["validation"], task["test"]) == ("a.conll", "b.conll", "c.conll")
    assert task["corpus"] is None
    expected = experiment(path, data="files")  # the other defaults are equal, too
    assert {k: v for k, v in config.items() if k != "task"} == {k: v for k, v in expected.items() if k != "task"}


def test_one_file_named_by_overrides() -> None:
    task = experiment(MLC, **{"task.file": "a.arff", "task.split": "a.json"})["task"]
    assert (task["file"], task["split"], task["corpus"]) == ("a.arff", "a.json", None)
    assert experiment(MLC, **{"task.train": "null"})["task"]["corpus"] == "sample"


@pytest.mark.parametrize("name", ["mine.ARFF", "mine.conll05", "./mine", "my/file", "x.y"])
@pytest.mark.parametrize(("path", "key"), [(MLC, "file"), (SRL, "train")])
def test_a_dot_or_a_slash_names_a_file(path: Path, key: str, name: str) -> None:
    fields = {"validation": "b"} if path == SRL else {}
    assert experiment(path, data=name, **fields)["task"][key] == name


@pytest.mark.parametrize("path", [MLC, SRL])
def test_an_unknown_data_set_may_have_been_a_file(path: Path) -> None:
    with pytest.raises(ConfigError, match=r'unknown data "mine"; known: .*; or a file: \./mine'):
        evaluate(path, {"data": "mine"})


def test_validation_and_test_require_a_training_file() -> None:
    assert evaluate(SRL, {"data": "a.conll"})["task"] == {"type": "srl", "file": "a.conll"}
    with pytest.raises(ConfigError, match=r"validation= and test= require a training file"):
        evaluate(SRL, {"test": "c.conll"})
    arguments = {"data": "a.conll", "validation": "b.conll", "test": "c.conll"}
    experiment(SRL, **arguments)
    task = evaluate(SRL, arguments)["task"]
    assert task == {"type": "srl", "train": "a.conll", "validation": "b.conll", "test": "c.conll"}


def test_a_bilstm_learns_from_a_sum_over_tokens_and_a_pretrained_encoder_from_their_mean() -> None:
    config = experiment(SRL, data="ewt", method="nce")
    features, trainer = config["features"], config["trainer"]
    sizes = {"type": "bilstm", "word_dim": 100, "hidden": 128, "layers": 2, "dropout": 0.4}
    assert {key: features[key] for key in sizes} == sizes
    assert (trainer["per_variable"], trainer["energy_weight"], config["energy_loss"]["samples"]) == (False, 0.3, 8)
    assert (trainer["net"]["lr"], trainer["net"]["clip"]) == (2e-3, 10)
    trainer = experiment(SRL, data="ewt", method="cross_entropy")["trainer"]
    assert (trainer["per_variable"], trainer["net"]["lr"], trainer["net"]["clip"]) == (False, 2e-3, 10)
    trainer = experiment(SRL)["trainer"]
    assert (trainer["per_variable"], trainer["energy_weight"], trainer["net"]["lr"]) == (False, 0.6, 5e-3)
    trainer = experiment(SRL, data="ewt", encoder="bert-base-cased", method="nce")["trainer"]
    assert (trainer["per_variable"], trainer["energy_weight"], trainer["net"]["clip"]) == (True, 0.5, 1)


def test_the_released_schedule_of_role_labelling_is_for_pretrained_encoders() -> None:
    def samples(**arguments: str) -> int:
        return experiment(SRL, data="ewt", encoder="bert-base-cased", method="nce", **arguments)["energy_loss"][
            "samples"
        ]

    override = {"energy_loss.samples": "9"}
    assert (samples(schedule="released"), samples(), samples(schedule="released", **override)) == (400, 20, 9)
    with pytest.raises(ConfigError, match=r"schedule=released requires a pretrained encoder"):
        evaluate(SRL, {"schedule": "released"})


def test_the_default_is_what_validation_chose() -> None:
    files = {"data": "a.tsv", "validation": "b.tsv", "test": "c.tsv"}
    for config, default in ((ROLES, "crf"), (TEXT, "cross_entropy")):
        assert evaluate(config, files) == evaluate(config, {**files, "method": default})
    assert evaluate(ROLES) == evaluate(ROLES, {"method": "crf"})
    assert evaluate(TEXT) == evaluate(TEXT, {"method": "nce"})  # the embedded sample shows an energy
    nce = evaluate(ROLES, {"data": "ewt", "method": "nce"})
    assert evaluate(ROLES, {"data": "ewt", "energy": "self_attention"}) == nce
    released = {"data": "ewt", "encoder": "bert-base-cased", "schedule": "released"}
    assert evaluate(ROLES, released) == evaluate(ROLES, {**released, "method": "nce"})


@pytest.mark.parametrize("arguments", [{}, {"data": "ewt"}, {"data": "ewt", "reading": "sentence", "encoder": "m"}])
def test_srl_seal_is_roles_by_nce(arguments: dict[str, str]) -> None:
    assert evaluate(SRL, arguments) == evaluate(ROLES, {**arguments, "method": "nce"})
    assert [p.name for p in parameters(SRL)] == [p.name for p in parameters(ROLES)]


def test_user_files_are_given_by_path() -> None:
    task = experiment(MLC, data="mine.arff", split="mine.json")["task"]
    assert (task["file"], task["split"]) == ("mine.arff", "mine.json")


def test_encoder_is_a_bilstm_or_the_name_or_folder_of_a_model() -> None:
    assert experiment(SRL)["features"]["type"] == "bilstm"
    for name in ("bert-base-cased", "models/mine"):
        config = experiment(SRL, encoder=name)
        assert (config["features"]["type"], config["features"]["model"]) == ("transformer", name)
        assert config["trainer"]["net"]["lr"] < 1e-4


def test_encoder_as_a_table() -> None:
    config = experiment(SRL, encoder='{"type": "encoder", "encoder": "gru", "hidden": 16}')
    assert [config["features"][key] for key in ("type", "encoder", "hidden")] == ["encoder", "gru", 16]
    small = experiment(SRL)  # it is untrained, like a BiLSTM
    assert {k: v for k, v in config.items() if k != "features"} == {k: v for k, v in small.items() if k != "features"}
    assert experiment(SRL, encoder='{"type": "transformer", "model": "m"}') == experiment(SRL, encoder="m")
    with pytest.raises(ConfigError, match="features"):
        experiment(SRL, encoder='{"encoder": "gru"}')
    with pytest.raises(ConfigError, match=r'features\.encoder.*expected "lstm" \| "gru" \| "pass_through"\.$'):
        experiment(SRL, encoder='{"type": "encoder", "encoder": "grru"}')


def test_texts_by_a_pretrained_encoder() -> None:
    """The encoder reads texts without normalisation."""
    config = experiment(TEXT, encoder="minilm")
    assert (config["features"]["model"], config["features"]["pooling"]) == ("minilm", "mean")
    assert (config["task"]["lowercase"], config["task"]["punctuation"]) == (False, True)
    assert config["trainer"]["net"]["lr"] < 1e-4 and config["trainer"]["energy"]["lr"] < 1e-4
    bags = experiment(TEXT, encoder='{"type": "ngrams", "words": 1}')
    assert bags["features"]["words"] == 1 and bags["trainer"] == experiment(TEXT)["trainer"]
    with pytest.raises(ConfigError, match="method=linear uses tf-idf of words"):
        evaluate(TEXT, {"method": "linear", "encoder": "minilm"})


def test_energy_by_name_or_as_a_table() -> None:
    assert experiment(SRL, energy="linear_chain")["energy"]["type"] == "linear_chain"
    assert experiment(SRL, energy='{"type": "seal.self_attention"}')["energy"]["type"] == "seal.self_attention"


@pytest.mark.parametrize(
    ("path", "argument", "names"),
    [
        (MLC, "data", ("bibtex", "expr_fun", "files", "sample")),
        (MLC, "method", ("cross_entropy", "implicit_cd", "unrolled", *SEAL)),
        (MLC, "schedule", ("light", "released")),
        (SRL, "data", ("ewt", "files", "sample")),
        (SRL, "method", ("cross_entropy", "crf", *SEAL)),
        (SRL, "energy", ("linear_chain", "local", "self_attention")),
        *((path, "data", names) for path, names in DATA.items()),
        *((path, "method", METHODS) for path in DATA),
        *((path, "energy", ENERGIES) for path in DATA),
        (PREDICATES, "data", ("ewt", "files", "sample")),
        (PREDICATES, "method", BASELINES),
    ],
)
def test_unknown_names_are_rejected_with_the_known_ones(path: Path, argument: str, names: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=rf"unknown {argument} \"nonsense\"; known: ") as error:
        evaluate(path, {argument: "nonsense"})
    assert all(name in str(error.value) for name in names)


@pytest.mark.parametrize(
    ("path", "typed", "method"),
    [(NER, "infnet", "compound"), (MLC, "seal", "nce"), (SRL, "ce", "cross_entropy"), (MLC, "marginn", "margin")],
)
def test_other_or_misspelt_method_names_get_a_suggestion(path: Path, typed: str, method: str) -> None:
    with pytest.raises(ConfigError, match=rf"known: .*\. Did you mean '{method}'\?$"):
        evaluate(path, {"method": typed})


GROUPS = yaml.safe_load((ROOT / "tools/results/results.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", GROUPS)
def test_every_row_of_the_results_is_an_experiment(name: str) -> None:
    group = GROUPS[name]
    for row in group["rows"].values():
        arguments = {**group.get("arguments", {}), **(row.get("arguments") or {})}
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
        experiment(find(Path(Path(group["config"]).stem)), **texts)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_arguments_are_few_choices_each_with_a_default_and_documentation(path: Path) -> None:
    arguments = parameters(path)
    assert 0 < len(arguments) <= 17
    assert [parameter.name for parameter in arguments if parameter.default is None or not parameter.doc] == []


@pytest.mark.parametrize("config", ["configs/labels.jsonnet", "configs/texts.jsonnet"])
@pytest.mark.parametrize(
    ("arguments", "decision"),
    [
        ({"data": "a.csv", "test": "b.csv"}, ("validation", "validation")),
        ({"data": "files"}, ("validation", "validation")),
        ({"data": "a.csv", "test": "b.csv", "threshold": "0.5"}, (0.5, None)),
        ({"data": "a.csv", "test": "b.csv", "decode": "threshold"}, ("validation", None)),
        ({"data": "a.csv", "test": "b.csv", "decode": "expected_f1"}, ("validation", "expected_f1")),
        ({"data": "a.csv", "test": "b.csv", "threshold": "0.5", "decode": "validation"}, (0.5, "validation")),
    ],
)
def test_label_sets_of_user_files_are_decoded_by_validation(
    config: str, arguments: dict[str, str], decision: tuple[object, str | None]
) -> None:
    task = evaluate(config, arguments)["task"]
    assert (task["threshold"], task.get("decode")) == decision


@pytest.mark.parametrize("config", ["configs/labels.jsonnet", "configs/texts.jsonnet"])
def test_an_unused_threshold_is_an_error(config: str) -> None:
    with pytest.raises(ConfigError, match=r"threshold=0\.4 requires decode=threshold or decode=validation"):
        evaluate(config, {"data": "a.csv", "test": "b.csv", "threshold": "0.4", "decode": "expected_f1"})


def test_published_data_sets_use_the_threshold_one_half() -> None:
    for data in ("sample", "bibtex", "cal500"):
        task = evaluate("configs/labels.jsonnet", {"data": data})["task"]
        assert (task["threshold"], task.get("decode")) == (0.5, None)


# Taggers


def check_config(path: Path, **arguments: str) -> dict:
    """The evaluated config, once it has been checked."""
    config = evaluate(path, arguments)
    parse_experiment(config, path, REGISTRY)
    return config


@pytest.mark.parametrize(("path", "data"), TAGGER_CASES)
def test_every_data_set_with_every_method_of_taggers_is_an_experiment(path: Path, data: str) -> None:
    for method in METHODS:
        config = check_config(path, data=data, method=method)
        assert ("energy" in config) == (method not in BASELINES)
        net = {"crf": "crf", "unrolled": "e2e.unrolled"}.get(method, "independent")
        assert config["inference_net"]["type"] == net
        if method == "unrolled":
            assert config["trainer"]["type"] == "e2e.unroll" and "energy_loss" not in config
        elif method == "static_crf":
            assert (config["energy"]["type"], config["energy_loss"]["type"]) == ("linear_chain", "likelihood")
            assert config["trainer"]["type"] == "seal.static" and config["trainer"]["energy_epochs"] > 0
        elif method in IMPLICIT:
            assert config["trainer"]["type"] == "implicit.bilevel" and config["trainer"]["net_epochs"] > 0
        elif method == "nce":
            assert (config["energy_loss"]["type"], config["trainer"]["type"]) == ("seal.nce", "seal.dynamic")
        elif "energy" in config:
            assert config["energy_loss"]["type"] == f"infnet.{method}"
            assert ("cost_net" in config["energy_loss"]) == (method == "compound")
            assert config["trainer"]["type"] == "infnet.joint"


def list_paths(table: dict) -> set[str]:
    """Every `data:` path below a table."""
    names: set[str] = set()
    for value in table.values():
        names |= list_paths(value) if isinstance(value, dict) else {value} if str(value).startswith("data:") else set()
    return names


@pytest.mark.parametrize(("path", "data"), TAGGER_CASES)
def test_the_catalogue_has_every_file(path: Path, data: str) -> None:
    files = {f"data:{file}" for entry in CATALOGUE.values() for file in entry.paths}
    names = list_paths(check_config(path, data=data))
    assert names <= files
    assert len(names) >= (0 if data in ("sample", "files") else 3)


def test_splits_of_twitter() -> None:
    def files(**arguments: str) -> list[str]:
        task = check_config(POS, data="twitter_pos", **arguments)["task"]
        return [task[part].rpartition("/")[2] for part in ("train", "validation", "test")]

    assert files() == files(split="standard") == ["oct27.train", "oct27.dev", "daily547.conll"]
    assert files(split="reference") == ["oct27.traindev", "oct27.test", "daily547.conll"]
    with pytest.raises(ConfigError, match=r"split= requires data=twitter_pos or .*; data=ewt has a fixed split"):
        evaluate(POS, {"data": "ewt", "split": "reference"})
    with pytest.raises(ConfigError, match=r"with data=files, give task\.file=FILE and task\.split=FILE"):
        evaluate(POS, {"data": "files", "split": "rows.json"})


def test_tags_and_formats() -> None:
    assert "tags" not in check_config(POS, data="ewt")["task"]  # the default for .conllu files is upos
    assert check_config(POS, data="ewt", tags="xpos")["task"]["tags"] == "xpos"
    assert check_config(POS, **USER_FILES, tags="1")["task"] == {
        "type": "tagging",
        "class_weight": None,
        "train": "a.conll",
        "validation": "b.conll",
        "test": "c.conll",
        "tags": 1,
    }
    for data in DATA[NER]:
        task = check_config(NER, data=data)["task"]
        assert (task["scheme"], task["encoding"]) == ("iob1" if data == "wikigold" else "bio", "bioes")
    assert check_config(NER, data="wnut17")["task"]["test"].endswith("emerging.test.annotated")


WORDS = {"affix_dim", "case_dim", "char_dim", "word_dim"}


def test_levels_of_features() -> None:
    """The settings that the paper calls NER, NER+ and NER++."""

    def features(level: str, **arguments: str) -> dict:
        table = check_config(NER, data="btc", features=level, **arguments)["features"]
        return {key: value for key, value in table.items() if key in {*WORDS, "vectors", "clusters"}}

    words, plus, plusplus, affixes, everything = map(features, ("words", "plus", "plusplus", "affixes", "all"))
    assert {key for key in WORDS if affixes[key]} - {key for key in WORDS if plusplus[key]} == {"affix_dim"}
    assert {key for key in WORDS if words[key]} == set() and words["vectors"]["tune"] is False
    assert {key for key in WORDS if plus[key]} == {"case_dim"} and plus["vectors"]["tune"] is True
    assert {key for key in WORDS if plusplus[key]} == {"case_dim", "char_dim"} and "clusters" not in plusplus
    assert {key for key in WORDS if everything[key]} == WORDS - {"word_dim"} and everything["clusters"]
    assert everything["vectors"]["tune"] is False  # names in tweets would be memorised
    tweets = check_config(POS, data="twitter_pos")["features"]
    assert all(tweets[key] for key in WORDS) and tweets["vectors"]["tune"] is True
    trained_vectors = features("words", vectors="none")
    assert {key for key in WORDS if trained_vectors[key]} == {"word_dim"} and "vectors" not in trained_vectors
    assert features("words", clusters="mine")["clusters"]["file"] == "mine"
    vectors = features("plus", vectors="./mine.txt")["vectors"]
    assert (vectors["file"], vectors["fold"]) == ("./mine.txt", "fallback")
    with pytest.raises(
        ConfigError, match=r"unknown features \"nonsense\"; known: affixes, all, paper, plus, plusplus, words"
    ):
        evaluate(NER, {"features": "nonsense"})
    with pytest.raises(ConfigError, match=r"features=all .* clusters=FILE"):
        evaluate(NER, {"features": "all"})


def test_the_papers_tagger_of_tweets() -> None:
    config = experiment(POS, data="twitter_pos", features="paper")
    table = config["features"]
    assert (table["type"], table["hidden"], table["layers"]) == ("bilstm", 100, 1)
    assert not any(table[key] for key in WORDS) and table["vectors"]["tune"] is False
    loss = config["energy_loss"]
    assert config["energy"]["type"] == "linear_chain"
    assert (loss["type"], loss["truncate_nets"]) == ("infnet.compound", False)
    assert loss["cost_net"]["type"] == "infnet.stacked"
    assert config["trainer"]["cross_entropy_weight"] == 1


def test_columns() -> None:
    def columns(**arguments: str) -> dict | None:
        return check_config(NER, **arguments)["task"].get("columns")

    assert columns() == {"pos": 1, "chunk": 2}
    assert columns(features="words") is columns(data="btc") is None
    assert columns(**USER_FILES, columns='{"pos": 1}') == {"pos": 1}
    task = check_config(NER, data="btc", columns_from="with/pos")["task"]
    assert [task[part] for part in ("train", "validation", "test")] == [
        "with/pos/train.conll",
        "with/pos/dev.conll",
        "with/pos/test.conll",
    ]
    assert task["columns"] == {"pos": 1}
    for arguments in ({"columns": '{"pos": 1}', **USER_FILES}, {"columns_from": "x", "data": "btc"}):
        with pytest.raises(ConfigError, match="columns= requires features=plus or above"):
            evaluate(NER, {"features": "words", **arguments})
    with pytest.raises(ConfigError, match="columns_from= requires a data set known by name"):
        evaluate(NER, {"columns_from": "x"})


@pytest.mark.parametrize("path", [POS, NER])
def test_energies(path: Path) -> None:
    energies = {name: check_config(path, energy=name)["energy"] for name in ENERGIES}
    terms = {name: set(table.get("terms", ())) for name, table in energies.items()}
    assert terms == {
        "chain": set(),
        "ge_a": {"chain", "tags"},
        "ge_b": {"chain", "tags"},
        "ge_c": {"chain", "tags", "words"},
        "skip_chain": {"chain", "skips"},
        "high_order": {"chain", "windows"},
    }
    directions = ["forward", "backward"]
    assert [energies[name]["terms"]["tags"]["directions"] for name in ("ge_a", "ge_b", "ge_c")] == [
        directions[:1],
        directions,
        directions,
    ]
    assert [energies[name].get("weights") for name in ("chain", "ge_a", "ge_c")] == [
        None,
        {"tags": 0.1},
        {"tags": 0.1, "words": 0.1},
    ]
    weights = check_config(path, energy="ge_c", **{"energy.weights.words": "0.2"})["energy"]["weights"]
    assert weights == {"tags": 0.1, "words": 0.2}
    # The models with words see each word alone, with the others' features except characters.
    words = energies["ge_c"]["terms"]["words"]["features"]
    assert (words["type"], words["encoder"], words["char_dim"]) == ("encoder", "pass_through", 0)
    assert words["case_dim"] == check_config(path)["features"]["case_dim"] > 0
    assert check_config(path, energy='{"type": "infnet.skip_chain"}')["energy"] == {"type": "infnet.skip_chain"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(
            ({"method": method, "energy": "ge_a"}, f"method={method} has no energy; omit energy=")
            for method in BASELINES
        ),
        (
            {"encoder": "bert-base-cased", "features": "plus"},
            "encoder=bert-base-cased reads words by itself and does not use features",
        ),
    ],
)
@pytest.mark.parametrize("path", [POS, NER])
def test_an_unused_argument_is_an_error(path: Path, arguments: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        evaluate(path, arguments)


UNKNOWN = [
    ({"method": "margin", "energy_loss.cost_net.type": "infnet.shared"}, "cost_net", "energy_loss"),
    ({"method": "margin", "energy_loss.perceptron_weight": "2"}, "perceptron_weight", "energy_loss"),
    ({"energy.weights.tags": "2"}, "weights", "energy"),
    ({"method": "crf", "trainer.finetune.epochs": "2"}, "finetune", "trainer"),
    ({"method": "cross_entropy", "trainer.cost_net.lr": "2"}, "cost_net", "trainer"),
]


@pytest.mark.parametrize(("arguments", "key", "table"), UNKNOWN)
@pytest.mark.parametrize("path", [POS, NER])
def test_an_unused_key_is_an_error(path: Path, arguments: dict[str, str], key: str, table: str) -> None:
    with pytest.raises(ConfigError, match=rf"unknown key '{table}\.{key}'\..* Known keys of {table}: "):
        check_config(path, **arguments)


@pytest.mark.parametrize("name", ["separated", "shared", "stacked", "stacked_bilstm"])
def test_cost_nets(name: str) -> None:
    arguments = {"energy_loss.cost_net.type": f"infnet.{name}"}
    assert check_config(POS, **arguments)["energy_loss"]["cost_net"] == {"type": f"infnet.{name}"}


@pytest.mark.parametrize("path", [POS, NER])
def test_encoders(path: Path) -> None:
    config = check_config(path, encoder="bert-base-cased", energy="ge_c")
    assert config["features"] == {"type": "transformer", "model": "bert-base-cased"}
    net, energy = config["trainer"]["net"], config["trainer"]["energy"]
    assert "columns" not in config["task"] and net["lr"] * net["groups"]["features"] <= 1e-4
    assert energy["lr"] * energy["groups"]["terms.chain.features"] <= 1e-4
    config_of_reader = check_config(
        path, encoder=json.dumps({"type": "bilstm", "reader": {"type": "transformer", "model": "m"}})
    )
    assert (
        config_of_reader["trainer"]["net"]["groups"]
        == config_of_reader["trainer"]["energy"]["groups"]
        == {"features.reader": 0.05}
    )
    energy_of_table = check_config(path, encoder="m", energy='{"type": "linear_chain"}')["trainer"]["energy"]
    assert energy_of_table["lr"] <= 1e-4 and not energy_of_table.get("groups"), "whose encoder has an unknown name"
    table = check_config(path, encoder='{"type": "encoder", "encoder": "gru", "hidden": 16}')["features"]
    assert (table["type"], table["encoder"], table["hidden"]) == ("encoder", "gru", 16)
    assert table["char_dim"] == check_config(path)["features"]["char_dim"]


def test_predicates_by_data_and_method() -> None:
    tasks = {data: check_config(PREDICATES, data=data)["task"] for data in ("sample", "ewt", "files")}
    assert all((task["type"], task["scheme"]) == ("tagging", "bio") for task in tasks.values())
    assert tasks["sample"]["corpus"] == "predicates" and "format" not in tasks["sample"]
    assert tasks["ewt"]["format"] == tasks["files"]["format"] == "predicates"
    assert tasks["ewt"]["train"] == evaluate(ROOT / "configs/srl_seal.jsonnet", {"data": "ewt"})["task"]["train"]
    task = check_config(PREDICATES, **USER_FILES)["task"]
    assert (task["train"], task["validation"], task["test"]) == ("a.conll", "b.conll", "c.conll")
    crf = check_config(PREDICATES, data="ewt", method="crf")
    assert crf["inference_net"] == {"type": "crf"} and "energy" not in crf
    assert check_config(PREDICATES)["inference_net"] == {"type": "independent"}


def test_predicates_of_the_embedded_corpus_are_learned_in_seconds(tmp_path: Path) -> None:
    run = trained(PREDICATES, tmp_path / "run", **{"trainer.epochs": "8"})
    assert json.loads((run / "metrics.json").read_text())["test"]["f1"] > 0.9
