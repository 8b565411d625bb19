"""Short commands that are killed, or that find their own files damaged, each in a folder of its own."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import encoders
import inputs
from tries import command
from warm import Warm, spen, spen_run

FILES = (
    "weights.safetensors",
    "metrics.json",
    "history.jsonl",
    "vocabulary.json",
    "examples.safetensors",
    "shard-*.parquet",
)
QUIET = ("--quiet", "--device", "cpu")
RESUMED = ["--resume", "run", *QUIET]
USERS = {"typing.py": "raise SystemExit('a file of the user was run')\n", "notes.partial": "the user's\n"}
"""The user's files in the working folder, which no command may change, remove or run."""


def _prepare_nothing(folder: Path) -> None:
    """Prepares no input."""


@dataclass(frozen=True)
class Command:
    """A command that works in its working folder.

    Attributes:
        main: the command's function.
        words: its arguments.
        resumed: arguments that resume it, where repeating the command is rejected with a message that names them.
        prepare: writes the input into the folder.
        same: pattern of the folders whose `FILES` must not depend on interruptions.
        check: returns the fault in a finished command's files, or None.
        kept: pattern of the files to damage.
        undone: patterns of the files that are removed as well, so that work is left to do.
        more: arguments of the command that meets the damage.
    """

    main: Callable[[], None]
    words: Sequence[str]
    resumed: Sequence[str] = ()
    prepare: Callable[[Path], None] = _prepare_nothing
    same: str = "run"
    check: Callable[[Path], str | None] = lambda folder: None
    kept: str = ""
    undone: Sequence[str] = ()
    more: Sequence[str] = ()

    def run(self, words: Sequence[str]) -> None:
        command(self.main, *words)


def make(warm: Warm, folder: Path) -> dict[str, Command]:
    """Makes the commands; returns them by name."""
    encoder = encoders.make(folder / "shared")
    commands = {name: _make_run(warm, name) for name in ("labels", "names")}
    commands["seeds"] = _make_many(warm, "seeds=0,1", "seeds=0..2", "--jobs", "2")
    commands["methods"] = _make_many(warm, "methods=cross_entropy,nce", "methods=cross_entropy,nce,margin")
    commands["together"] = _make_together(warm, encoder)
    commands["sweep"] = _make_sweep(warm)
    commands["decode"] = Command(spen, ["decode", str(warm.runs["labels"]), "run"])
    commands["annotate"] = _make_annotate(warm)
    commands["indexed"] = _make_indexed(warm, 0)
    commands["indexed_other"] = _make_indexed(warm, 10)
    return commands


def _make_run(warm: Warm, name: str) -> Command:
    """A run of several stages with a checkpoint after each epoch."""
    words = [*warm.words(name), "--checkpoint-every", "0"]
    words = ["trainer.epochs=3" if word.startswith("trainer.epochs=") else word for word in words]
    return Command(spen_run, words, RESUMED)


def _make_many(warm: Warm, argument: str, longer_argument: str, *options: str) -> Command:
    """A run of several seeds or methods."""
    words = [*warm.words("labels"), *options]
    return Command(spen_run, [*words, argument], same="run/**", kept="run/**/*.json*", more=[*words, longer_argument])


def _make_together(warm: Warm, encoder: Path) -> Command:
    words = ["together", "run", "tags=tags", "names=names", *QUIET, "--checkpoint-every", "0"]
    words += ["all.method=cross_entropy", f"all.encoder={encoder}", "all.trainer.epochs=2"]
    for part, name in (("tags", "tags"), ("names", "names")):
        words += [f"{part}.{word}" for word in warm.arguments[name] if not word.startswith("trainer.")]
    resumed = ["together", "run", "--resume", *QUIET]
    undone = ("run/names/metrics.json", "run/tags/metrics.json")
    return Command(spen, words, resumed, same="run/*", kept="run/**/*", undone=undone, more=resumed)


def _make_sweep(warm: Warm) -> Command:
    def prepare(folder: Path) -> None:
        space = {"trainer.net.lr": {"low": 1e-3, "high": 1e-1, "log": True}, "trainer.batch_size": [4, 8]}
        (folder / "space.yaml").write_text(json.dumps(space), encoding="utf-8")

    def check(folder: Path) -> str | None:
        with (folder / "run" / "trials.csv").open(encoding="utf-8", newline="") as file:
            states = [row["state"] for row in csv.DictReader(file)]
        if states.count("complete") + states.count("pruned") < 2:
            return f"two trials were wanted; their states are {states}"
        json.loads((folder / "run" / "best.json").read_text(encoding="utf-8"))
        return None

    words = ["sweep", "labels", "space.yaml", *warm.arguments["labels"], "--out", "run"]
    words += ["--device", "cpu", "--trials"]
    damage = {"kept": "run/**/*", "more": [*words, "3"]}
    return Command(spen, [*words, "2"], prepare=prepare, same="", check=check, **damage)


def _make_annotate(warm: Warm) -> Command:
    """Annotation in several shards, into a folder inside the input's."""

    def prepare(folder: Path) -> None:
        (folder / "run").mkdir()
        for seed in range(3):
            path = folder / "run" / f"{seed}.txt"
            path.write_text("".join(json.loads(line)["text"] + "\n" for line in inputs.texts(seed, 40).splitlines()))

    words = ["annotate", str(warm.runs["tags"]), "run", "--out", "run/out", "--shard-size", "0.001"]
    damage = {"kept": "run/out/*", "undone": ("run/out/shard-000000.parquet",), "more": words}
    return Command(spen, words, prepare=prepare, same="run/out", **damage)


def _make_indexed(warm: Warm, seed: int) -> Command:
    """A run whose training examples stay on disk, with an index beside them."""

    def prepare(folder: Path) -> None:
        import pyarrow
        from pyarrow import parquet

        words, tags = inputs.lists(inputs.tagged(seed, 24, False))
        parquet.write_table(pyarrow.table({"tokens": words, "tags": tags}), folder / "train.parquet")

    words = ["data=train.parquet" if word.startswith("data=") else word for word in warm.words("tags")]
    words.append("task.on_disk=true")
    return Command(spen_run, words, RESUMED, prepare, kept=".spen_index/**/*", undone=("run",), more=words)
