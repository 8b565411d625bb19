"""The names that plugins may import: they cost nothing, and docs/plugins.md has the members and settings of classes."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any

import pytest
from pydantic import BaseModel

import spen_plugins as sp
from spen_plugins import figures, nn, sentences, testing
from spen_plugins.registry.kinds import KINDS
from tests.loaded import ROOT

PAGE = (ROOT / "docs/plugins.md").read_text()
MODULES = {
    "spen_plugins": sp,
    "spen_plugins.nn": nn,
    "spen_plugins.sentences": sentences,
    "spen_plugins.figures": figures,
    "spen_plugins.testing": testing,
}
PARTS_OF_TASKS = (
    *("TakesExamples", "TakesMatrices", "ReadsText", "ReadsInputs", "WritesFormats", "PartlyLabelled", "Augments"),
    *("FitsDecoder", "ListsLabels", "NamesColumns", "Calibrated", "Rewards", "SharesSentences", "NamesSenses"),
    "ReadsDocs",
)
WRITTEN = (  # a plugin subclasses them, or is given them
    *(
        "Component",
        "FeatureNetwork",
        "InferenceNet",
        "Energy",
        "EnergyLoss",
        "CostNet",
        "Trainer",
        "Task",
        "FileTask",
        "Metric",
    ),
    *PARTS_OF_TASKS,
    *("OutputSpace", "Proposal", "Indexer", "Confidences", "Decisions", "Shown", "X", "Batch", "BoundEnergy"),
    *(
        "SparseLabels",
        "VectorInputs",
        "WordInputs",
        "ArcInputs",
        "TextInputs",
        "ImageInputs",
        "Phase",
        "Stage",
        "Context",
        "Update",
        "Model",
    ),
    *("TrainerConfig", "Player", "PlateauConfig", "Schedule"),
)


@pytest.mark.parametrize(
    "name",
    [
        "spen_plugins",
        *(f"spen_plugins.{part}" for part in ("nn", "sentences", "figures", "registry", "sklearn", "testing")),
    ],
)
def test_dir_lists_the_names_that_a_module_imports_at_first_use(name: str) -> None:
    module = importlib.import_module(name)
    assert set(module.__all__) <= set(dir(module))
    assert all(getattr(module, known) is not None for known in module.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = module.nonsense


def section(heading: str) -> str:
    """The page below a heading, up to the next of its level or above."""
    level = len(heading) - len(heading.lstrip("#"))
    return re.split(rf"^#{{1,{level}}} ", PAGE.split(f"\n{heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def listed(heading: str) -> list[str]:
    """The names in the first column of a section's tables."""
    rows = re.findall(r"^\| (`[^|]*) \|", section(heading), re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def members(cls: Any) -> set[str]:
    """Public attributes, fields and methods that a class itself has; a typed config's are its fields."""
    if issubclass(cls, BaseModel):
        return set(cls.__annotations__)
    names = {*vars(cls), *inspect.get_annotations(cls)}
    if inspect.isfunction(cls.__dict__.get("__init__")) and not is_dataclass(cls):
        tree = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(cls.__init__))))
        names |= {node.attr for node in tree if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    return {name for name in names if not name.startswith("_")}


def shown(name: str) -> set[str]:
    """The members in the page's block of a class."""
    [block] = re.findall(rf"^    class {name}\b.*\n((?:        .*\n)+)", PAGE, re.MULTILINE)
    lines = [re.match(r"(?:def )?([\w, ]+?)(?:[(:]|$)", line.strip()) for line in block.splitlines()]
    return {name.strip() for line in lines for name in line.group(1).split(",")}


@pytest.mark.parametrize("module", MODULES)
def test_public_names_are_documented(module: str) -> None:
    assert f"- `{module}`: " in section("## Public names")
    assert f"<!-- names of {module} -->" in (ROOT / "docs/api.md").read_text()
    names = MODULES[module].__all__
    assert len(set(names)) == len(names)
    undocumented = [
        name for name in names if inspect.isroutine(value := getattr(MODULES[module], name)) and not value.__doc__
    ]
    assert undocumented in ([], ["hookimpl"])


def test_the_checks_are_in_the_table() -> None:
    assert sorted(listed("### `spen_plugins.testing`")) == sorted(testing.__all__)


@pytest.mark.parametrize("name", WRITTEN)
def test_the_page_has_every_member_of_a_class(name: str) -> None:
    assert shown(name) == members(getattr(sp, name))


def test_every_base_class_of_a_hook_has_a_block() -> None:
    assert {kind.base[1] for kind in KINDS.values() if kind.base} <= set(WRITTEN)


def test_the_settings_are_those_of_the_classes() -> None:
    """Class attributes of what a plugin subclasses, with their defaults."""
    bases = ("Component", "FeatureNetwork", "InferenceNet", "Energy", "EnergyLoss", "CostNet", "Trainer", "Task")
    wanted = {}
    for base in (*bases, *PARTS_OF_TASKS, "OutputSpace", "Proposal"):
        cls = getattr(sp, base)
        own = {field.name for field in fields(cls)} if is_dataclass(cls) else set()  # an instance's, no class's
        for name in members(cls) & vars(cls).keys() - own:
            value = vars(cls)[name]
            if not callable(value) and not isinstance(value, (property, cached_property, classmethod)):
                wanted[f"{base}.{name}"] = value
    rows = dict(re.findall(r"^\| `(\w+\.\w+)` \| (.*?) \|", section("## Settings"), re.MULTILINE))
    for name, value in wanted.items():
        assert name in rows, f"docs/plugins.md lacks the setting {name}"
        assert rows[name].strip("`") == repr(value).replace("'", '"'), name
    for name in rows.keys() - wanted.keys():
        cls, _, member = name.partition(".")
        assert member in members(getattr(sp, cls)), f"there is no {name}"


@pytest.mark.parametrize("name", [name for name in testing.__all__ if name.startswith("check_")])
def test_checks_are_called_as_the_page_says(name: str) -> None:
    [parameters] = re.findall(rf"`{name}\((.*?)\)`:", section("### `spen_plugins.testing`"))
    signature = inspect.signature(getattr(testing, name))
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    assert f"({parameters})" == str(inspect.Signature(plain))


def test_importing_what_hooks_need_imports_nothing_else() -> None:
    heavy = {"torch", "numpy", "pydantic", "transformers", "rich", "matplotlib"}
    modules = ", ".join(name for name in MODULES if not name.endswith("testing"))
    code = f"import sys, {modules}; from spen_plugins import Classes, Functions, hookimpl; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not heavy & set(done.stdout.split())


def test_the_root_shows_the_parts_of_an_experiment_and_little_else() -> None:
    assert len([path for path in (ROOT / "spen_plugins").glob("*.py") if path.stem != "__init__"]) <= 16


def test_plugins_use_public_names_alone() -> None:
    """Type checkers' imports too, which the import contract leaves out; also in the tutorial and in a test's plugin."""
    for folder in ("plugins", "docs/tutorial", "tests/testing/stranger"):
        for path in (path for path in (ROOT / folder).rglob("*.py") if "build" not in path.parts):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "spen_plugins":
                    names = {alias.name for alias in node.names if f"{node.module}.{alias.name}" not in MODULES}
                    assert names <= set(MODULES[node.module].__all__), path
                    assert folder != "docs/tutorial" or ast.unparse(node) == "from spen_plugins import testing", path
                elif isinstance(node, ast.Import):
                    modules = {alias.name for alias in node.names if alias.name.startswith("spen_plugins")}
                    assert modules <= MODULES.keys(), path
                elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    known = {"sp": sp, "testing": testing}.get(node.value.id)
                    assert known is None or node.attr in known.__all__, f"{path}: {node.attr}"
