"""YAML 1.2: `no` is a string, `1e-3` a number, and keys are unique."""

from __future__ import annotations

import re
from typing import Any

import yaml


class Loader(yaml.SafeLoader):
    """PyYAML's safe loader without the surprises of YAML 1.1 (`precision: no` is not false)."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 (PyYAML's own interface)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        self.flatten_mapping(node)
        table: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.MarkedYAMLError(problem=f"the key {key!r} is not a string", problem_mark=key_node.start_mark)
            if key in table:
                problem = f"the key {key!r} occurs twice in one table"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
            table[key] = self.construct_object(value_node, deep=True)
        return table


def _resolve(tag: str, pattern: str, *first: str) -> None:
    """Resolve matching plain scalars to this tag; `first` are their possible first characters, "" for empty scalars."""
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"^(?:{pattern})$"), list(first))


_resolve("null", r"~|null|Null|NULL|", *"~nN", "")
_resolve("bool", r"true|True|TRUE|false|False|FALSE", *"tTfF")
_resolve("int", r"[-+]?[0-9]+", *"-+0123456789")
_resolve("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", *"-+.0123456789")
_resolve("merge", r"<<", "<")


def _integer(loader: Loader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


def _number(loader: Loader, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node))


# PyYAML reads 010 as eight and 1:30 as ninety.
Loader.add_constructor("tag:yaml.org,2002:int", _integer)
Loader.add_constructor("tag:yaml.org,2002:float", _number)
