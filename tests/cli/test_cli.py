"""Command lines as a user sees them: help, messages, exit statuses."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from spen_plugins.cli import main
from spen_plugins.cli.common import columns, write_lines
from spen_plugins.errors import ConfigError, DataError, Interrupted, NonFiniteLoss, PluginError, RunError
from spen_plugins.registry.host import PluginHost
from spen_plugins.runs.options import RunOptions
from tests.loaded import ROOT, spen, spen_run

HEAVY = ("torch", "transformers", "spacy", "numpy", "accelerate", "rjsonnet", "yaml", "optuna", "matplotlib", "jinja2")

SCALE = """
    import spen_plugins as sp

    class Scale(sp.Energy):
        '''Scale of Nobody (2020, Eq. 1).

        More on it.
        '''

        class Config(sp.Config):
            strength: float = 1.0
            '''How strong.'''
            width: int

    @sp.hookimpl
    def spen_energy():
        return {"scale": Scale}
"""


@pytest.fixture
def install_fake(monkeypatch):
    """A function that replaces a module of the package by one with these members."""
    # Modules that import it by name must be imported before, or they would keep the replacement after the test.
    for user in (
        "runs.many.seeds",
        "runs.many.sweep",
        "report.report",
        "runs.predict.tokenised",
        "data.parts.file_parts",
        "runs.predict.writing",
    ):
        importlib.import_module(f"spen_plugins.{user}")

    def put(name: str, **members):
        module = types.ModuleType(f"spen_plugins.{name}")
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, f"spen_plugins.{name}", module)
        monkeypatch.setattr(f"spen_plugins.{name}", module, raising=False)

    return put


@pytest.fixture
def config(tmp_path) -> Path:
    path = tmp_path / "x.jsonnet"
    path.write_text("function(data='sample', seed=0) { task: { type: 'multilabel', corpus: data }, seed: seed }")
    return path


# Help


@pytest.mark.parametrize("command", ["predict", "data", "describe"])
def test_help_of_a_command_imports_nothing_heavy(command):
    code = (
        "import sys; from spen_plugins.cli.main import app\n"
        f"try: app({[command, '--help']!r})\n"
        f"finally: print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert "Usage" in result.stdout
    assert result.stderr.strip() == "[]"


@pytest.mark.parametrize("module", ["run", "main"])
def test_help_is_quick(module):
    """Counts imports, which take most of the time: torch alone is more than a thousand modules."""
    code = (
        "import atexit, runpy, sys; sys.argv = ['spen', '--help']\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        f"runpy.run_module('spen_plugins.cli.{module}', run_name='__main__')"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    imported = result.stderr.split()
    assert "Usage" in result.stdout and "typer" in imported
    assert not {*HEAVY, "pydantic"} & set(imported)
    assert len(imported) < 600


def test_versions():
    for result in (spen("--version"), spen_run("--version")):
        assert result.stdout.startswith("spen-plugins ")


# Commands of plugins

GREET = """
    from spen_plugins import hookimpl

    @hookimpl
    def spen_command():
        return {"say_hello": "acme_commands:hello"}
"""
HELLO = """
    import sys
    from typing import Annotated
    import typer
    from spen_plugins.errors import RunError

    def hello(name: str, loud: Annotated[bool, typer.Option(help="With a sign.")] = False) -> None:
        '''Say hello to NAME.

        More.
        '''
        if name == "nobody":
            raise RunError("nobody is there")
        print(f"hello {name}" + "!" * loud)
"""


@pytest.fixture
def greeting(site):
    site.module("acme_commands", HELLO)
    site.install("acme", GREET)
    return site


def test_a_command_of_a_plugin(greeting):
    assert spen("say-hello", "Anna", "--loud").stdout == "hello Anna!\n"
    assert "With a sign." in spen("say-hello", "--help").stdout
    result = spen("say-hello", "nobody", status=1)
    assert (result.stdout, result.stderr) == ("", "error: nobody is there\n")


def test_a_plugins_command_may_have_subcommands(site):
    apps = "\n    app = typer.Typer()\n    app.command()(hello)\n    app.command('bye')(hello)\n"
    site.module("acme_commands", HELLO + apps)
    site.install("acme", GREET.replace("acme_commands:hello", "acme_commands:app"))
    assert spen("say-hello", "bye", "Anna").stdout == "hello Anna\n"
    assert spen("say-hello", "hello", "nobody", status=1).stderr == "error: nobody is there\n"


def test_help_lists_it_without_importing_it_and_without_terminal_codes(greeting):
    greeting.module("acme_commands", HELLO.replace("Say hello", "Say \\x1b[31mhello"))
    result = spen("--help")
    assert "say-hello" in result.stdout and r"Say \x1b[31mhello to NAME. (spen-acme)" in result.stdout
    assert "spen_acme" in sys.modules and "acme_commands" not in sys.modules


def test_the_cores_commands_need_no_plugin(predictor, greeting):
    spen("predict", "runs/x", "f")
    assert "spen_acme" not in sys.modules


def test_a_command_named_like_one_of_the_core_is_rejected(site):
    site.module("acme_commands", HELLO)
    site.install("acme", GREET.replace('hello"}', 'hello", "predict": "acme_commands:hello"}'))
    sentence = "plugin 'acme' (spen-acme 1.0): rejected command 'predict', which spen already provides"
    assert f"note: {sentence}\n" in spen("--help").stderr
    checked = spen("plugins", "--check", status=2)
    assert sentence in checked.stdout
    assert "acme.say_hello" in spen("describe", "command").stdout


def test_a_command_that_two_plugins_have(greeting):
    greeting.install("other", GREET)
    assert spen("--help").stdout.count("say-hello") == 1
    result = spen("say-hello", "Anna", status=2)
    plugins = "plugin 'acme' (spen-acme 1.0) and plugin 'other' (spen-other 1.0)"
    assert f"command 'say-hello' is provided by {plugins}" in result.stderr


@pytest.mark.parametrize(
    ("target", "error"),
    [("nowhere:hello", "No module named 'nowhere'"), ("acme_commands:bye", "bye"), ("acme_commands:sys", "a function")],
)
def test_a_command_that_cannot_be_imported(site, target, error):
    site.module("acme_commands", HELLO)
    site.install("acme", GREET.replace("acme_commands:hello", target))
    assert "say-hello" in spen("--help").stdout
    result = spen("say-hello", "Anna", status=2)
    assert error in result.stderr and "plugin 'acme' (spen-acme 1.0)" in result.stderr


def test_a_broken_plugin_breaks_no_help(site):
    site.install("acme", "raise RuntimeError('boom')")
    result = spen("--help")
    assert "predict" in result.stdout
    assert "note: plugin 'acme'" in result.stderr and "RuntimeError: boom" in result.stderr
    assert "boom" in spen("say-hello", status=2).stderr


def test_an_unknown_command_suggests_the_nearest():
    assert "unknown command 'predct'. Did you mean 'predict'?" in spen("predct", status=2).stderr


def test_a_command_whose_plugin_is_not_installed(monkeypatch, site):
    monkeypatch.setattr(main.Commands, "host", property(lambda _: PluginHost([str(site.path)])))
    result = spen("package", "runs/x", "--name", "mine", status=2)
    assert "comes with the plugin spen-spacy" in result.stderr
    assert "pip install spen-spacy" in result.stderr


# spen-run


def test_a_run_gets_config_and_options(install_fake, config, tmp_path):
    calls = []

    def record_run(evaluated, source, *options):
        calls.append((evaluated, source, options))
        return Path("runs/x")

    install_fake("runs.train.runner", run=record_run)
    result = spen_run(
        str(config), "data=mine", "trainer.epochs=3", "--out", "o", "--device", "cpu", "-q", "--checkpoint-every", "5"
    )
    assert (result.stdout, result.stderr) == ("runs/x\n", "")
    [(evaluated, source, options)] = calls
    assert evaluated["task"]["corpus"] == "mine"
    assert evaluated["trainer"] == {"epochs": 3}
    assert source == str(config)
    assert options == (Path("o"), RunOptions("cpu", True, 5.0))


def test_resume_accepts_only_a_folder(install_fake, config):
    calls = []
    install_fake("runs.train.runner", resume=lambda *arguments: calls.append(arguments) or Path("r"))
    spen_run("--resume", "runs/r")
    assert calls == [(Path("runs/r"), RunOptions())]
    result = spen_run(config, "--resume", "runs/r", status=2)
    assert "omit CONFIG, NAME=VALUE and --out" in result.stderr


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ConfigError("bad key"), 2),
        (PluginError("no plugin"), 2),
        (DataError("f.arff", 3, "x", "y"), 2),
        (RunError("disk full"), 1),
        (NonFiniteLoss("NaN in phase net"), 1),
        (Interrupted("stopped; resume with"), 130),
        (KeyboardInterrupt(), 130),
    ],
)
def test_errors_are_one_message_with_their_status(install_fake, config, error, status):
    def fails(*_, **__):
        raise error

    install_fake("runs.train.runner", run=fails)
    result = spen_run(config, status=status)
    assert result.stdout == ""
    assert (str(error) or "interrupted") in result.stderr
    assert "Traceback" not in result.stderr


def test_internal_errors_are_not_hidden(install_fake, config):
    def fails(*_, **__):
        raise ZeroDivisionError

    install_fake("runs.train.runner", run=fails)
    assert isinstance(spen_run(config, status=1).exception, ZeroDivisionError)


def test_a_wrong_config_is_reported_without_loading_torch(config):
    code = "import sys\nfrom spen_plugins.cli.run import app\ntry: app(%r)\nfinally: print('torch' in sys.modules)"
    words = [str(config), "dta=1"]
    result = subprocess.run([sys.executable, "-c", code % words], capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode == 2
    assert result.stdout.strip() == "False"
    assert "unknown argument 'dta'. Did you mean 'data'?" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("words", [[], ["nope.jsonnet"], ["--frobnicate"], ["{config}", "novalue"]])
def test_a_wrong_command_line_exits_with_status_2(config, words):
    result = spen_run(*(word.format(config=config) for word in words), status=2)
    assert result.stderr


def test_the_arguments_of_a_config(config):
    config.write_text(
        "function(data='sample', seed=0) { task: { type: 'multilabel', corpus: data }, seed: seed, "
        "features: { type: 'mlp' }, inference_net: { type: 'independent', bias: true }, "
        "energy: { type: 'sum', terms: { own: { type: 'local', features: { type: 'mlp', hidden: [7] } } } }, "
        "trainer: { type: 'cross_entropy' } }"
    )
    result = spen_run(config, "--arguments", "trainer.epochs=4", "trainer.probe.steps=9")
    choices, keys = result.stdout.split("\n\n")
    assert [line.split() for line in choices.splitlines()[1:]] == [["data", "'sample'"], ["seed", "0"]]
    rows = {line.split()[0]: line for line in keys.splitlines()[1:]}
    for name, value, type_, text in (
        ("task.corpus", '"sample"', '("sample" | null)', ""),
        ("trainer.epochs", "4", "(int, >= 1)", " epochs."),
        ("trainer.probe.steps", "9", "(int, >= 1, <= 10000)", "Gradient steps."),
        ("inference_net.bias", "true", "(true or false | null)", ""),
        ("energy.terms.own.features.hidden", "[7]", "(list of int", ""),
        ("energy_loss", "null", "(table)", "trains the energy."),
    ):
        assert f"= {value} " in rows[name] and type_ in rows[name] and rows[name].rstrip().endswith(text), name
    assert "trainer.probe" not in rows and "energy.features.type" not in rows


def test_the_arguments_of_a_config_that_is_wrong(config):
    result = spen_run(config, "--arguments", status=2)
    assert "data  'sample'" in result.stdout and "'inference_net' is missing" in result.stderr


def test_the_arguments_of_a_config_whose_plugin_is_missing(config):
    config.write_text(
        "function(data='sample') { task: { type: 'multilabel' }, features: { type: 'mlp' }, "
        "inference_net: { type: 'independent' }, trainer: { type: 'nope.joint' } }"
    )
    result = spen_run(config, "--arguments")
    assert "data  'sample'" in result.stdout and "keys" not in result.stdout
    assert "pip install spen-nope" in result.stderr


def test_a_line_of_documentation_ends_with_its_sentence():
    from spen_plugins.cli.run import first_sentence

    assert (
        first_sentence("As in Lee et al. (2022, Eq. 4 and\n    Fig. 2). More of it.")
        == "As in Lee et al. (2022, Eq. 4 and Fig. 2)."
    )


# spen plugins, spen describe


def test_plugins_are_listed_without_being_imported(site):
    site.install("scale", SCALE)
    result = spen("plugins")
    assert "scale" in result.stdout
    assert "spen-scale 1.0" in result.stdout
    assert "spen_scale" not in sys.modules


def test_check_reports_broken_plugins(site):
    site.install("bad", "raise RuntimeError('boom')")
    spen("plugins")
    assert "RuntimeError: boom" in spen("plugins", "--check", status=2).stdout
    for version in ("1.0", "2.0"):
        site.install("twin", SCALE, distribution=f"spen-{version[0]}", version=version)
    result = spen("plugins", status=2)
    assert "the plugin name 'twin' is claimed by spen-1 1.0 and spen-2 2.0" in result.stdout


def test_describe_shows_fields_types_defaults_and_source(site):
    site.install("scale", SCALE)
    result = spen("describe", "energy", "scale.scale")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    for line in (
        "Scale of Nobody (2020, Eq. 1).",
        "class: spen_scale:Scale, from spen-scale 1.0",
        "strength float = 1.0",
        "How strong.",
        "width int required",
    ):
        assert line in lines
    nested = spen("describe", "trainer", "cross_entropy").stdout
    assert "net.lr" in nested and "Learning rate." in nested


def test_describe_without_a_type_lists_them(site):
    site.install("scale", SCALE)
    site.install("bad", "raise RuntimeError('boom')")
    result = spen("describe", "energy")
    assert "linear_chain" in result.stdout
    assert any(
        " ".join(line.split()) == "scale.scale Scale of Nobody (2020, Eq. 1)." for line in result.stdout.splitlines()
    )
    assert "boom" in result.stderr


@pytest.mark.parametrize("words", [["enrgy"], ["energy", "locl"], ["energy", "nope.x"]])
def test_describe_rejects_unknown_names(words):
    result = spen("describe", *words, status=2)
    assert result.stderr.startswith("error: ")


# Runs and data


class Predictor:
    folder = types.SimpleNamespace(config=lambda: {"task": {}})
    task = types.SimpleNamespace(
        read=lambda path: ["x", "y"], notes=lambda: ["f: read as it is"], formats=dict, shown=None, space=None
    )

    def predict_examples(self, examples, energy=False):
        assert examples == ["x", "y"]
        return [{"labels": ["é"]}, [1, 2]]

    def evaluate_file(self, path, part):
        return {"scores": {"example_f1": 0.5}}

    def score_file(self, path):
        yield {"energy": -1.5}


@pytest.fixture
def predictor(install_fake):
    install_fake("runs.predict.predictor", load=lambda run, device, refine=None, precision="no": Predictor())
    install_fake("runs.folder.sources", warn_if_seen=lambda loaded, file: [])


@pytest.mark.parametrize(
    ("command", "expected"),
    [("predict", [{"labels": ["é"]}, [1, 2]]), ("score", [{"energy": -1.5}])],
)
def test_each_line_is_one_json_value(predictor, tmp_path, command, expected):
    assert [json.loads(line) for line in spen(command, "runs/x", "f").stdout.splitlines()] == expected
    out = tmp_path / "out.jsonl"
    spen(command, "runs/x", "f", "--out", str(out))
    assert [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] == expected


def test_evaluate_prints_json(predictor):
    assert json.loads(spen("evaluate", "runs/x", "f").stdout) == {"scores": {"example_f1": 0.5}}


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    def values():
        yield 1
        raise RunError("halfway")

    out = tmp_path / "out.jsonl"
    out.write_text("before")
    with pytest.raises(RunError):
        write_lines(values(), out)
    assert out.read_text() == "before"
    assert list(tmp_path.iterdir()) == [out]
    with pytest.raises(RunError, match="can't be written"):
        write_lines([1], out / "out.jsonl")
    write_lines([1], tmp_path / "new" / "out.jsonl")
    assert (tmp_path / "new" / "out.jsonl").read_text() == "1\n"


@pytest.mark.parametrize(
    "command", [("predict", "--text", "Hello"), ("evaluate", "f"), ("score", "f"), ("compare",), ("report",)]
)
def test_nothing_is_computed_if_out_cannot_be_written(install_fake, tmp_path, monkeypatch, command):
    install_fake("runs.predict.predictor", load=lambda *arguments, **options: pytest.fail("a run was loaded"))
    install_fake("runs.many.groups", read_groups=lambda *arguments: pytest.fail("runs were read"))
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).name != "read_only")
    (tmp_path / "read_only").mkdir()
    (tmp_path / "file").touch()
    for place in ("file/out.md", ".", "read_only/new/out.md"):
        name, *words = command
        result = spen(name, "runs/x", *words, "--out", str(tmp_path / place), status=2)
        assert "can't be written" in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize("command", ["predict", "evaluate", "score"])
def test_out_is_neither_the_input_nor_a_file_of_a_run(install_fake, tmp_path, command):
    install_fake("runs.predict.predictor", load=lambda *arguments, **options: pytest.fail("a run was loaded"))
    file, weights = tmp_path / "in.csv", tmp_path / "run" / "weights.safetensors"
    weights.parent.mkdir()
    for path in (file, weights, weights.with_name("config.json")):
        path.write_text("kept")
    for out, message in ((f"{tmp_path}/./in.csv", "is an input file"), (str(weights), "is a file of the run")):
        result = spen(command, "runs/x", str(file), "--out", out, status=2)
        assert message in " ".join(result.output.replace("│", " ").split())
    assert file.read_text() == weights.read_text() == "kept"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_is_written_to_not_replaced(predictor, tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for out in (pipe, link):
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            spen("score", "runs/x", "f", "--out", str(out))
            assert json.loads(os.read(reader, 100)) == {"energy": -1.5}
        finally:
            os.close(reader)
    assert pipe.is_fifo() and link.is_symlink() and sorted(tmp_path.iterdir()) == [link, pipe]


def test_data_asks_before_it_downloads(install_fake):
    answers = []

    def get(name, yes, ask, say):
        answers.append(yes or ask("Licence X. Go on?"))
        return Path("/cache") / name

    install_fake("data.download", get=get)
    assert spen("data", "get", "bibtex", "--yes").stdout.strip() == "/cache/bibtex"
    assert "Licence X" in spen("data", "get", "bibtex", input="n\n").stderr
    assert answers == [True, False]


def test_a_split_gets_its_options(install_fake):
    calls = []

    def split(*arguments, **columns):
        calls.append((*arguments[:-1], columns))
        arguments[-1]("as it was read")
        return Path("m.json")

    install_fake("data.parts.split", split_file=split)
    result = spen("data", "split", "m.arff", "label_count=5", "--seed", "3", "drop=a,b")
    assert result.stdout.strip() == "m.json" and "as it was read" in result.stderr
    assert calls == [(Path("m.arff"), None, 3, {"label_count": 5, "drop": "a,b"})]


def test_the_catalogue_is_listed():
    assert [line.split()[0] for line in spen("data", "list").stdout.splitlines()][:1] == ["bibtex"]


def test_columns():
    assert columns([["a", "bb", "c"], ["aaa", "b", "cc"]], "  ") == ["  a    bb  c", "  aaa  b   cc"]
    assert columns([]) == []
