"""Config files, their arguments and their overrides."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

import spen_plugins as sp
from spen_plugins.config.evaluation import TABLES, evaluate, parameters, parse_arguments
from spen_plugins.config.experiment import ExperimentConfig
from spen_plugins.errors import ConfigError
from spen_plugins.settings.fields import fields

FUNCTION = """
local lib = import 'lib/base.libsonnet';
// What to do: function(nothing) here.
function(
  data='sample',  // sample, or a path
  n=lib.n,  # how many, (a number)
  table={ a: 1, b: [2, 3] },
  text='a, b) // no comment',
  seed=0  // of all
)
  local twice = function(x) 2 * x;
  {
    seed: seed + 100,
    task: { type: 'multilabel', corpus: data, nested: { deep: 1 } },
    trainer: { epochs: twice(n), net: null, list: [1, 2] },
    note: table,
    text: text,
  }
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "base.libsonnet").write_text("{ n: 3 }")

    def write_file(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return Path(name)

    return write_file


@pytest.fixture
def function(write) -> Path:
    return write("x.jsonnet", FUNCTION)


def test_a_function_takes_arguments_by_name(function):
    config = evaluate(function, {"data": "mine.arff", "n": "4", "table": '{"c": null}'})
    assert config["task"]["corpus"] == "mine.arff"
    assert config["trainer"]["epochs"] == 8
    assert config["note"] == {"c": None}


def test_defaults_and_imports_relative_to_the_config(function, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert evaluate(tmp_path / function)["trainer"]["epochs"] == 6


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("1e-3", 0.001),
        ("true", True),
        ("null", None),
        ('"3"', "3"),
        ("[1, 2]", [1, 2]),
        ("", ""),
        ("NaN", "NaN"),
        ("'quoted'", "'quoted'"),
        ("007", "007"),
    ],
)
def test_a_value_is_json_or_else_a_string(function, text, value):
    for name in ("data", "task.corpus"):
        assert evaluate(function, {name: text})["task"]["corpus"] == value


def test_a_parameter_wins_over_a_key_of_its_name(function):
    assert evaluate(function, {"seed": "7"})["seed"] == 107


def test_a_seed_that_a_function_ignores_is_rejected(write):
    path = write("fixed.jsonnet", "function(seed=0) { seed: 7, task: {} }")
    assert evaluate(path, {"seed": "7"})["seed"] == 7
    with pytest.raises(ConfigError, match=r"fixed.jsonnet: found seed=5, which the function ignores.*the seed 7"):
        evaluate(path, {"seed": "5"})
    assert evaluate(path, {"seed": "five"})["seed"] == 7
    path = write("split.jsonnet", "function(seed=0) { task: { split_seed: seed } }")
    assert evaluate(path, {"seed": "5"}) == {"task": {"split_seed": 5}}


def test_dotted_names_override_the_evaluated_config(function):
    config = evaluate(function, {"trainer.epochs": "1", "task.nested.deep": "2", "trainer.list.1": "9"})
    assert config["trainer"]["epochs"] == 1
    assert config["task"]["nested"]["deep"] == 2
    assert config["trainer"]["list"] == [1, 9]


def test_files_named_by_an_override_replace_the_default_corpus(write, function):
    assert evaluate(function, {"task.train": "a"})["task"] == {
        "type": "multilabel",
        "corpus": "files",  # the value that this config gives to data=files
        "nested": {"deep": 1},
        "train": "a",
    }
    for arguments in ({"data": "mine", "task.train": "a"}, {"data": "mine", "task.file": "a"}):
        assert evaluate(function, arguments)["task"]["corpus"] == "mine"
    for arguments in ({"task.train": "null"}, {"task.test": "a"}):
        assert evaluate(function, arguments)["task"]["corpus"] == "sample"
    path = write("own.jsonnet", "function(data='x') { task: { train: data, labels: data } }")
    assert evaluate(path, {"task.train": "a"})["task"] == {"train": "a", "labels": "x"}


def test_overrides_make_what_a_config_leaves_to_defaults(function):
    config = evaluate(function, {"trainer.net.lr": "0.1", "init.energy": "runs/a", "precision": "bf16"})
    assert config["trainer"]["net"] == {"lr": 0.1}
    assert config["init"] == {"energy": "runs/a"}
    assert config["precision"] == "bf16"


@pytest.mark.parametrize("name", ["note", "note.a"])
def test_any_key_of_the_config_can_be_overridden(function, name):
    assert evaluate(function, {name: "5"})["note"] in (5, {"a": 5, "b": [2, 3]})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dta", "unknown argument 'dta'. Did you mean 'data'? Arguments: data, n, table, text, seed."),
        ("deep", "unknown argument 'deep'. Did you mean 'task.nested.deep'?"),
        ("trainr.epochs", "unknown argument 'trainr.epochs'. Did you mean 'trainer'?"),
        ("trainer..epochs", "unknown argument 'trainer..epochs'"),
        ("trainer.epochs.x", "'trainer.epochs' is a number, not a table"),
        ("trainer.list.2", "'2' is not an index of a list of 2"),
    ],
)
def test_unknown_names_are_rejected(function, name, message):
    with pytest.raises(ConfigError) as error:
        evaluate(function, {name: "1"})
    assert message in str(error.value)
    assert str(error.value).startswith("x.jsonnet: ")


def test_a_required_argument_is_missing(write):
    path = write("r.jsonnet", "function(data, n=1) { data: data }")
    with pytest.raises(ConfigError, match=r"r\.jsonnet: the argument 'data' has no default; give data="):
        evaluate(path)
    assert evaluate(path, {"data": "x"}) == {"data": "x"}


def test_a_jsonnet_object_takes_overrides_only(write):
    path = write("o.jsonnet", "{ seed: 1 + 1 }")
    assert evaluate(path, {"seed": "5"}) == {"seed": 5}
    with pytest.raises(ConfigError, match="unknown argument 'data'"):
        evaluate(path, {"data": "5"})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonnet", "{\n  a: 1,,\n}", "a.jsonnet:2: syntax error"),
        ("a.jsonnet", "function(x=1)\n  { a: error 'unknown data %s' % x }", "a.jsonnet:2: unknown data 1"),
        ("a.jsonnet", "{ a: import 'lib/nope.libsonnet' }", "a.jsonnet: can't resolve lib/nope.libsonnet"),
        ("a.json", '{\n  "a": 1,\n  b\n}', "a.json:3: not JSON"),
        ("a.json", '{"a": 1, "a": 2}', "the key 'a' occurs twice"),
        ("a.yaml", "a: 1\nb: [1\n", "a.yaml:3: not YAML"),
        ("a.yaml", "a: 1\na: 2\n", "a.yaml:2: not YAML: the key 'a' occurs twice"),
        ("a.yaml", "1: 2\n", "the key 1 is not a string"),
        ("a.yaml", "a: !!python/object/apply:os.getcwd []", "not YAML"),
        ("a.yaml", "", "the config is null"),
        ("a.toml", "a = 1", "found suffix '.toml'; expected .jsonnet"),
        ("a.jsonnet", "[" * 5000, "a.jsonnet: can't be evaluated: it is nested too deeply"),
        ("a.jsonnet", "{ a: std.repeat('x', 1000000000000) }", "a.jsonnet: can't be evaluated: memory allocation of"),
        ("a.yaml", "a: &a [*a]\n", "a.yaml:1: not YAML"),
        ("a.json", '{"a": ' + "[" * 100_000, "a.json: can't be evaluated: it is nested too deeply"),
    ],
)
def test_errors_in_files_name_their_place(write, name, text, message):
    with pytest.raises(ConfigError) as error:
        evaluate(write(name, text))
    assert message in str(error.value)


def test_a_file_that_is_evaluated_can_be_interrupted(write, monkeypatch):
    path = write("a.jsonnet", "{ a: " + "[" * 20)  # takes hours
    main = threading.main_thread().ident
    # Processes that a shell starts in the background inherit an ignored SIGINT.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.2, signal.pthread_kill, [main, signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            evaluate(path)
    finally:
        signal.signal(signal.SIGINT, handler)


def test_an_error_in_a_library_names_it_unless_it_ships(write, tmp_path):
    (tmp_path / "lib" / "bad.libsonnet").write_text("{\n  from(all, x, name):: error 'unknown method %s' % x,\n}")
    for library, message in (
        ("bad", "lib/bad.libsonnet:2: unknown method zz"),
        ("choose", 'm.jsonnet: unknown method "zz"; known: a'),
    ):
        text = (
            f"local c = import 'lib/{library}.libsonnet';\nfunction(m='a') {{ a: c.from({{ a: {{}} }}, m, 'method') }}"
        )
        with pytest.raises(ConfigError) as error:
            evaluate(write("m.jsonnet", text), {"m": "zz"})
        assert str(error.value) == message


def test_missing_files(write):
    write("srl_seal.jsonnet", "{}")
    with pytest.raises(ConfigError, match=r"srl_sael\.jsonnet does not exist\. Did you mean 'srl_seal\.jsonnet'\?"):
        evaluate("srl_sael.jsonnet")
    with pytest.raises(ConfigError, match="lib is a folder"):
        evaluate("lib")


def test_a_config_is_utf_8_with_or_without_a_byte_order_mark(tmp_path):
    for suffix in ("json", "jsonnet"):
        (tmp_path / f"b.{suffix}").write_bytes(b'\xef\xbb\xbf{"seed": 3}')
        assert evaluate(tmp_path / f"b.{suffix}") == {"seed": 3}
    (tmp_path / "b.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ConfigError, match=r"b\.json: not UTF-8"):
        evaluate(tmp_path / "b.json")


def test_yaml_values_are_read_literally(write):
    text = "precision: no\nlr: 1e-3\nn: 010\nt: 1:30\nd: 2020-01-01\nb: true\ne:\nf: .5\ng: -3\nh: 'x'\ni: [~, 1.]\n"
    assert evaluate(write("a.yaml", text), {"seed": "4", "n": "2"}) == {
        "precision": "no",
        "lr": 0.001,
        "n": 2,
        "t": "1:30",
        "d": "2020-01-01",
        "b": True,
        "e": None,
        "f": 0.5,
        "g": -3,
        "h": "x",
        "i": [None, 1.0],
        "seed": 4,
    }


def test_a_table_of_yaml_with_two_names_is_two_tables(write):
    config = evaluate(write("a.yaml", "trainer: &t {net: {lr: 1}}\nenergy: *t\n"), {"trainer.net.lr": "2"})
    assert config == {"trainer": {"net": {"lr": 2}}, "energy": {"net": {"lr": 1}}}


def test_arguments_of_a_command_line():
    assert parse_arguments(["a=1", "b.c=x=y", "d="]) == {"a": "1", "b.c": "x=y", "d": ""}
    for arguments, message in (
        [["a"], "expected name=value"],
        [["=1"], "expected name=value"],
        [["a=1", "a=2"], "given twice"],
    ):
        with pytest.raises(ConfigError, match=message):
            parse_arguments(arguments)


def test_parameters_with_defaults_and_comments(function):
    assert [(p.name, p.default, p.doc) for p in parameters(function)] == [
        ("data", "'sample'", "sample, or a path"),
        ("n", "lib.n", "how many, (a number)"),
        ("table", "{ a: 1, b: [2, 3] }", ""),
        ("text", "'a, b) // no comment'", ""),
        ("seed", "0", "of all"),
    ]


def test_parameters_of_configs_without_any(write):
    assert parameters(write("o.jsonnet", "{}")) == []
    assert parameters(write("o.json", "{}")) == []
    assert [p.default for p in parameters(write("r.jsonnet", "function(data) {}"))] == [None]


def test_tables_match_an_experiments_fields():
    assert set(TABLES) == set(ExperimentConfig.model_fields)


def test_keys_are_documented_below_them_or_in_a_base_class() -> None:
    class Base(sp.Config):
        """Two lines,
one of them at the margin."""  # fmt: skip

        a: int = 1
        """First."""
        b: int = 2
        ...

    class Derived(Base):
        c: int = 3
        """Third,
        on two lines."""
        a: int = 4

    assert [(field.name, field.doc) for field in fields(Derived)] == [
        ("a", "First."),
        ("b", ""),
        ("c", "Third,\non two lines."),
    ]
