"""`make docs`: a site without warnings, with every public name, that loads nothing from other sites."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from spen_plugins.config.evaluation import parameters
from spen_plugins.config.shipped import find, summaries
from tests.loaded import ROOT
from tools import docs_reference

PACKAGES = {
    "api": ("spen_plugins", *(f"spen_plugins.{part}" for part in ("nn", "sentences", "figures", "testing"))),
    "api_use": ("spen_plugins.sklearn", "spen_spacy", "spen_rules"),
}


@pytest.fixture(scope="module")
def reference() -> dict[str, str]:
    return docs_reference.pages()


@pytest.mark.slow
def test_the_site(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    process = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, env=quiet)
    assert process.returncode == 0, process.stdout + process.stderr
    for page, packages in PACKAGES.items():
        api = (tmp_path / page / "index.html").read_text(encoding="utf-8")
        for package in packages:
            for name in {*import_module(package).__all__} - {"spen_rules"}:  # a hook with its package's name
                assert name.startswith("_") or f'id="{package}.{name}"' in api, name
    for notebook in (ROOT / "docs/notebooks").glob("*.ipynb"):
        page = (tmp_path / "notebooks" / notebook.stem / "index.html").read_text(encoding="utf-8")
        assert f'href="../{notebook.name}"' in page and (tmp_path / "notebooks" / notebook.name).exists()
        assert 'class="highlight"' in page
    for page in tmp_path.rglob("*.html"):
        urls = re.findall(r"<(?:link|script|img)\b[^>]*?(?:href|src)=\"(https?:[^\"]*)", page.read_text("utf-8"))
        assert not urls, f"{page}: {urls}"


def test_the_site_has_every_page(reference: dict[str, str]) -> None:
    def list_pages(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [page for part in (entry.values() if isinstance(entry, dict) else entry) for page in list_pages(part)]

    text = re.sub(r"!!\S+ ?", "", (ROOT / "mkdocs.yml").read_text())  # mkdocs' own tags
    sources = ["index.md", *(path.name for path in (ROOT / "docs").glob("*.md"))]
    sources += [f"reference/{name}.md" for name in reference]
    notebooks = [f"notebooks/{path.stem}.md" for path in (ROOT / "docs/notebooks").glob("*.ipynb")]
    results = [f"results/{path.name}" for path in (ROOT / "docs/results").glob("*.md")]
    assert sorted(list_pages(yaml.safe_load(text)["nav"])) == sorted([*sources, *notebooks, *results])
    for page, packages in PACKAGES.items():
        assert re.findall(r"<!-- names of (\S+) -->", (ROOT / f"docs/{page}.md").read_text()) == list(packages)


@pytest.mark.parametrize("name", summaries())
def test_the_reference_has_every_argument_of_a_config(name: str, reference: dict[str, str]) -> None:
    """Guides describe the arguments that readers choose; the reference has all, with defaults and documentation."""
    section = reference["configs"].split(f"\n## `{name}`\n")[1].split("\nKeys by default:")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| \S.*? \| (.*) \|$", section, re.MULTILINE))
    assert {parameter.name for parameter in parameters(find(Path(name)))} <= rows.keys() and all(rows.values())


def test_the_gallery_has_every_figure() -> None:
    figures = re.findall(r"!\[([^]]*)\]\(figures/([^)]+)\)", (ROOT / "docs/gallery.md").read_text())
    assert sorted(name for _, name in figures) == sorted(path.name for path in (ROOT / "docs/figures").iterdir())


def test_every_image_has_an_alternative_text() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for text, name in re.findall(r"!\[([^]]*)\]\(([^)]+)\)", page.read_text()):
            assert len(text.split()) > 2, f"{page.name}: {name}"


def test_the_page_on_architecture_names_files_that_exist() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    paths = re.findall(r"`([\w./-]+(?:\.py|/))`", text)
    missing = [path for path in paths if not any((root / path).exists() for root in (ROOT, ROOT / "spen_plugins"))]
    assert len(paths) > 20 and not missing
