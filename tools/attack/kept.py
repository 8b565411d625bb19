"""Damage to the files that a command resumes from: plans, studies, shards and indexes. The command is then repeated."""

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
    """A command that resumes from a damaged file."""
    command_name = draw.choice([name for name in runs.names if runs.commands[name].kept])
    command, reference = runs.commands[command_name], runs.reference(command_name)
    path = draw.choice(sorted(p.relative_to(reference) for p in reference.glob(command.kept) if p.is_file()))
    damage, random_number = draw.choice(run_folders.DAMAGES), draw.random()
    is_foreign = command_name == "indexed" and draw.random() < 0.3

    def act(folder: Path) -> None:
        shutil.copytree(reference, folder, dirs_exist_ok=True)
        for pattern in command.undone:
            for target in folder.glob(pattern):
                shutil.rmtree(target) if target.is_dir() else target.unlink()
        (folder / "run" / "notes.txt").write_text("the user's", encoding="utf-8") if not command.same else None
        if is_foreign:
            _exchange(folder, runs.reference("indexed_other"), random_number < 0.5)
        elif (folder / path).exists():
            damage(folder / path, random.Random(random_number))
        command.run(command.more)

    def check(folder: Path, end: Ended) -> str | None:
        if not command.same and not (folder / "run" / "notes.txt").is_file():
            return "a file of the user's is gone"
        if end.status:
            return None
        return runs.same(command_name, folder, end, {}) if command_name == "indexed" else command.check(folder)

    return Try(
        f"{name}-{command_name}-{'foreign' if is_foreign else damage.__name__.strip('_')}-{path.name}"[:120], act, check
    )


def _exchange(folder: Path, other: Path, is_relabelled: bool) -> None:
    """Replaces the index by that of other data; relabelled, it claims to be of these."""
    [index_file] = (folder / ".spen_index").glob("*/index.json")
    index = json.loads(index_file.read_text(encoding="utf-8"))
    shutil.rmtree(folder / ".spen_index")
    shutil.copytree(other / ".spen_index", folder / ".spen_index")
    if is_relabelled:
        index_file.write_text(json.dumps(json.loads(index_file.read_text(encoding="utf-8")) | {"data": index["data"]}))
