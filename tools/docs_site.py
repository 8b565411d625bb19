"""Hooks of mkdocs.yml: the README as home page, the notebooks as pages, and public names of packages."""

from __future__ import annotations

import inspect
import json
import re
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Adds the README as home page, and a page of the same name for each notebook: its texts, code and output."""
    from mkdocs.structure.files import File

    readme = Path(config.config_file_path).with_name("README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "index.md", content=_rewrite_links(readme)))
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        text = _write_page(json.loads(Path(file.abs_src_path).read_text(encoding="utf-8")))
        files.append(File.generated(config, f"{file.src_uri.removesuffix('.ipynb')}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replaces `<!-- names of PACKAGE -->` by these names. Links to notebooks lead to their pages, which link back."""
    markdown = re.sub(r"^<!-- names of (\S+) -->$", _write_names, markdown, flags=re.MULTILINE)
    markdown = re.sub(r"(\]\((?!https?:)[^)\s]+)\.ipynb(?=[)#])", r"\1.md", markdown)
    if (path := Path(page.file.src_uri)).parent.name == "notebooks":
        title, _, rest = markdown.partition("\n")
        markdown = f"{title}\n\n[This page as a notebook]({path.stem}.ipynb)\n{rest}"
    return markdown


def _rewrite_links(readme: str) -> str:
    """Makes links relative to docs/; links to other files of the repository become text."""
    readme = re.sub(r"(?<!!)\[([^]]+)\]\((?!https?:|docs/)[^)]+\)", r"\1", readme)
    return re.sub(r"\]\(docs/", "](", readme)


def _write_page(notebook: Any) -> str:
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
        for output in cell.get("outputs", []):
            text = "".join(output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"])
            parts.append("```text\n" + text.rstrip("\n") + "\n```")
    return "\n\n".join(parts) + "\n"


def _write_names(match: re.Match[str]) -> str:
    """A table of a package's names, and the documentation of each, without hooks."""
    package = import_module(match[1])
    members = {name: getattr(package, name) for name in sorted(package.__all__, key=str.lower) if name[0] != "_"}
    documented = {
        name: value for name, value in members.items() if not isinstance(value, FunctionType) or value.__doc__
    }
    style = "\n    options: {docstring_style: numpy}" if match[1].endswith(".sklearn") else ""
    rows = [f"| [`{name}`](#{match[1]}.{name}) | {_summarise(value)} |" for name, value in documented.items()]
    return "\n\n".join(
        ["\n".join(["| name | |", "|---|---|", *rows]), *(f"::: {match[1]}.{name}{style}" for name in documented)]
    )


def _summarise(value: Any) -> str:
    """The first paragraph of a class's or function's documentation, as a table's cell."""
    text = inspect.getdoc(value) or "" if isinstance(value, (type, FunctionType)) else ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")
