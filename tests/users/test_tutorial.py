"""docs/tutorial.md shows the files of docs/tutorial, which can be installed, keep the contracts and train."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc

import spen_plugins as sp
from tests.loaded import ROOT, module_of, piped
from tests.pages import blocks, call, commands, files

DOCS = ROOT / "docs"
PAGE = DOCS / "tutorial.md"
FOLDER = DOCS / "tutorial"
FILES = [path for pattern in ("*.*", "spen_morphs/*.py") for path in sorted(FOLDER.glob(pattern)) if path.is_file()]


@pytest.fixture
def plugin(site) -> Path:
    """The folder's package, installed as by pip."""
    shutil.copytree(FOLDER / "spen_morphs", site.path / "spen_morphs", ignore=shutil.ignore_patterns("__pycache__"))
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    [(name, module)] = project["entry-points"]["spen_plugins"].items()
    info = site.path / f"spen_morphs-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    (info / "entry_points.txt").write_text(f"[spen_plugins]\n{name} = {module}\n")
    return site.path


def test_the_page_has_every_file_unchanged() -> None:
    page_files = files(PAGE)
    assert sorted(page_files) == sorted(path.relative_to(FOLDER).as_posix() for path in FILES)
    for name, text in page_files.items():
        assert text == (FOLDER / name).read_text(encoding="utf-8"), name


@pytest.mark.parametrize("name", re.findall(r"^def (test_\w+)", (FOLDER / "test_morphs.py").read_text(), re.MULTILINE))
def test_the_tests_of_the_tutorial_pass(plugin: Path, tmp_path: Path, name: str) -> None:
    tests = module_of(FOLDER / "test_morphs.py")
    values: dict[str, Any] = {"tmp_path": tmp_path, "task": tests.task.__wrapped__(tmp_path)}
    function = getattr(tests, name)
    function(*(values[argument] for argument in inspect.signature(function).parameters))


def test_its_experiment_trains(plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In both stages, in a folder outside the checkout."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(FOLDER / "morphs.jsonnet", tmp_path)
    call("spen make-morphs words")
    for part in sp.PARTS:  # a few words
        file = tmp_path / "words" / f"{part}.jsonl"
        file.write_text("".join(file.read_text().splitlines(keepends=True)[:20]))
    small = ["hidden=4", "trainer.epochs=1", "trainer.net_epochs=1", "--device", "cpu", "--quiet"]
    call("spen-run morphs.jsonnet --out run", *small)
    run = sp.RunFolder.open(tmp_path / "run")
    assert [record["stage"] for record in run.history()] == ["net", "both"]
    assert set(run.history()[1]["losses"]) == {"energy.ranking", "net.cross_entropy", "net.energy"}
    assert set(run.metrics()["test"]) == {"exact_match"}
    shutil.rmtree(tmp_path / "words")
    words = ["gullerim", "kapicisuz"]
    answers = sp.load("run").predict([{"word": word} for word in words])
    assert ["".join(answer["morphs"]) for answer in answers] == words
    nlp = piped("spen_task", model="run")
    nlp.to_disk("pipeline")
    shutil.rmtree("run")
    for pipeline in (nlp, spacy.load("pipeline")):
        docs = list(pipeline.pipe([" ".join(words), "", words[1]]))
        predictions = [Doc(pipeline.vocab).from_bytes(doc.to_bytes())._.spen_predictions["spen_task"] for doc in docs]
        assert predictions == [answers, [], answers[1:]]


@pytest.mark.slow
def test_the_page_from_top_to_bottom(tmp_path: Path) -> None:
    """Installed by pip, in separate processes and an empty folder; the words are so easy that any net learns them."""
    target, folder = tmp_path / "site", tmp_path / "folder"
    folder.mkdir()
    source = shutil.copytree(FOLDER, tmp_path / "source", ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(target), str(source)], check=True, capture_output=True)
    shutil.copy(FOLDER / "morphs.jsonnet", folder)
    path = os.pathsep.join([str(target), *filter(None, [os.environ.get("PYTHONPATH")])])
    start = "import sys; from spen_plugins.cli.{0} import main; sys.argv[0] = '{1}'; sys.exit(main())"
    for line in commands(PAGE):
        program, *words = shlex.split(line)
        code = start.format({"spen": "main", "spen-run": "run"}[program], program)
        options = ["--device", "cpu"] if program == "spen-run" else []
        process = subprocess.run(
            [sys.executable, "-c", code, *words, *options],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        assert process.returncode == 0, f"{line}\n{process.stdout}{process.stderr}"
    metrics = sp.RunFolder.open(folder / "runs/morphs").metrics()
    assert metrics["test"]["exact_match"] > 0.6
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as stream:
        patch.syspath_prepend(str(target))
        patch.chdir(folder)
        for block in blocks(PAGE, "python"):
            if block not in files(PAGE).values():
                exec(compile(block, "docs/tutorial.md", "exec"), {})
    assert stream.getvalue().count("'morphs'") == 2 and stream.getvalue().count("['gul', 'ler', 'im']") == 2
    [shard] = (folder / "annotated").glob("*.jsonl")
    rows = [json.loads(line) for line in shard.read_text(encoding="utf-8").splitlines()]
    assert all("".join(row["spen_predictions"]["spen_task"][0]["morphs"]) == row["text"] for row in rows)
    card = (folder / "packages/en_morphs-0.0.0/README.md").read_text(encoding="utf-8")
    assert "spen_task" in card and "exact_match" in card
