"""Commands that are killed, or find what they left behind damaged: short ones, each in a folder of its own."""

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
"""Files of the user's in the working folder, which no command may change, remove or run."""


def _nothing(folder: Path) -> None:
    """No input of its own."""


@dataclass(frozen=True)
class Command:
    """A command that works in its working folder.

    Attributes:
        main: the command's function.
        words: its words.
        resumed: other words that go on where the same command is rejected and names them.
        prepare: writes the input into the folder.
        same: pattern of the folders whose `FILES` are equal however often it was interrupted.
        check: what is wrong with the files of one that is done, or None.
        kept: pattern of the files to damage.
        undone: patterns of what is removed beside the damage, so that something is left to do.
        more: words of the command that finds the damage.
    """

    main: Callable[[], None]
    words: Sequence[str]
    resumed: Sequence[str] = ()
    prepare: Callable[[Path], None] = _nothing
    same: str = "run"
    check: Callable[[Path], str | None] = lambda folder: None
    kept: str = ""
    undone: Sequence[str] = ()
    more: Sequence[str] = ()

    def run(self, words: Sequence[str]) -> None:
        command(self.main, *words)


def make(warm: Warm, folder: Path) -> dict[str, Command]:
    """The commands by name."""
    encoder = encoders.make(folder / "shared")
    found = {name: _run(warm, name) for name in ("labels", "names")}
    found["seeds"] = _many(warm, "seeds=0,1", "seeds=0..2", "--jobs", "2")
    found["methods"] = _many(warm, "methods=cross_entropy,nce", "methods=cross_entropy,nce,margin")
    found["together"] = _together(warm, encoder)
    found["sweep"] = _sweep(warm)
    found["decode"] = Command(spen, ["decode", str(warm.runs["labels"]), "run"])
    found["annotate"] = _annotate(warm)
    found["indexed"] = _indexed(warm, 0)
    found["indexed_other"] = _indexed(warm, 10)
    return found


def _run(warm: Warm, name: str) -> Command:
    """A run of several stages with a checkpoint after each epoch."""
    words = [*warm.words(name), "--checkpoint-every", "0"]
    words = ["trainer.epochs=3" if word.startswith("trainer.epochs=") else word for word in words]
    return Command(spen_run, words, RESUMED)


def _many(warm: Warm, several: str, more: str, *jobs: str) -> Command:
    """Several seeds or methods."""
    words = [*warm.words("labels"), *jobs]
    return Command(spen_run, [*words, several], same="run/**", kept="run/**/*.json*", more=[*words, more])


def _together(warm: Warm, encoder: Path) -> Command:
    words = ["together", "run", "tags=tags", "names=names", *QUIET, "--checkpoint-every", "0"]
    words += ["all.method=cross_entropy", f"all.encoder={encoder}", "all.trainer.epochs=2"]
    for part, name in (("tags", "tags"), ("names", "names")):
        words += [f"{part}.{word}" for word in warm.arguments[name] if not word.startswith("trainer.")]
    resumed = ["together", "run", "--resume", *QUIET]
    undone = ("run/names/metrics.json", "run/tags/metrics.json")
    return Command(spen, words, resumed, same="run/*", kept="run/**/*", undone=undone, more=resumed)


def _sweep(warm: Warm) -> Command:
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
    damaged = {"kept": "run/**/*", "more": [*words, "3"]}
    return Command(spen, [*words, "2"], prepare=prepare, same="", check=check, **damaged)


def _annotate(warm: Warm) -> Command:
    """Into a folder inside that of the input, whose files are in several shards."""

    def prepare(folder: Path) -> None:
        (folder / "run").mkdir()
        for seed in range(3):
            path = folder / "run" / f"{seed}.txt"
            path.write_text("".join(json.loads(line)["text"] + "\n" for line in inputs.texts(seed, 40).splitlines()))

    words = ["annotate", str(warm.runs["tags"]), "run", "--out", "run/out", "--shard-size", "0.001"]
    kept = {"kept": "run/out/*", "undone": ("run/out/shard-000000.parquet",), "more": words}
    return Command(spen, words, prepare=prepare, same="run/out", **kept)


def _indexed(warm: Warm, seed: int) -> Command:
    """A run whose training examples stay on disk, with an index beside them."""

    def prepare(folder: Path) -> None:
        import pyarrow
        from pyarrow import parquet

        words, tags = inputs.lists(inputs.tagged(seed, 24, False))
        parquet.write_table(pyarrow.table({"tokens": words, "tags": tags}), folder / "train.parquet")

    words = ["data=train.parquet" if word.startswith("data=") else word for word in warm.words("tags")]
    words.append("task.on_disk=true")
    return Command(spen_run, words, RESUMED, prepare, kept=".spen_index/**/*", undone=("run",), more=words)
