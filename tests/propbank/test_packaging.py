"""The content of a wheel of spen-propbank."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_wheel_holds_the_lexicon_with_its_licence_and_the_config(tmp_path: Path) -> None:
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    shutil.copytree(ROOT / "plugins/spen-propbank", source, ignore=ignored)
    build = "from setuptools import build_meta as b; b.build_wheel('out')"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)
    [wheel] = (source / "out").glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = {name.removeprefix("spen_propbank/") for name in file.namelist()}
    assert {"frames/LICENSE", "frames/SOURCE.txt", "frames/rolesets.tsv.xz", "configs/senses.jsonnet"} <= names
