"""The shipped configs: every data set with every method is a valid experiment, and says what its table says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spen_plugins.config.evaluation import evaluate, parameters
from spen_plugins.config.experiment import check
from spen_plugins.errors import ConfigError
from spen_plugins.registry import Registry

ROOT = Path(__file__).resolve().parent.parent
MLC, SRL = ROOT / "configs/mlc_seal.jsonnet", ROOT / "configs/srl_seal.jsonnet"
TAGGING = tuple(ROOT / f"configs/{name}.jsonnet" for name in ("pos_infnet", "ner_infnet", "predicates"))
REGISTRY = Registry()

SEAL = ("nce", "ranking", "margin", "margin_compound", "regression", "regression_s")
MULTILABEL = ("sample", "bibtex", "delicious", "genbase", "cal500", "spo_fun", "expr_fun", "mine.arff", "my/file")
CASES = [
    *((MLC, data, method) for data in MULTILABEL for method in ("cross_entropy", *SEAL)),
    *((SRL, data, method) for data in ("sample", "ewt", "files") for method in ("cross_entropy", "crf", *SEAL)),
]


def experiment(path: Path, **arguments: str) -> dict:
    config = evaluate(path, arguments)
    check(config, path, REGISTRY)
    return config


@pytest.mark.parametrize(("path", "data", "method"), CASES)
@pytest.mark.parametrize("schedule", ["light", "released"])
def test_every_data_set_with_every_method_is_an_experiment(path: Path, data: str, method: str, schedule: str) -> None:
    encoder = {"encoder": "bert-base-cased"} if path == SRL and schedule == "released" else {}
    config = experiment(path, data=data, method=method, schedule=schedule, **encoder)
    assert ("energy" in config) == (method in SEAL)
    if method in SEAL:
        assert config["energy_loss"]["type"] == f"seal.{method}"
        trainer = config["trainer"]
        if schedule == "light":
            assert trainer["rounds"] == {("genbase", "nce"): 10, ("expr_fun", "nce"): 3}.get((data, method), 1)
            assert max(trainer["energy_steps"], trainer["net_steps"]) <= 3


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
    config = experiment(MLC, data=data, method=method, schedule="released")
    trainer, features = config["trainer"], config["features"]
    assert (features["hidden"], features["dropout"], trainer["batch_size"]) == ([width] * layers, dropout, 32)
    if method == "cross_entropy":
        assert trainer["optimizer"] == {"type": "adamw", "lr": net_lr, "weight_decay": decay}
        assert (trainer["rounds"], trainer["steps"]) == steps == (1, 1)
        return
    assert trainer["energy_optimizer"] == {"type": "adamw", "lr": energy_lr, "weight_decay": decay}
    assert trainer["net_optimizer"] == {"type": "adamw", "lr": net_lr, "weight_decay": decay}
    assert (trainer["energy_weight"], trainer["cross_entropy_weight"]) == (λ1, λ2)
    assert config["energy"] == {"type": "seal.labels", "hidden": wide}
    loss = config["energy_loss"]
    assert (loss.get("samples"), loss.get("std"), loss.get("perceptron_weight")) == (k, std, None)
    # "12:5" is 5 rounds of 12 updates of the energy and 1 of the net; for margins the net is the inner player.
    energy_steps, net_steps = steps
    turns = (energy_steps, 1, net_steps) if method == "margin" else (net_steps, energy_steps, 1)
    assert (trainer["rounds"], trainer["energy_steps"], trainer["net_steps"]) == turns
    assert trainer["first"] == ("net" if method == "margin" else "energy")
    if method == "margin":
        compound = experiment(MLC, data=data, method="margin_compound", schedule="released")
        assert compound["energy_loss"] == {"type": "seal.margin_compound", "perceptron_weight": perceptron}
        assert {k: v for k, v in compound.items() if k != "energy_loss"} == {
            k: v for k, v in config.items() if k != "energy_loss"
        }


def test_margin_turns_the_players_round() -> None:
    trainer = experiment(MLC, data="bibtex", method="margin", schedule="released")["trainer"]
    assert (trainer["first"], trainer["rounds"], trainer["energy_steps"], trainer["net_steps"]) == ("net", 1, 1, 6)


def test_light_bibtex_has_the_rates_of_three_steps() -> None:
    trainer = experiment(MLC, data="bibtex")["trainer"]
    assert (trainer["energy_steps"], trainer["net_steps"], trainer["energy_optimizer"]["lr"]) == (3, 1, 2e-4)


def test_light_bibtex_cross_entropy_does_not_overfit() -> None:
    config = experiment(MLC, data="bibtex", method="cross_entropy")
    assert (config["trainer"]["optimizer"]["lr"], config["features"]["dropout"]) == (1e-3, 0.5)


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


def test_arguments_of_some_losses_and_of_the_run_reach_their_keys() -> None:
    given = {"redraw": "round", "sampling_dropout": "false", "energy_dropout": "true", "precision": "bf16"}
    given["warmup_epochs"] = "2"
    for path in (MLC, SRL):
        config = experiment(path, method="nce", **given)
        assert (config["energy_loss"]["redraw"], config["precision"]) == ("round", "bf16")
        assert (config["trainer"]["sampling_dropout"], config["trainer"]["energy_dropout"]) == (False, True)
        assert config["trainer"]["warmup_epochs"] == 2
        config = experiment(path)
        assert config["precision"] == "no" and "redraw" not in config["energy_loss"]
        assert not {"sampling_dropout", "energy_dropout"} & set(config["trainer"])


USELESS = [
    *((path, "cross_entropy", name) for path in (MLC, SRL) for name in ("energy_weight", "samples", "std", "redraw")),
    *((SRL, "crf", name) for name in ("energy", "energy_lr", "energy_steps", "cross_entropy_weight")),
    *((MLC, "cross_entropy", name) for name in ("global_hidden", "sampling_dropout", "energy_dropout")),
    *((MLC, method, "samples") for method in ("margin", "margin_compound", "regression")),
    *((SRL, method, "std") for method in SEAL if method != "regression_s"),
    (MLC, "regression_s", "redraw"),
]


@pytest.mark.parametrize(("path", "method", "name"), USELESS)
def test_an_argument_that_would_do_nothing_is_an_error(path: Path, method: str, name: str) -> None:
    value = "local" if name == "energy" else "3"
    with pytest.raises(ConfigError, match=rf"method {method} does not take {name}; it takes .*\bnet_lr\b") as error:
        evaluate(path, {"method": method, name: value})
    assert re.search(rf"it takes .*\b{name}\b", str(error.value)) is None


def test_controls_are_no_errors() -> None:
    assert experiment(MLC, method="nce", energy_weight="0")["trainer"]["energy_weight"] == 0
    given = {"rounds": "5", "net_steps": "2", "net_lr": "0.01", "epochs": "3", "patience": "4", "dropout": "0.1"}
    for path, hidden in ((MLC, "[9]"), (SRL, "9")):
        trainer = experiment(path, method="cross_entropy", hidden=hidden, **given)["trainer"]
        assert (trainer["rounds"], trainer["steps"], trainer["optimizer"]["lr"]) == (5, 2, 0.01)


@pytest.mark.parametrize("data", [None, "files"])
@pytest.mark.parametrize("path", [MLC, SRL])
def test_files_named_by_overrides_take_the_place_of_the_corpus(path: Path, data: str | None) -> None:
    given = {"task.train": "a.conll", "task.validation": "b.conll", "task.test": "c.conll"}
    config = experiment(path, **given, **({"data": data} if data else {}))
    task = config["task"]
    assert (task["train"], task["validation"], task["test"]) == ("a.conll", "b.conll", "c.conll")
    assert task.get("corpus") is None
    wanted = experiment(path, data="files")  # and so are the other defaults
    assert {k: v for k, v in config.items() if k != "task"} == {k: v for k, v in wanted.items() if k != "task"}


def test_one_file_named_by_overrides() -> None:
    task = experiment(MLC, **{"task.file": "a.arff", "task.split": "a.json"})["task"]
    assert (task["file"], task["split"], task.get("corpus")) == ("a.arff", "a.json", None)
    assert experiment(MLC, **{"task.train": "null"})["task"]["corpus"] == "sample"


@pytest.mark.parametrize("name", ["mine.ARFF", "mine.conll05", "./mine", "my/file", "x.y"])
@pytest.mark.parametrize(("path", "key"), [(MLC, "file"), (SRL, "train")])
def test_a_dot_or_a_slash_makes_a_file(path: Path, key: str, name: str) -> None:
    rest = {"validation": "b"} if path == SRL else {}
    assert experiment(path, data=name, **rest)["task"][key] == name


@pytest.mark.parametrize("path", [MLC, SRL])
def test_an_unknown_data_set_may_have_been_a_file(path: Path) -> None:
    with pytest.raises(ConfigError, match=r'unknown data "mine"; known: .*; or a file: \./mine'):
        evaluate(path, {"data": "mine"})


def test_a_training_file_goes_with_the_others() -> None:
    with pytest.raises(ConfigError, match=r"data=a\.conll is the training file; .* validation=FILE test=FILE"):
        evaluate(SRL, {"data": "a.conll"})
    with pytest.raises(ConfigError, match=r"validation= and test= go with a training file"):
        evaluate(SRL, {"test": "c.conll"})
    task = experiment(SRL, data="a.conll", validation="b.conll", test="c.conll")["task"]
    assert task == {"type": "srl", "train": "a.conll", "validation": "b.conll", "test": "c.conll"}


def test_a_bilstm_learns_from_a_sum_over_tokens_and_a_pretrained_encoder_from_their_mean() -> None:
    config = experiment(SRL, data="ewt")
    trainer = config["trainer"]
    assert config["features"] == {"type": "bilstm", "word_dim": 100, "hidden": 128, "layers": 2, "dropout": 0.4}
    assert (trainer["per_variable"], trainer["energy_weight"], config["energy_loss"]["samples"]) == (False, 0.3, 8)
    assert (trainer["net_optimizer"]["lr"], trainer["net_clip"]) == (2e-3, 10)
    assert experiment(SRL, data="ewt", samples="5")["energy_loss"]["samples"] == 5
    trainer = experiment(SRL, data="ewt", method="cross_entropy")["trainer"]
    assert (trainer["per_variable"], trainer["optimizer"]["lr"], trainer["clip"]) == (False, 2e-3, 10)
    trainer = experiment(SRL)["trainer"]
    assert (trainer["per_variable"], trainer["energy_weight"], trainer["net_optimizer"]["lr"]) == (False, 0.6, 5e-3)
    trainer = experiment(SRL, data="ewt", encoder="bert-base-cased")["trainer"]
    assert (trainer["per_variable"], trainer["energy_weight"], trainer["net_clip"]) == (True, 0.5, 1)


def test_the_released_schedule_of_role_labelling_is_for_pretrained_encoders() -> None:
    def samples(**given: str) -> int:
        return experiment(SRL, data="ewt", encoder="bert-base-cased", **given)["energy_loss"]["samples"]

    assert (samples(schedule="released"), samples(), samples(schedule="released", samples="9")) == (400, 20, 9)
    with pytest.raises(ConfigError, match=r"schedule=released is the authors' for a pretrained encoder"):
        evaluate(SRL, {"schedule": "released"})


def test_own_files_go_in_by_path() -> None:
    task = experiment(MLC, data="mine.arff", split="mine.json")["task"]
    assert (task["file"], task["split"]) == ("mine.arff", "mine.json")


def test_encoder_is_a_bilstm_or_the_name_or_folder_of_a_model() -> None:
    assert experiment(SRL)["features"]["type"] == "bilstm"
    for name in ("bert-base-cased", "models/mine"):
        config = experiment(SRL, encoder=name)
        assert config["features"] == {"type": "transformer", "model": name}
        assert config["trainer"]["net_optimizer"]["lr"] < 1e-4


def test_encoder_as_a_table() -> None:
    config = experiment(SRL, encoder='{"type": "encoder", "encoder": "gru"}', hidden="16")
    assert config["features"] == {"type": "encoder", "encoder": "gru", "hidden": 16}
    small = experiment(SRL, hidden="16")  # it starts from nothing, as a BiLSTM does
    assert {k: v for k, v in config.items() if k != "features"} == {k: v for k, v in small.items() if k != "features"}
    assert experiment(SRL, encoder='{"type": "transformer", "model": "m"}') == experiment(SRL, encoder="m")
    with pytest.raises(ConfigError, match="features"):
        experiment(SRL, encoder='{"encoder": "gru"}')
    with pytest.raises(ConfigError, match=r"features\.encoder.*gated-cnn-encoder"):
        experiment(SRL, encoder='{"type": "encoder", "encoder": "grru"}')


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


@pytest.mark.parametrize("path", [MLC, SRL, *TAGGING])
def test_docs_name_every_argument(path: Path) -> None:
    text = (ROOT / "docs/configs.md").read_text()
    named = {name for line in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", line)}
    assert {parameter.name for parameter in parameters(path)} <= named


def test_every_argument_has_a_default() -> None:
    assert all(parameter.default is not None for path in (MLC, SRL, *TAGGING) for parameter in parameters(path))
