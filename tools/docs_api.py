"""For mkdocs.yml: the public names of a package in place of `<!-- names of PACKAGE -->`."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    """mkdocs calls it for each page."""
    return re.sub(r"^<!-- names of (\S+) -->$", _names, markdown, flags=re.MULTILINE)


def _names(found: re.Match[str]) -> str:
    package = found[1]
    names = [name for name in import_module(package).__all__ if not name.startswith("_")]
    return "\n\n".join(f"::: {package}.{name}" for name in sorted(names, key=str.lower))
