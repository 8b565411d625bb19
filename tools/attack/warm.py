"""What tries share: commands imported once, inputs, and finished runs to damage."""

from __future__ import annotations

import os
from dataclasses import dataclass
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


def warm(folder: Path, runs: bool = True) -> Warm:
    """Inputs and, if `runs`, finished runs below `folder`."""
    torch.set_num_threads(1)
    found = Warm(inputs.files(folder / "inputs"), {})

    def train(name: str) -> Try:
        return Try(name, lambda own: command(spen_run, *found.words(name, str(folder / "runs" / name))), status=(0,))

    def told(made: Try, wrong: str | None) -> None:
        if wrong:
            raise SystemExit(f"the run of {made.name} that tries begin from: {wrong}; see {folder / 'first'}")
        found.runs[made.name] = folder / "runs" / made.name

    if runs:
        run([train(name) for name in found.arguments], folder / "first", 2, told, limit=600)
    return found


def refused(ended: Ended) -> bool:
    """Whether the command said that its input is wrong."""
    return ended.status in (1, 2)
