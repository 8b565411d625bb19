"""Settings and fixtures of all tests: one thread, fixed random numbers, small sample corpora, a folder for packages."""

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
os.fsync = lambda number: None  # no machine dies here


def _evaluate_once(
    path: Path, text: str, values: Mapping[str, Any], once: Callable[..., Any] = jsonnet.evaluate
) -> Any:
    """Shipped configs stay as they are: each is evaluated once with the same arguments, a process of 50 ms."""
    if FOLDER not in path.resolve().parents:
        return once(path, text, values)
    key = json.dumps([str(path), text, values, sys.path])
    if key not in EVALUATED:
        EVALUATED[key] = json.dumps(once(path, text, values))
    return json.loads(EVALUATED[key])


EVALUATED: dict[str, str] = {}
jsonnet.evaluate = _evaluate_once

WHOLE = {corpus: corpus.SIZES for corpus in (labels, srl, tagged)}
for corpus, sizes in WHOLE.items():
    corpus.SIZES = {part: size // 5 for part, size in sizes.items()}


@pytest.fixture(scope="module")
def whole_samples() -> Iterator[None]:
    """The sample corpora that ship, for all tests of a module; others see a fifth."""
    with pytest.MonkeyPatch.context() as patch:
        for corpus, sizes in WHOLE.items():
            patch.setattr(corpus, "SIZES", sizes)
        yield


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    """The same random numbers for a test whichever were run before it."""
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


class Site:
    """A folder on `sys.path` with installed distributions, real entry points and all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def module(self, name: str, source: str) -> None:
        """A module, as pip would have put it there."""
        (self.path / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")

    def install(
        self, plugin: str, source: str, *, distribution: str = "", version: str = "1.0", module: str = ""
    ) -> None:
        """A distribution whose entry point `plugin` is a module with this source."""
        distribution = distribution or f"spen-{plugin}"
        module = module or distribution.replace("-", "_")
        self.module(module, source)
        info = self.path / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[spen_plugins]\n{plugin} = {module}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty folder to install into; what is imported from it is forgotten afterwards."""
    made = Site(tmp_path / "site")
    monkeypatch.syspath_prepend(str(made.path))
    before = set(sys.modules)
    yield made
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(made.path)):
            del sys.modules[name]
