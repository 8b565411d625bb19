"""Damaged run folders, in every command that reads one."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import inputs
from tries import Ended, Try, command, lines_of_json
from warm import Warm, spen, spen_run

TOTAL = 500

DEEP = b"[" * 200_000 + b"]" * 200_000


def make_try(warm: Warm, name: str, draw: random.Random) -> Try:
    """A command that reads a damaged run folder."""
    config = draw.choice(sorted(warm.runs))
    source = warm.runs[config]
    path = draw.choice(sorted(p.relative_to(source) for p in source.rglob("*") if p.is_file()))
    damage = draw.choice(DAMAGES)
    damage_seed = draw.random()
    test_file = next(word for word in warm.arguments[config] if word.startswith("test=")).partition("=")[2]
    main, *words = draw.choice(
        (
            (spen, "predict", "run", test_file),
            (spen, "predict", "run", test_file),
            (spen, "score", "run", test_file),
            (spen, "calibrate", "run"),
            (spen, "compare", "run", f"other={source}"),
            (spen, "report", "run", "--out", "report.html"),
            (spen, "plot", "training", "run", "--out", "plot"),
            (spen_run, "--resume", "run", "--quiet", "--device", "cpu"),
        )
    )

    def act(folder: Path) -> None:
        shutil.copytree(source, folder / "run")
        damage(folder / "run" / path, random.Random(damage_seed))
        command(main, *words)

    def check(folder: Path, end: Ended) -> str | None:
        return lines_of_json(end.said) if end.status == 0 and words[0] in ("predict", "score") else None

    return Try(f"{name}-{damage.__name__.strip('_')}-{words[0].strip('-')}-{path.name}", act, check)


def _gone(path: Path, draw: random.Random) -> None:
    path.unlink()


def _bytes(path: Path, draw: random.Random) -> None:
    path.write_bytes(inputs.damaged(path.read_bytes(), draw))


def _value(path: Path, draw: random.Random) -> None:
    """Changes some numbers of tensors, or some bytes of any other file."""
    (_bits if path.suffix == ".safetensors" else _bytes)(path, draw)


def _folder(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _loop(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _fifo(path: Path, draw: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _deep(path: Path, draw: random.Random) -> None:
    path.write_bytes(DEEP)


def _empty(path: Path, draw: random.Random) -> None:
    path.write_bytes(b"")


def _bits(path: Path, draw: random.Random) -> None:
    """Writes NaN among the numbers, or another length of the header."""
    data = bytearray(path.read_bytes())
    if draw.random() < 0.3:
        data[:8] = draw.choice((0, 7, 1 << 20, 1 << 40, (1 << 64) - 1)).to_bytes(8, "little")
    elif len(data) > 8:
        index = draw.randrange(len(data) - 4)
        data[index : index + 4] = b"\x00\x00\xc0\x7f"
    path.write_bytes(bytes(data))


DAMAGES = (_gone, _bytes, _bytes, _value, _value, _folder, _loop, _fifo, _deep, _empty, _bits)
