"""Damage to what a command keeps to go on from: plans, studies, shards and indexes; the command is given once more."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import run_folders
from interrupted import Interrupted
from tries import Ended, Try

TOTAL = 700


def make_try(runs: Interrupted, name: str, draw: random.Random) -> Try:
    """A command that goes on from a damaged file."""
    of = draw.choice([name for name in runs.names if runs.commands[name].kept])
    given, whole = runs.commands[of], runs.reference(of)
    path = draw.choice(sorted(p.relative_to(whole) for p in whole.glob(given.kept) if p.is_file()))
    damage, at = draw.choice(run_folders.DAMAGES), draw.random()
    foreign = of == "indexed" and draw.random() < 0.3

    def act(folder: Path) -> None:
        shutil.copytree(whole, folder, dirs_exist_ok=True)
        for pattern in given.undone:
            for gone in folder.glob(pattern):
                shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
        (folder / "run" / "notes.txt").write_text("the user's", encoding="utf-8") if not given.same else None
        if foreign:
            _exchange(folder, runs.reference("indexed_other"), at < 0.5)
        elif (folder / path).exists():
            damage(folder / path, random.Random(at))
        given.run(given.more)

    def check(folder: Path, ended: Ended) -> str | None:
        if not given.same and not (folder / "run" / "notes.txt").is_file():
            return "a file of the user's is gone"
        if ended.status:
            return None
        return runs.same(of, folder, ended, {}) if of == "indexed" else given.check(folder)

    return Try(f"{name}-{of}-{'foreign' if foreign else damage.__name__.strip('_')}-{path.name}"[:120], act, check)


def _exchange(folder: Path, other: Path, relabelled: bool) -> None:
    """The index is that of other data; relabelled, it says that it is of these."""
    [own] = (folder / ".spen_index").glob("*/index.json")
    before = json.loads(own.read_text(encoding="utf-8"))
    shutil.rmtree(folder / ".spen_index")
    shutil.copytree(other / ".spen_index", folder / ".spen_index")
    if relabelled:
        own.write_text(json.dumps(json.loads(own.read_text(encoding="utf-8")) | {"data": before["data"]}))
