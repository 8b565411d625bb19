"""Settings and fixtures of all tests: one thread, fixed seeds, small sample corpora, a folder for packages."""

from __future__ import annotations

import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import random
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spen_plugins.config import jsonnet
from spen_plugins.config.shipped import FOLDER
from spen_plugins.samples import labels, srl, tagged

torch.set_num_threads(1)
os.fsync = lambda number: None  # tests need no durable files


def _evaluate_once(
    path: Path, text: str, values: Mapping[str, Any], evaluate: Callable[..., Any] = jsonnet.evaluate
) -> Any:
    """Caches evaluations of shipped configs, which don't change; each evaluation is a process of 50 ms."""
    if FOLDER not in path.resolve().parents:
        return evaluate(path, text, values)
    key = json.dumps([str(path), text, values, sys.path])
    if key not in EVALUATED:
        EVALUATED[key] = json.dumps(evaluate(path, text, values))
    return json.loads(EVALUATED[key])


EVALUATED: dict[str, str] = {}
jsonnet.evaluate = _evaluate_once

FULL_SIZES = {corpus: corpus.SIZES for corpus in (labels, srl, tagged)}
for corpus, sizes in FULL_SIZES.items():
    corpus.SIZES = {part: size // 5 for part, size in sizes.items()}


@pytest.fixture(scope="module")
def whole_samples() -> Iterator[None]:
    """The sample corpora at full size, for all tests of a module; other tests use a fifth."""
    with pytest.MonkeyPatch.context() as patch:
        for corpus, sizes in FULL_SIZES.items():
            patch.setattr(corpus, "SIZES", sizes)
        yield


@pytest.fixture(autouse=True)
def _seed_random_numbers() -> None:
    """Seeds the random generators, so that a test's numbers don't depend on earlier tests."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


class Site:
    """A folder on `sys.path` with installed distributions, including real entry points."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def module(self, name: str, source: str) -> None:
        """Writes a module, as pip would."""
        (self.path / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")

    def install(
        self, plugin: str, source: str, *, distribution: str = "", version: str = "1.0", module: str = ""
    ) -> None:
        """Installs a distribution whose entry point `plugin` is a module with this source."""
        distribution = distribution or f"spen-{plugin}"
        module = module or distribution.replace("-", "_")
        self.module(module, source)
        info = self.path / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[spen_plugins]\n{plugin} = {module}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty folder to install into; modules imported from it are unloaded afterwards."""
    new_site = Site(tmp_path / "site")
    monkeypatch.syspath_prepend(str(new_site.path))
    earlier_modules = set(sys.modules)
    yield new_site
    for name in set(sys.modules) - earlier_modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(new_site.path)):
            del sys.modules[name]
