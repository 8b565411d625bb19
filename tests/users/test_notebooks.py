"""The notebooks of docs/notebooks run from top to bottom, and are stored as `tools/notebooks.py` writes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.loaded import ROOT, module_of

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
MAX_OUTPUT = 2000
"""Maximum number of characters of a cell's stored output."""

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def list_code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@every_notebook
@pytest.mark.slow
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an error, and each cell still prints as many outputs as are stored, whatever the numbers."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    folder = tmp_path / "empty"
    folder.mkdir()
    tool = module_of(ROOT / "tools/notebooks.py")
    executed = tool.text_alone(tool.executed(path, folder))
    nbformat.validate(executed)
    stored_cells = list_code_cells(nbformat.read(path, as_version=4))
    assert [len(cell.outputs) for cell in list_code_cells(executed)] == [len(cell.outputs) for cell in stored_cells]


@every_notebook
def test_its_outputs_are_short_texts(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code_cells = list_code_cells(notebook)
    assert [cell.execution_count for cell in code_cells] == list(range(1, len(code_cells) + 1))
    for output in (output for cell in code_cells for output in cell.outputs):
        text = output.text if output.output_type == "stream" else output.data["text/plain"]
        assert output.get("name", "stdout") == "stdout" and output.get("data", {}).keys() <= {"text/plain"}
        assert len(text) <= MAX_OUTPUT and str(ROOT) not in text and "/tmp" not in text


@every_notebook
def test_its_links_have_targets(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", text):
        assert (path.parent / target).exists(), target


def test_output_in_pieces_is_joined() -> None:
    def make_output(text: str, name: str = "stdout") -> Any:
        return nbformat.v4.new_output("stream", name=name, text=text)

    value = nbformat.v4.new_output(
        "execute_result", data={"text/plain": "5", "text/html": "<b>5</b>"}, execution_count=1
    )
    pieces = [
        make_output("one\n"),
        make_output("a warning", "stderr"),
        make_output("two\n"),
        value,
        make_output("three\n"),
    ]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python"}, "language_info": {"name": "python"}}
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=pieces)], metadata=metadata)
    [cell] = module_of(ROOT / "tools/notebooks.py").text_alone(notebook).cells
    assert [output.get("text", output.get("data")) for output in cell.outputs] == [
        "one\ntwo\n",
        {"text/plain": "5"},
        "three\n",
    ]
