"""Build the wheels of the core and of all plugins, and print a table of their sizes and licences.

    python tools/wheels.py dist
    python tools/wheels.py dist --sdist     # source distributions, too

Needs no network: the setuptools of this environment builds copies of the folders. A copy's README has no relative links
and images, which lead nowhere on a package index: links become their text, images are left out.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from email import message_from_bytes
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = [ROOT, *sorted(path.parent for path in (ROOT / "plugins").glob("spen-*/setup.cfg"))]
"""The folder of each distribution, the core's first."""
FILES = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "licences")
BUILD = """
import sys
from setuptools import build_meta
out, *hooks = sys.argv[1:]  # setuptools changes it
print(*(getattr(build_meta, hook)(out) for hook in hooks))
"""
"""Prints the names of the built files on its last line."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, help="folder for the wheels")
    parser.add_argument("--sdist", action="store_true", help="build source distributions, too")
    options = parser.parse_args()
    wheels = build(options.out, sdist=options.sdist)
    print("| wheel | kB | licence | texts of licences |\n|---|---:|---|---|")
    for wheel in wheels:
        headers = metadata(wheel)
        texts = ", ".join(f"`{name}`" for name in headers.get_all("License-File", []))
        print(f"| `{headers['Name']}` | {wheel.stat().st_size / 1000:.0f} | {headers['License']} | {texts} |")


def build(out: Path, folders: Iterable[Path] = FOLDERS, *, sdist: bool = False) -> list[Path]:
    """Build the wheels of these folders in `out`; returns their paths, in the same order."""
    hooks = ["build_wheel", *(["build_sdist"] if sdist else [])]
    wheels = []
    for folder in folders:
        with tempfile.TemporaryDirectory() as temporary:
            copy = Path(temporary) / "source"
            copy_distribution(folder, copy)
            command = [sys.executable, "-c", BUILD, str(out.resolve()), *hooks]
            process = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
        if process.returncode:
            sys.exit(f"{folder}: {process.stderr}")
        wheels.append(out / process.stdout.splitlines()[-1].split()[0])
    return wheels


def copy_distribution(folder: Path, copy: Path) -> None:
    """Copy the sources of a distribution; symbolic links become files."""
    copy.mkdir()
    for name in FILES:
        if (folder / name).is_dir():
            shutil.copytree(folder / name, copy / name)
        elif (folder / name).exists():
            shutil.copy(folder / name, copy / name)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(folder / package(folder), copy / package(folder), ignore=ignored)
    readme = copy / "README.md"
    readme.write_text(without_relative_links(readme.read_text(encoding="utf-8")), encoding="utf-8")


def package(folder: Path) -> str:
    """The name of the package in a distribution's folder."""
    return "spen_plugins" if folder == ROOT else folder.name.replace("-", "_")


def without_relative_links(text: str) -> str:
    text = re.sub(r"!\[[^]]*\]\((?!https?:)[^)]*\)\n*", "", text)
    return re.sub(r"\[([^]]+)\]\((?!https?:)[^)]*\)", r"\1", text)


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


if __name__ == "__main__":
    main()
