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
    """The README as home page; a page for each notebook, named as it is: its texts, its code, and what it printed."""
    from mkdocs.structure.files import File

    readme = Path(config.config_file_path).with_name("README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "index.md", content=_home(readme)))
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        text = _page(json.loads(Path(file.abs_src_path).read_text(encoding="utf-8")))
        files.append(File.generated(config, f"{file.src_uri.removesuffix('.ipynb')}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Names in place of `<!-- names of PACKAGE -->`; links to notebooks lead to their pages, which link to them."""
    markdown = re.sub(r"^<!-- names of (\S+) -->$", _names, markdown, flags=re.MULTILINE)
    markdown = re.sub(r"(\]\((?!https?:)[^)\s]+)\.ipynb(?=[)#])", r"\1.md", markdown)
    if (path := Path(page.file.src_uri)).parent.name == "notebooks":
        title, _, rest = markdown.partition("\n")
        markdown = f"{title}\n\n[This page as a notebook]({path.stem}.ipynb)\n{rest}"
    return markdown


def _home(readme: str) -> str:
    """Links lead from docs/ on; those to other files of the repository are text."""
    readme = re.sub(r"(?<!!)\[([^]]+)\]\((?!https?:|docs/)[^)]+\)", r"\1", readme)
    return re.sub(r"\]\(docs/", "](", readme)


def _page(notebook: Any) -> str:
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
        for output in cell.get("outputs", []):
            text = "".join(output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"])
            parts.append("```text\n" + text.rstrip("\n") + "\n```")
    return "\n\n".join(parts) + "\n"


def _names(found: re.Match[str]) -> str:
    """A table of a package's names, and the documentation of each; hooks have neither."""
    package = import_module(found[1])
    known = {name: getattr(package, name) for name in sorted(package.__all__, key=str.lower) if name[0] != "_"}
    names = {name: value for name, value in known.items() if not isinstance(value, FunctionType) or value.__doc__}
    style = "\n    options: {docstring_style: numpy}" if found[1].endswith(".sklearn") else ""
    rows = [f"| [`{name}`](#{found[1]}.{name}) | {_summarise(value)} |" for name, value in names.items()]
    return "\n\n".join(
        ["\n".join(["| name | |", "|---|---|", *rows]), *(f"::: {found[1]}.{name}{style}" for name in names)]
    )


def _summarise(value: Any) -> str:
    """The first paragraph of a class's or function's documentation, as a table's cell."""
    text = inspect.getdoc(value) or "" if isinstance(value, (type, FunctionType)) else ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")
