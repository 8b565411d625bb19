"""What tries share: commands imported once, inputs, and finished runs to damage."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import inputs
import torch
import torch._dynamo
from tries import Ended, Try, command, run

import spen_en  # noqa: F401 - imported before tries are forked, as all below
import spen_plugins.research.seeds
import spen_plugins.runs.runner  # noqa: F401
from spen_plugins.cli.main import main as spen
from spen_plugins.cli.run import main as spen_run

__all__ = ["CONFIGS", "Warm", "spen", "spen_run", "warm"]

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


@dataclass(frozen=True)
class Warm:
    """What tries share.

    Attributes:
        arguments: of a short run of each config.
        runs: a finished run of each config.
    """

    arguments: dict[str, list[str]]
    runs: dict[str, Path]

    def words(self, name: str, out: str = "run") -> list[str]:
        """A short run of a config."""
        return [str(CONFIGS / f"{name}.jsonnet"), *self.arguments[name], "--out", out, "--quiet", "--device", "cpu"]


def warm(folder: Path) -> Warm:
    """Inputs and finished runs below `folder`; what the runs imported is imported here, once for all tries."""
    torch.set_num_threads(1)
    found = Warm(inputs.files(folder / "inputs"), {})
    (folder / "imported").mkdir()

    def train(name: str) -> Try:
        def act(own: Path) -> None:
            try:
                command(spen_run, *found.words(name, str(folder / "runs" / name)))
            finally:
                (folder / "imported" / name).write_text("\n".join(sorted(sys.modules)), encoding="utf-8")

        return Try(name, act, status=(0,))

    def told(made: Try, wrong: str | None) -> None:
        if wrong:
            raise SystemExit(f"the run of {made.name} that tries begin from: {wrong}; see {folder / 'first'}")
        found.runs[made.name] = folder / "runs" / made.name

    run([train(name) for name in found.arguments], folder / "first", 2, told, limit=600)
    imported = {line for file in (folder / "imported").iterdir() for line in file.read_text("utf-8").splitlines()}
    for name in sorted(imported - sys.modules.keys()):
        with suppress(ImportError):
            import_module(name)
    return found


def refused(ended: Ended) -> bool:
    """Whether the command said that its input is wrong."""
    return ended.status in (1, 2)
