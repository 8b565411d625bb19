"""README and docs: runs their Python and installs their example plugin; test_commands.py runs their commands."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import spen_plugins as sp
from spen_plugins import hookspecs
from spen_plugins.config.evaluation import evaluate, parse_arguments
from spen_plugins.config.experiment import parse_experiment
from spen_plugins.registry import Registry
from spen_plugins.registry.kinds import KINDS
from spen_plugins.runs.train import training
from spen_plugins.samples import labels
from tests.loaded import ROOT, trained
from tests.pages import blocks, call, commands, files

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/results").glob("*.md"))]


@pytest.fixture(params=["README.md", "docs/plugins.md"])
def acme(request, site) -> str:
    """A page, whose example plugin is installed under the name and module in its packaging."""
    page_files = files(request.param)
    packaging = page_files["entry point" if request.param == "README.md" else "pyproject.toml"]
    [(name, module)] = tomllib.loads(packaging)["project"]["entry-points"]["spen_plugins"].items()
    site.install(name, page_files[f"{module}.py"], module=module)
    return request.param


def test_the_example_plugin_is_ten_lines() -> None:
    code = [line for line in files("README.md")["spen_acme.py"].splitlines() if line.strip()]
    assert len(code) <= 10


def test_the_example_plugin_is_found_and_keeps_the_contract(acme) -> None:
    registry = Registry()
    assert "acme.quadratic" in registry.names("energy")
    [plugin] = [plugin for plugin in registry.check() if plugin.name == "acme"]
    assert plugin.error is None or not plugin.error
    cls, config = registry.parse("energy", {"type": "acme.quadratic", "strength": 2}, "energy", "x.jsonnet")
    y = torch.rand(3, 5, 2, dtype=torch.float64)
    bound = cls(config, SimpleNamespace(space=sp.LabelSet(["a", "b"]))).at(sp.X({}, None, 3))
    torch.testing.assert_close(bound(y), 2 * ((y - 0.5) ** 2).sum(-1))
    checks = [block for block in blocks(acme, "python") if "check_energy(" in block]
    assert len(checks) == 1
    for block in checks:
        names: dict = {}
        exec(block, names)
        for name, value in names.items():
            if name.startswith("test_"):
                value()


def test_the_example_plugin_trains(acme, tmp_path: Path) -> None:
    [line] = [line for line in commands(acme) if "acme" in line and "spen-run" in line]
    _, config, *arguments = shlex.split(line)
    values = parse_arguments([*arguments, "trainer.epochs=1", "features.hidden=[8]"])
    folder = trained(ROOT / "configs" / f"{Path(config).stem}.jsonnet", tmp_path / "run", **values)
    assert json.loads((folder / "config.json").read_text())["energy"]["type"] == "acme.quadratic"
    assert "example_f1" in sp.RunFolder(folder).metrics()["test"]


def test_python_of_the_readme_predicts(tmp_path: Path, monkeypatch, capsys) -> None:
    [block] = [block for block in blocks("README.md", "python") if "sp.load" in block]
    [line] = [line for line in commands("README.md") if line.startswith("spen-run texts")]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    call(line, "trainer.epochs=1", "trainer.epoch_updates=1", "--device", "cpu")
    names: dict = {}
    exec(block, names)
    assert set(names["answer"]["labels"]) <= names["answer"]["probabilities"].keys()


@pytest.mark.slow
def test_python_on_arrays_runs(tmp_path: Path, monkeypatch) -> None:
    """Runs the section's blocks in order and in one namespace, for one epoch each."""

    def evaluate_short(config, arguments):
        return evaluate(config, {**arguments, "trainer.epochs": "1", "trainer.epoch_updates": "1"})

    monkeypatch.setattr(training, "evaluate", evaluate_short)
    monkeypatch.setattr(labels, "SIZES", {"train": 40, "validation": 20, "test": 20})
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/arrays.md").read_text().split("\n## In Python, on arrays\n")[1].split("\n## ")[0]
    names: dict = {}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/arrays.md", "exec"), names)
    assert names["classifier"].get_params()["method"] == "nce"


def test_python_in_the_docs_compiles() -> None:
    for page in PAGES:
        for block in blocks(page, "python"):
            compile(block, str(page), "exec")


def test_the_plain_script_of_seal_runs_unchanged(capsys: pytest.CaptureFixture) -> None:
    """Both nets learn: predictions on unseen rows beat chance, and gold has a lower energy than its opposite."""
    names: dict = {"__name__": "__main__"}
    with torch.random.fork_rng():
        exec(compile(files("docs/plain_seal.md")["plain_seal.py"], "plain_seal.py", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 10 and float(printed[-1].split()[-1]) > 0.65
    x, y, energy = names["x"][500:], names["y"][500:], names["seal"].energy.eval()
    with torch.no_grad():
        is_lower = energy(x, y.unsqueeze(1)) < energy(x, 1 - y.unsqueeze(1))
    assert is_lower.float().mean() > 0.8
    assert not names["seal"].task.training and names["seal"].predict(x).unique().tolist() == [0, 1]


def test_the_config_in_the_docs_is_an_experiment() -> None:
    [block] = blocks("docs/configs.md", "json")
    parse_experiment(json.loads(block), "docs/configs.md", Registry())


def test_links_between_pages_have_targets() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).is_file(), f"{page.name}: {target}"


HOOKS = [name for name, value in vars(hookspecs).items() if inspect.isfunction(value) and name.startswith("spen_")]


@pytest.mark.parametrize("hook", HOOKS)
def test_docs_have_every_hook(hook: str) -> None:
    """A heading has the signature, and below it is the base class with every method that a plugin may write."""
    text = (ROOT / "docs/plugins.md").read_text()
    [(key, kind)] = [(key, kind) for key, kind in KINDS.items() if kind.hook == hook]
    if kind.base is None:
        assert f'### `{hook}() -> {{"name": "module:function"}}`' in text
        return
    base = kind.load(kind.base)
    heading = f'### `{hook}() -> {{"name": {base.__name__}}}`'
    assert heading in text
    section = text.split(heading, 1)[1].split("\n### ", 1)[0]
    assert f"Config key `{key}`" in section and f"class {base.__name__}(" in section
    for name in getattr(base, "__abstractmethods__", ()) or ("forward",):
        expected = re.sub(r"\bself, ", "", str(inspect.signature(getattr(base, name))).replace("'", ""))
        signature, *_ = re.findall(rf"def {name}(\(.*?\)(?: -> \S.*?)?)(?:  |$)", section, re.MULTILINE)
        assert re.sub(r"\bself, |\bself", "", signature).strip() == re.sub(r"\(self\)", "()", expected), name


def test_docs_have_no_removed_hook() -> None:
    documented = re.findall(r"^### `(\w+)\(", (ROOT / "docs/plugins.md").read_text(), re.MULTILINE)
    assert sorted(documented) == sorted(HOOKS)
