"""The configs of taggers: every data set with every method and energy is an experiment that says what it should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spen_plugins.config.evaluation import evaluate
from spen_plugins.config.experiment import check
from spen_plugins.data.catalogue import catalogue
from spen_plugins.errors import ConfigError
from spen_plugins.registry import Registry
from spen_plugins.runs.options import RunOptions
from spen_plugins.runs.train.runner import run
from tests.loaded import ROOT

POS, NER = ROOT / "configs/tags.jsonnet", ROOT / "configs/names.jsonnet"
PREDICATES = ROOT / "configs/predicates.jsonnet"
REGISTRY = Registry()

BASELINES = ("cross_entropy", "crf")
ONE_NET = ("margin", "perceptron", "contrastive", "slack")
IMPLICIT = ("implicit_cd", "implicit_ssvm", "implicit_dvn", "alternating_cd")
METHODS = (*BASELINES, *ONE_NET, "compound", "static_crf", "unrolled", *IMPLICIT)
ENERGIES = ("chain", "ge_a", "ge_b", "ge_c", "skip_chain", "high_order")
DATA = {POS: ("sample", "twitter_pos", "ewt", "files"), NER: ("sample", "wnut17", "btc", "gum", "wikigold", "files")}
EVERY = [(path, data) for path, names in DATA.items() for data in names]
MINE = {"data": "a.conll", "validation": "b.conll", "test": "c.conll"}


def experiment(path: Path, **arguments: str) -> dict:
    """The evaluated config, once it has been checked."""
    config = evaluate(path, arguments)
    check(config, path, REGISTRY)
    return config


def complete(path: Path, **arguments: str) -> dict:
    """The checked config with its defaults."""
    return check(evaluate(path, arguments), path, REGISTRY).table()


@pytest.mark.parametrize(("path", "data"), EVERY)
def test_every_data_set_with_every_method_is_an_experiment(path: Path, data: str) -> None:
    for method in METHODS:
        config = experiment(path, data=data, method=method)
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
        elif "energy" in config:
            assert config["energy_loss"]["type"] == f"infnet.{method}"
            assert ("cost_net" in config["energy_loss"]) == (method == "compound")
            assert config["trainer"]["type"] == "infnet.joint"


def paths(table: dict) -> set[str]:
    """Every `data:` path below a table."""
    found: set[str] = set()
    for value in table.values():
        found |= paths(value) if isinstance(value, dict) else {value} if str(value).startswith("data:") else set()
    return found


@pytest.mark.parametrize(("path", "data"), EVERY)
def test_the_catalogue_has_every_file(path: Path, data: str) -> None:
    known = {f"data:{file}" for entry in catalogue() for file in entry.paths}
    found = paths(experiment(path, data=data))
    assert found <= known
    assert len(found) >= (0 if data in ("sample", "files") else 3)


def test_splits_of_twitter() -> None:
    def files(**given: str) -> list[str]:
        task = experiment(POS, data="twitter_pos", **given)["task"]
        return [task[part].rpartition("/")[2] for part in ("train", "validation", "test")]

    assert files() == files(split="standard") == ["oct27.train", "oct27.dev", "daily547.conll"]
    assert files(split="reference") == ["oct27.traindev", "oct27.test", "daily547.conll"]
    with pytest.raises(ConfigError, match=r"split= is one of twitter_pos, or .*; data=ewt has its own"):
        evaluate(POS, {"data": "ewt", "split": "reference"})


def test_tags_and_formats() -> None:
    assert "tags" not in experiment(POS, data="ewt")["task"]  # those of .conllu files are upos
    assert experiment(POS, data="ewt", tags="xpos")["task"]["tags"] == "xpos"
    assert experiment(POS, **MINE, tags="1")["task"] == {
        "type": "tagging",
        "class_weight": None,
        "train": "a.conll",
        "validation": "b.conll",
        "test": "c.conll",
        "tags": 1,
    }
    for data in DATA[NER]:
        task = experiment(NER, data=data)["task"]
        assert (task["scheme"], task["encoding"]) == ("iob1" if data == "wikigold" else "bio", "bioes")
    assert experiment(NER, data="wnut17")["task"]["test"].endswith("emerging.test.annotated")


WORDS = {"affix_dim", "case_dim", "char_dim", "word_dim"}


def test_levels_of_features() -> None:
    """The settings that the paper calls NER, NER+ and NER++."""

    def features(level: str, **given: str) -> dict:
        table = experiment(NER, data="btc", features=level, **given)["features"]
        return {key: value for key, value in table.items() if key in {*WORDS, "vectors", "clusters"}}

    words, plus, plusplus, affixes, everything = map(features, ("words", "plus", "plusplus", "affixes", "all"))
    assert {key for key in WORDS if affixes[key]} - {key for key in WORDS if plusplus[key]} == {"affix_dim"}
    assert {key for key in WORDS if words[key]} == set() and words["vectors"]["tune"] is False
    assert {key for key in WORDS if plus[key]} == {"case_dim"} and plus["vectors"]["tune"] is True
    assert {key for key in WORDS if plusplus[key]} == {"case_dim", "char_dim"} and "clusters" not in plusplus
    assert {key for key in WORDS if everything[key]} == WORDS - {"word_dim"} and everything["clusters"]
    assert everything["vectors"]["tune"] is False  # names in tweets would be learned by heart
    tweets = experiment(POS, data="twitter_pos")["features"]
    assert all(tweets[key] for key in WORDS) and tweets["vectors"]["tune"] is True
    learned = features("words", vectors="none")
    assert {key for key in WORDS if learned[key]} == {"word_dim"} and "vectors" not in learned
    assert features("words", clusters="mine")["clusters"]["file"] == "mine"
    mine = features("plus", vectors="./mine.txt")["vectors"]
    assert (mine["file"], mine["fold"]) == ("./mine.txt", "fallback")
    with pytest.raises(
        ConfigError, match=r"unknown features \"nonsense\"; known: affixes, all, paper, plus, plusplus, words"
    ):
        evaluate(NER, {"features": "nonsense"})
    with pytest.raises(ConfigError, match=r"features=all .* clusters=FILE"):
        evaluate(NER, {"features": "all"})


def test_the_papers_tagger_of_tweets() -> None:
    config = complete(POS, data="twitter_pos", features="paper")
    table = config["features"]
    assert (table["type"], table["hidden"], table["layers"]) == ("bilstm", 100, 1)
    assert not any(table[key] for key in WORDS) and table["vectors"]["tune"] is False
    loss = config["energy_loss"]
    assert config["energy"]["type"] == "linear_chain"
    assert (loss["type"], loss["truncate_nets"]) == ("infnet.compound", False)
    assert loss["cost_net"]["type"] == "infnet.stacked"
    assert config["trainer"]["cross_entropy_weight"] == 1


def test_columns() -> None:
    def columns(**given: str) -> dict | None:
        return experiment(NER, **given)["task"].get("columns")

    assert columns() == {"pos": 1, "chunk": 2}
    assert columns(features="words") is columns(data="btc") is None
    assert columns(**MINE, columns='{"pos": 1}') == {"pos": 1}
    task = experiment(NER, data="btc", columns_from="with/pos")["task"]
    assert [task[part] for part in ("train", "validation", "test")] == [
        "with/pos/train.conll",
        "with/pos/dev.conll",
        "with/pos/test.conll",
    ]
    assert task["columns"] == {"pos": 1}
    for given in ({"columns": '{"pos": 1}', **MINE}, {"columns_from": "x", "data": "btc"}):
        with pytest.raises(ConfigError, match="columns go with features=plus and above"):
            evaluate(NER, {"features": "words", **given})
    with pytest.raises(ConfigError, match="columns_from= goes with a data set known by name"):
        evaluate(NER, {"columns_from": "x"})


@pytest.mark.parametrize("path", [POS, NER])
def test_energies(path: Path) -> None:
    found = {name: experiment(path, energy=name)["energy"] for name in ENERGIES}
    terms = {name: set(table.get("terms", ())) for name, table in found.items()}
    assert terms == {
        "chain": set(),
        "ge_a": {"chain", "tags"},
        "ge_b": {"chain", "tags"},
        "ge_c": {"chain", "tags", "words"},
        "skip_chain": {"chain", "skips"},
        "high_order": {"chain", "windows"},
    }
    both = ["forward", "backward"]
    assert [found[name]["terms"]["tags"]["directions"] for name in ("ge_a", "ge_b", "ge_c")] == [both[:1], both, both]
    assert [found[name].get("weights") for name in ("chain", "ge_a", "ge_c")] == [
        None,
        {"tags": 0.1},
        {"tags": 0.1, "words": 0.1},
    ]
    weights = experiment(path, energy="ge_c", **{"energy.weights.words": "0.2"})["energy"]["weights"]
    assert weights == {"tags": 0.1, "words": 0.2}
    # The models with words see each word alone, and as much of it as the others but for characters.
    words = found["ge_c"]["terms"]["words"]["features"]
    assert (words["type"], words["encoder"], words["char_dim"]) == ("encoder", "pass_through", 0)
    assert words["case_dim"] == experiment(path)["features"]["case_dim"] > 0
    assert experiment(path, energy='{"type": "infnet.skip_chain"}')["energy"] == {"type": "infnet.skip_chain"}


USELESS = [
    *(
        ({"method": method, "energy": "ge_a"}, f"method {method} does not take energy: it has none")
        for method in BASELINES
    ),
    ({"encoder": "bert-base-cased", "features": "plus"}, "encoder=bert-base-cased has no use for features"),
]


@pytest.mark.parametrize(("given", "message"), USELESS)
@pytest.mark.parametrize("path", [POS, NER])
def test_an_argument_that_would_do_nothing_is_an_error(path: Path, given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        evaluate(path, given)


UNKNOWN = [
    ({"method": "margin", "energy_loss.cost_net.type": "infnet.shared"}, "cost_net", "energy_loss"),
    ({"method": "margin", "energy_loss.perceptron_weight": "2"}, "perceptron_weight", "energy_loss"),
    ({"energy.weights.tags": "2"}, "weights", "energy"),
    ({"method": "crf", "trainer.finetune.epochs": "2"}, "finetune", "trainer"),
    ({"method": "cross_entropy", "trainer.cost_net.lr": "2"}, "cost_net", "trainer"),
]


@pytest.mark.parametrize(("given", "key", "table"), UNKNOWN)
@pytest.mark.parametrize("path", [POS, NER])
def test_a_key_that_would_do_nothing_is_an_error(path: Path, given: dict[str, str], key: str, table: str) -> None:
    with pytest.raises(ConfigError, match=rf"unknown key '{table}\.{key}'\..* Known keys of {table}: "):
        experiment(path, **given)


@pytest.mark.parametrize("name", ["separated", "shared", "stacked", "stacked_bilstm"])
def test_cost_nets(name: str) -> None:
    given = {"energy_loss.cost_net.type": f"infnet.{name}"}
    assert experiment(POS, **given)["energy_loss"]["cost_net"] == {"type": f"infnet.{name}"}


@pytest.mark.parametrize("path", [POS, NER])
def test_encoders(path: Path) -> None:
    config = experiment(path, encoder="bert-base-cased", energy="ge_c")
    assert config["features"] == {"type": "transformer", "model": "bert-base-cased"}
    assert "columns" not in config["task"] and config["trainer"]["net"]["lr"] < 1e-4
    table = experiment(path, encoder='{"type": "encoder", "encoder": "gru", "hidden": 16}')["features"]
    assert (table["type"], table["encoder"], table["hidden"]) == ("encoder", "gru", 16)
    assert table["char_dim"] == experiment(path)["features"]["char_dim"]


@pytest.mark.parametrize(
    ("path", "argument", "names"),
    [
        *((path, "data", names) for path, names in DATA.items()),
        *((path, "method", METHODS) for path in DATA),
        *((path, "energy", ENERGIES) for path in DATA),
        (PREDICATES, "data", ("ewt", "files", "sample")),
        (PREDICATES, "method", BASELINES),
    ],
)
def test_an_unknown_name_is_answered_with_the_known_ones(path: Path, argument: str, names: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=rf"unknown {argument} \"nonsense\"; known: ") as error:
        evaluate(path, {argument: "nonsense"})
    assert all(name in str(error.value) for name in names)


def test_predicates_by_data_and_method() -> None:
    tasks = {data: experiment(PREDICATES, data=data)["task"] for data in ("sample", "ewt", "files")}
    assert all((task["type"], task["scheme"]) == ("tagging", "bio") for task in tasks.values())
    assert tasks["sample"]["corpus"] == "predicates" and "format" not in tasks["sample"]
    assert tasks["ewt"]["format"] == tasks["files"]["format"] == "predicates"
    assert tasks["ewt"]["train"] == evaluate(ROOT / "configs/srl_seal.jsonnet", {"data": "ewt"})["task"]["train"]
    mine = experiment(PREDICATES, **MINE)["task"]
    assert (mine["train"], mine["validation"], mine["test"]) == ("a.conll", "b.conll", "c.conll")
    crf = experiment(PREDICATES, data="ewt", method="crf")
    assert crf["inference_net"] == {"type": "crf"} and "energy" not in crf
    assert experiment(PREDICATES)["inference_net"] == {"type": "independent"}


def test_predicates_of_the_embedded_corpus_are_learned_in_seconds(tmp_path: Path) -> None:
    config = experiment(PREDICATES, **{"trainer.epochs": "3"})
    metrics = json.loads(
        (
            run(config, "predicates", out=tmp_path / "run", options=RunOptions("cpu", quiet=True)) / "metrics.json"
        ).read_text()
    )
    assert metrics["test"]["f1"] > 0.9
