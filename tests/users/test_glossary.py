"""The glossary's names are names of the code."""

from __future__ import annotations

import dataclasses
import re

import pytest

import spen_plugins as sp
from spen_plugins import spaces
from spen_plugins.registry import Registry
from spen_plugins.registry.host import KINDS
from tests.loaded import ROOT

PAGE = ROOT / "docs" / "glossary.md"
LINES = re.findall(r"^\| (?!term )(.*)\|$", PAGE.read_text(), re.MULTILINE)
TERMS = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)] for line in LINES]
NAMES = [name for row in TERMS for name in re.findall(r"`([^`]+)`", row[3])]


def test_every_row_has_a_term_its_meaning_a_symbol_and_a_place() -> None:
    assert len(TERMS) > 50 and all(len(row) == 4 and row[0] and row[1] for row in TERMS)
    terms = [term.strip() for row in TERMS for term in row[0].split(",")]
    assert len(terms) == len(set(terms)), "a term is explained twice"


@pytest.mark.parametrize("name", sorted({name for name in NAMES if name[0].isupper()}))
def test_classes_and_their_members_exist(name: str) -> None:
    cls, _, member = name.partition(".")
    target = getattr(sp, cls) if cls in sp.__all__ else getattr(spaces, cls)
    fields = {field.name for field in dataclasses.fields(target)} if dataclasses.is_dataclass(target) else set()
    assert not member or hasattr(target, member) or member in fields | target.__annotations__.keys()


@pytest.mark.parametrize("kind", ["seal", "infnet"])
def test_plugins_that_it_names_exist(kind: str) -> None:
    registry = Registry()
    types = {name.removeprefix("core.") for key in KINDS for name in registry.names(key)}
    mentioned = {name for name in NAMES if name.startswith(f"{kind}.")} | {"crf", "gbi", "rerank", "ssvm", "dvn"}
    assert mentioned <= types and all(f"`{name}`" in PAGE.read_text() for name in mentioned)
