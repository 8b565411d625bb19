"""`spen annotate` over corpora at hand: engines side by side, equal rows, killed processes, memory.

    SPEN_DATA=... python -m tools.bench.bench_annotate --words 1000000 --exclude spen_srl --json annotate.json

The texts are those of the English Web Treebank, BTC and GoEmotions, one document per line. They are repeated until
there are --words words (separated by blanks). The pipeline is spen_en without --exclude.
Contestants take turns, --rounds times:

  local     spen annotate, one process
  local x2  spen annotate --processes 2
  ray x2    spen annotate --engine ray --processes 2
  pipe x2   spaCy's own nlp.pipe(n_process=2) over the same texts; its docs are counted and not written

Then, on the first --killed words: `local x2` and `ray x2`, one of whose annotating processes is killed (SIGKILL) when a
third of the shards are there, and `local`, which is killed altogether and repeated.

Printed: each one's words (tokens) per second from start to end; `steady`, the rate from the end of the first shard to
that of the last, so without loading and Ray's start; the ratio of `steady` to local's in the same round; CPU seconds of
all processes together (which do not depend on other work of the machine); whether all rows are those of local, and the
largest difference of a probability; resident memory of local, in MB, at each inner tenth of its time.
--json also has the seconds of each shard of local, which tools/bench/simulate_scale.py reads.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import psutil
import pyarrow.parquet as pq

import spen_plugins as sp

KILLED_AT = 1 / 3
ENGINES = {
    "local": [],
    "local x2": ["--processes", "2"],
    "ray x2": ["--engine", "ray", "--processes", "2"],
}
PIPE = """
import sys, time, spacy
texts = (line.strip() for line in open(sys.argv[2], encoding="utf-8"))
for number, doc in enumerate(spacy.load(sys.argv[1]).pipe(texts, n_process=2, batch_size=512)):
    if not number:
        open(sys.argv[3], "w").write(str(time.time()))
"""


class Ran(NamedTuple):
    """A finished command: its seconds, CPU seconds, and resident memory in MB at each inner tenth of its time."""

    seconds: float
    cpu: float
    memory: list[float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=1, help="how often contestants take turns; medians are printed")
    parser.add_argument("--killed", type=int, default=100_000, help="words of the runs with a killed process; 0: none")
    parser.add_argument("--exclude", nargs="*", default=[], help="components of spen_en to leave out")
    parser.add_argument("--json", type=Path, help="write all figures here, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), options)
    for name, value in figures.items():
        if name != "shards":
            print(f"{name}: {json.dumps(value)}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All figures, by contestant."""
    import spacy

    spacy.load("spen_en", exclude=options.exclude).to_disk(folder / "pipeline")
    texts, excerpt = folder / "texts.txt", folder / "few.txt"
    for path, words in ((texts, options.words), (excerpt, options.killed)):
        path.write_text("".join(f"{text}\n" for text in until(words)), encoding="utf-8")
    figures: dict[str, Any] = {}
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in (*ENGINES, "pipe x2")}
    for number in range(options.rounds):
        for name, flags in ENGINES.items():
            out = folder / f"{name} {number}"
            result = run(command(folder, texts, out.name, flags))
            words = figures.setdefault("words", total_words(out))
            rates[name].append((words / result.seconds, steady(out), result.cpu))
            if name == "local":
                figures |= {"memory": result.memory, "shards": shard_seconds(out)}
            figures[name] = difference(folder / "local 0", out)
            print(number, name, rates[name][-1], figures[name], flush=True)
        started = time.time()
        result = run([sys.executable, "-c", PIPE, str(folder / "pipeline"), str(texts), str(folder / "first")])
        first = float((folder / "first").read_text())
        rates["pipe x2"].append((words / result.seconds, words / (started + result.seconds - first), result.cpu))
    for name, rows in rates.items():
        overall_rate, steady_rate, cpu = (median(column) for column in zip(*rows, strict=True))
        ratios = [row[1] / local[1] for row, local in zip(rows, rates["local"], strict=True)]
        medians = {"words_per_second": overall_rate, "steady": steady_rate, "ratio": median(ratios), "cpu": cpu}
        figures.setdefault(name, {}).update(medians)
    if options.killed:
        run(command(folder, excerpt, "whole", []))
    for name, flags in ENGINES.items() if options.killed else ():
        out = f"killed {name}"
        run(command(folder, excerpt, out, flags), whole if name == "local" else a_worker, folder / out)
        if name == "local":
            run(command(folder, excerpt, out, flags))
        figures[out] = difference(folder / "whole", folder / out)
    return figures


def until(words: int) -> Iterator[str]:
    """Texts of the corpora, repeated until there are `words` words."""
    for text in cycle(list(corpora())):
        if words <= 0:
            return
        yield text
        words -= len(text.split())


def corpora() -> Iterator[str]:
    for line in sp.locate("data:pos/ewt/en_ewt-ud-train.conllu").open(encoding="utf-8"):
        if line.startswith("# text = "):
            yield line.removeprefix("# text = ").strip()
    for block in sp.locate("data:ner/btc/btc.train").read_text(encoding="utf-8").split("\n\n"):
        if block.strip():
            yield " ".join(line.split()[0] for line in block.splitlines() if line.split())
    for line in sp.locate("data:text/goemotions/train.tsv").open(encoding="utf-8"):
        yield line.partition("\t")[0].strip()


def command(folder: Path, texts: Path, out: str, options: Sequence[str]) -> list[str]:
    spen = [sys.executable, "-c", "from spen_plugins.cli.main import main; main()", "annotate"]
    return [*spen, str(folder / "pipeline"), str(texts), "--out", str(folder / out), *options]


def run(
    words: Sequence[str], kill: Callable[[psutil.Process], psutil.Process | None] | None = None, out: Path | None = None
) -> Ran:
    """Run a command to its end.

    Args:
        words: the command.
        kill: returns the process to kill, given the command's, when a third of the shards are there.
        out: the folder of the shards.
    """
    started, memory, cpu = time.time(), [], {}
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    started_process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
    process = psutil.Process(started_process.pid)
    while started_process.poll() is None:
        try:
            memory.append(process.memory_info().rss / 1e6)
            for member in (process, *process.children(recursive=True)):
                cpu[member.pid] = sum(member.cpu_times()[:2])
            if kill is not None and out is not None and (out / "_plan.json").exists():
                shards = len(json.loads((out / "_plan.json").read_text())["shards"])
                if len(list(out.glob("*.parquet"))) >= KILLED_AT * shards and (victim := kill(process)) is not None:
                    victim.kill()
                    print("killed", victim.pid, "after", len(list(out.glob("*.parquet"))), "of", shards, flush=True)
                    kill = None
        except psutil.NoSuchProcess:
            pass
        time.sleep(0.2)
    tenths = [memory[int((len(memory) - 1) * tenth / 10)] for tenth in range(1, 10)]  # not its first and last moments
    return Ran(time.time() - started, sum(cpu.values()), tenths)


def whole(process: psutil.Process) -> psutil.Process:
    return process


def a_worker(process: psutil.Process) -> psutil.Process | None:
    """One of the processes that annotate."""
    for child in process.children(recursive=True):
        line = " ".join(child.cmdline())
        if "ray::MapWorker" in line or "spawn_main" in line:
            return child
    return None


def total_words(out: Path) -> int:
    return sum(map(total_words_of, out.glob("*.parquet")))


def total_words_of(path: Path) -> int:
    return sum(map(len, pq.read_table(path, columns=["tokens"])["tokens"].to_pylist()))


def steady(out: Path) -> float:
    """Words per second from the end of the first shard to that of the last, so without loading and Ray's start."""
    times = sorted((path.stat().st_mtime, path) for path in out.glob("*.parquet"))
    words = sum(total_words_of(path) for _, path in times[1:])
    return words / (times[-1][0] - times[0][0])


def shard_seconds(out: Path) -> list[float]:
    """Seconds of each shard but the first, with one process: the time between the ends of successive shards."""
    times = [path.stat().st_mtime for path in sorted(out.glob("*.parquet"))]
    return [later - earlier for earlier, later in pairwise(times)]


def difference(reference: Path, out: Path) -> dict[str, Any]:
    """Returns whether rows, labels and order are the same, the largest difference of a probability, and the number of
    shards with other bytes."""
    names = sorted(path.name for path in reference.glob("*.parquet"))
    is_same, largest, unequal = names == sorted(path.name for path in out.glob("*.parquet")), 0.0, 0
    for name in names if is_same else ():
        if (reference / name).read_bytes() == (out / name).read_bytes():
            continue
        unequal += 1
        for row, twin in zip(*(pq.read_table(folder / name).to_pylist() for folder in (reference, out)), strict=True):
            (rest, numbers), (rest_of_twin, numbers_of_twin) = parts(row), parts(twin)
            is_same = is_same and rest == rest_of_twin
            pairs = zip(numbers, numbers_of_twin, strict=True)
            largest = max([largest, *(abs(a - b) for a, b in pairs if not (math.isnan(a) and math.isnan(b)))])
    return {"same_rows": is_same, "largest_difference": largest, "shards": len(names), "other_bytes": unequal}


def parts(value: Any) -> tuple[Any, list[float]]:
    """Splits a value into itself without its floats, and the floats."""
    if isinstance(value, float):
        return None, [value]
    if isinstance(value, dict):
        rest, numbers = parts(list(value.values()))
        return (list(value), rest), numbers
    if isinstance(value, list):
        pairs = [parts(item) for item in value]
        return [rest for rest, _ in pairs], [number for _, floats in pairs for number in floats]
    return value, []


if __name__ == "__main__":
    main()
