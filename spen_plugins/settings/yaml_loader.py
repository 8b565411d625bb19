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


_SCALARS = (  # tag, pattern, and its possible first characters, "" for empty scalars
    ("null", r"~|null|Null|NULL|", [*"~nN", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("int", r"[-+]?[0-9]+", [*"-+0123456789"]),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", [*"-+.0123456789"]),
    ("merge", r"<<", ["<"]),
)
for tag, pattern, first in _SCALARS:
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"^(?:{pattern})$"), first)
# PyYAML reads 010 as eight and 1:30 as ninety.
Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))
Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(loader.construct_scalar(node)))
