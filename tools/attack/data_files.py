"""Damaged data files, to train on, to predict and to split."""

from __future__ import annotations

import random
from pathlib import Path

import inputs
from tries import Ended, Try, command, lines_of_json, scores_of
from warm import Warm, spen, spen_run

TOTAL = 4_000


def make_try(warm: Warm, name: str, draw: random.Random) -> Try:
    """A command that reads a damaged file."""
    config = draw.choice(sorted(warm.arguments))
    return draw.choice((_train, _train, _predict, _split))(name, draw, warm, config)


def _train(name: str, draw: random.Random, warm: Warm, config: str) -> Try:
    """Trains with one of the three files damaged."""
    words = warm.words(config)
    index = draw.choice([i for i, word in enumerate(words) if word.startswith(("data=", "validation=", "test="))])
    part, _, path = words[index].partition("=")
    data = inputs.damaged(Path(path).read_bytes(), draw)

    def act(folder: Path) -> None:
        copy = folder / Path(path).name
        copy.write_bytes(data)
        command(spen_run, *words[:index], f"{part}={copy}", *words[index + 1 :])

    def check(folder: Path, end: Ended) -> str | None:
        return scores_of(folder / "run") if end.status == 0 else None

    return Try(name, act, check)


def _damage_file(warm: Warm, config: str, draw: random.Random) -> tuple[str, bytes]:
    path = Path(next(word for word in warm.arguments[config] if word.startswith("test=")).partition("=")[2])
    return path.name, inputs.damaged(path.read_bytes(), draw)


def _predict(name: str, draw: random.Random, warm: Warm, config: str) -> Try:
    file, data = _damage_file(warm, config, draw)

    def act(folder: Path) -> None:
        (folder / file).write_bytes(data)
        command(spen, "predict", str(warm.runs[config]), file)

    return Try(name, act, lambda folder, end: None if end.status else lines_of_json(end.said))


def _split(name: str, draw: random.Random, warm: Warm, config: str) -> Try:
    file, data = _damage_file(warm, config, draw)

    def act(folder: Path) -> None:
        (folder / file).write_bytes(data)
        command(spen, "data", "split", file, "--out", "split.json")

    def check(folder: Path, end: Ended) -> str | None:
        return None if end.status or (folder / "split.json").is_file() else "exit status 0 without a split"

    return Try(name, act, check)
