"""Hooks of mkdocs.yml: public names of packages, and the notebooks as pages."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """A page for each notebook, named as it is: its texts, its code, and the text that the code printed."""
    from mkdocs.structure.files import File

    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        text = _page(json.loads(Path(file.abs_src_path).read_text(encoding="utf-8")))
        files.append(File.generated(config, f"{file.src_uri.removesuffix('.ipynb')}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Names in place of `<!-- names of PACKAGE -->`; links to notebooks lead to their pages, which link to them."""
    markdown = re.sub(r"^<!-- names of (\S+) -->$", _names, markdown, flags=re.MULTILINE)
    markdown = re.sub(r"(\]\((?!https?:)[^)\s]+)\.ipynb(?=[)#])", r"\1.md", markdown)
    if page.file.generated_by is not None:
        title, _, rest = markdown.partition("\n")
        markdown = f"{title}\n\n[This page as a notebook]({Path(page.file.src_uri).stem}.ipynb)\n{rest}"
    return markdown


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
    package = found[1]
    names = [name for name in import_module(package).__all__ if not name.startswith("_")]
    return "\n\n".join(f"::: {package}.{name}" for name in sorted(names, key=str.lower))
