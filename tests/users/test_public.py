"""The names that plugins may import: cheap imports, and members and settings of classes in docs/plugins.md."""

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
from itertools import pairwise
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
DOCUMENTED = (  # a plugin subclasses or receives them
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
    assert all(getattr(module, public_name) is not None for public_name in module.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = module.nonsense


def find_section(heading: str) -> str:
    """Returns the page's text below a heading, up to the next heading of its level or above."""
    level = len(heading) - len(heading.lstrip("#"))
    return re.split(rf"^#{{1,{level}}} ", PAGE.split(f"\n{heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def find_names(heading: str) -> list[str]:
    """Returns the names in the first column of a section's tables."""
    rows = re.findall(r"^\| (`[^|]*) \|", find_section(heading), re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def find_members(cls: Any) -> set[str]:
    """Returns the public attributes, fields and methods that a class itself has; for a typed config, its fields."""
    if issubclass(cls, BaseModel):
        return set(cls.__annotations__)
    names = {*vars(cls), *inspect.get_annotations(cls)}
    if inspect.isfunction(cls.__dict__.get("__init__")) and not is_dataclass(cls):
        tree = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(cls.__init__))))
        names |= {node.attr for node in tree if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    return {name for name in names if not name.startswith("_")}


def find_documented_members(name: str) -> set[str]:
    """Returns the members in the page's block of a class."""
    [block] = re.findall(rf"^    class {name}\b.*\n((?:        .*\n)+)", PAGE, re.MULTILINE)
    lines = [re.match(r"(?:def )?([\w, ]+?)(?:[(:]|$)", line.strip()) for line in block.splitlines()]
    return {name.strip() for line in lines for name in line.group(1).split(",")}


@pytest.mark.parametrize("module", MODULES)
def test_public_names_are_documented(module: str) -> None:
    assert f"- `{module}`: " in find_section("## Public names")
    assert f"<!-- names of {module} -->" in (ROOT / "docs/api.md").read_text()
    names = MODULES[module].__all__
    assert len(set(names)) == len(names)
    undocumented = [
        name for name in names if inspect.isroutine(value := getattr(MODULES[module], name)) and not value.__doc__
    ]
    assert undocumented in ([], ["hookimpl"])


@pytest.mark.parametrize("module", MODULES)
def test_public_types_and_constants_have_docstrings(module: str) -> None:
    """Below their assignment, where the API page reads them."""
    undocumented = []
    for node in ast.walk(ast.parse(inspect.getsource(MODULES[module]))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("spen_plugins."):
            body = ast.parse(inspect.getsource(importlib.import_module(node.module))).body
            for statement, following in pairwise([*body, ast.Pass()]):
                if isinstance(statement, ast.Assign) and not is_docstring(following):
                    names = {ast.unparse(target) for target in statement.targets}
                    undocumented += names & {alias.name for alias in node.names}
    assert not undocumented


def is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def test_the_checks_are_in_the_table() -> None:
    assert sorted(find_names("### `spen_plugins.testing`")) == sorted(testing.__all__)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_page_has_every_member_of_a_class(name: str) -> None:
    assert find_documented_members(name) == find_members(getattr(sp, name))


def test_every_base_class_of_a_hook_has_a_block() -> None:
    assert {kind.base[1] for kind in KINDS.values() if kind.base} <= set(DOCUMENTED)


def test_the_settings_are_those_of_the_classes() -> None:
    """Class attributes of the classes that plugins subclass, with their defaults."""
    bases = ("Component", "FeatureNetwork", "InferenceNet", "Energy", "EnergyLoss", "CostNet", "Trainer", "Task")
    settings = {}
    for base in (*bases, *PARTS_OF_TASKS, "OutputSpace", "Proposal"):
        cls = getattr(sp, base)
        field_names = (
            {field.name for field in fields(cls)} if is_dataclass(cls) else set()
        )  # of instances, not of the class
        for name in find_members(cls) & vars(cls).keys() - field_names:
            value = vars(cls)[name]
            if not callable(value) and not isinstance(value, (property, cached_property, classmethod)):
                settings[f"{base}.{name}"] = value
    rows = dict(re.findall(r"^\| `(\w+\.\w+)` \| (.*?) \|", find_section("## Settings"), re.MULTILINE))
    for name, value in settings.items():
        assert name in rows, f"docs/plugins.md lacks the setting {name}"
        assert rows[name].strip("`") == repr(value).replace("'", '"'), name
    for name in rows.keys() - settings.keys():
        cls, _, member = name.partition(".")
        assert member in find_members(getattr(sp, cls)), f"there is no {name}"


@pytest.mark.parametrize("name", [name for name in testing.__all__ if name.startswith("check_")])
def test_checks_have_the_signatures_on_the_page(name: str) -> None:
    [parameters] = re.findall(rf"`{name}\((.*?)\)`:", find_section("### `spen_plugins.testing`"))
    signature = inspect.signature(getattr(testing, name))
    unannotated = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    assert f"({parameters})" == str(inspect.Signature(unannotated))


def test_importing_the_names_for_hooks_imports_nothing_heavy() -> None:
    heavy = {"torch", "numpy", "pydantic", "transformers", "rich", "matplotlib"}
    modules = ", ".join(name for name in MODULES if not name.endswith("testing"))
    code = f"import sys, {modules}; from spen_plugins import Classes, Functions, hookimpl; print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not heavy & set(process.stdout.split())


def test_the_root_has_few_modules_beyond_the_parts_of_an_experiment() -> None:
    assert len([path for path in (ROOT / "spen_plugins").glob("*.py") if path.stem != "__init__"]) <= 16


def test_plugins_use_only_public_names() -> None:
    """Includes imports for type checkers, which the import contract ignores, the tutorial, and a test's plugin."""
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
                    namespace = {"sp": sp, "testing": testing}.get(node.value.id)
                    assert namespace is None or node.attr in namespace.__all__, f"{path}: {node.attr}"
