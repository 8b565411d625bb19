"""Run the notebooks of docs/notebooks, and write what their cells print into them.

    python tools/notebooks.py docs/notebooks/*.ipynb

Each runs in an empty folder. Text is kept, so that a reader sees what to expect without running them; pictures are not,
as they would make most of the file and change with every version of matplotlib.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

from spen_plugins.files import writing

SECONDS = 600
"""Longest time of a cell."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="+", type=Path, help="notebooks to run and rewrite")
    for path in parser.parse_args().notebooks:
        with TemporaryDirectory() as folder:
            notebook = text_alone(executed(path, Path(folder)))
        with writing(path) as part:
            nbformat.write(notebook, part)


def executed(path: Path, folder: Path) -> Any:
    """The notebook with the outputs of its cells, run in this folder.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised an error.
    """
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=resources).execute()
    return notebook


def text_alone(notebook: Any) -> Any:
    """The notebook without pictures, HTML, warnings, other messages, and anything that differs from run to run."""
    notebook.metadata = {key: notebook.metadata[key] for key in ("kernelspec", "language_info")}
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = _join_streams([_reduce_to_text(output) for output in cell.outputs if _is_text(output)])
    return notebook


def _is_text(output: Any) -> bool:
    if output.output_type == "stream":
        return output.name == "stdout"
    return not any(kind.startswith("image/") for kind in output.data)


def _reduce_to_text(output: Any) -> Any:
    if output.output_type != "stream":
        output.data = {"text/plain": output.data["text/plain"]}
    return output


def _join_streams(outputs: list[Any]) -> list[Any]:
    """Joins consecutive printed outputs, which a kernel sends in pieces that depend on timing."""
    joined: list[Any] = []
    for output in outputs:
        if joined and output.output_type == joined[-1].output_type == "stream":
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


if __name__ == "__main__":
    main()
