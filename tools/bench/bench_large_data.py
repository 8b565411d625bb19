r"""Training on more sentences than fit into memory: time, memory and exact resume, on made-up data.

    python -m tools.bench.bench_large_data --sentences 50000 --updates 200
    python -m tools.bench.bench_large_data --sentences 5000000 --updates 2000 --task text

Steps, each in a process of its own, with its peak of resident memory: sentences are made, as Parquet shards; indexed;
trained on without a stop; trained on again, killed (SIGKILL) in the middle of an epoch, and resumed. The weights must
be the same. At last the time of an update is compared with that on examples in memory, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
SHARD = 250_000
WORDS, TAGS, TOPICS = 50_000, 12, 20
HELD_OUT = 2_000
EPOCHS = 4
IN_MEMORY = 20_000
TURNS, AT_ONCE = 11, 20


def spellings() -> Any:
    """`(WORDS,)` different words of syllables, as a `pyarrow.Array`."""
    import pyarrow as pa

    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    names = []
    for number in range(WORDS):
        parts = []
        while number or not parts:
            number, rest = divmod(number, len(syllables))
            parts.append(syllables[rest])
        names.append("".join(parts))
    return pa.array(names)


def sentences(task: str, count: int, seed: int) -> Any:
    """A `pyarrow.Table` of made-up examples, with rules that can be learnt.

    Tags: two thirds of the words have one tag, the others one of two, by the kind of the previous word. Texts: the
    labels are one to three topics, and each word belongs to one of them.
    """
    import pyarrow as pa
    from pyarrow import compute

    rng = np.random.default_rng([seed, task == "text"])
    lengths = rng.integers(5, 25, count)
    offsets = np.append(0, lengths.cumsum()).astype(np.int32)
    rank = np.minimum(rng.zipf(1.2, offsets[-1]) - 1, WORDS // TOPICS - 1)
    names = spellings()
    if task == "text":
        sizes, topics = rng.integers(1, 4, count), rng.integers(0, TOPICS, (count, 3))
        sentence = np.repeat(np.arange(count), lengths)
        topic = topics[sentence, rng.integers(0, sizes[sentence])]
        tokens = pa.ListArray.from_arrays(offsets, names.take(pa.array(rank * TOPICS + topic)))
        labels = pa.ListArray.from_arrays(
            np.append(0, sizes.cumsum()).astype(np.int32),
            pa.array([f"topic{i}" for i in range(TOPICS)]).take(pa.array(topics[np.arange(3) < sizes[:, None]])),
        )
        return pa.table({"text": compute.binary_join(tokens, " "), "labels": labels})
    word = rank * TOPICS + rng.integers(0, TOPICS, len(rank))
    kind = np.append(0, word[:-1]) % 2
    kind[offsets[:-1]] = 0
    tag = np.where(word % 3 > 0, word % TAGS, (word // 3 + 5 * kind) % TAGS)
    tags = pa.array([f"T{i}" for i in range(TAGS)]).take(pa.array(tag))
    tokens = pa.ListArray.from_arrays(offsets, names.take(pa.array(word)))
    return pa.table({"tokens": tokens, "tags": pa.ListArray.from_arrays(offsets, tags)})


def make(options: Any) -> None:
    """Write the shards and the validation file."""
    from pyarrow import parquet

    folder = options.folder / "train"
    folder.mkdir()
    for number, start in enumerate(range(0, options.sentences, SHARD)):
        table = sentences(options.task, min(SHARD, options.sentences - start), number)
        parquet.write_table(table, folder / f"{number:04}.parquet")
        if not number:
            parquet.write_table(table.slice(0, IN_MEMORY), options.folder / "few.parquet")
    parquet.write_table(sentences(options.task, HELD_OUT, 1_000_000), options.folder / "validation.parquet")


def words_of(options: Any, train: str = "train", *extra: str) -> list[str]:
    """The config and its arguments, as for `spen-run`."""
    if options.task == "text":
        config, epochs = "texts", ["threshold=0.5", f"trainer.epochs={EPOCHS}"]
    else:
        config, epochs = "tags", ["trainer.pretrain_epochs=1", f"trainer.epochs={EPOCHS - 1}"]
    data = [f"data={options.folder / train}", f"validation={options.folder / 'validation.parquet'}"]
    limits = ["trainer.epoch_updates=1", f"trainer.epoch_updates_at_most={options.updates // EPOCHS}"]
    fixed = ["task.on_disk=true", "trainer.patience=null"]
    return [str(CONFIGS / f"{config}.jsonnet"), *data, *limits, *epochs, *fixed, *extra]


def index(options: Any) -> None:
    """Load the task, as a run does before it trains."""
    task = built(words_of(options)).task
    print(task.notes()[0])


def built(words: Sequence[str]) -> Any:
    """The parts of a run with a config and arguments."""
    from spen_plugins.config.evaluation import evaluate
    from spen_plugins.config.experiment import build, parse_experiment
    from spen_plugins.registry import Registry

    config, *arguments = words
    return build(parse_experiment(evaluate(config, dict(word.split("=", 1) for word in arguments)), config, Registry()))


def race(options: Any) -> None:
    """Print the time of a batch on examples on disk and in memory, in turns; no example is repeated."""
    from accelerate import Accelerator
    from rich.console import Console

    from spen_plugins.loop.loop import Loop
    from spen_plugins.loop.progress import Reporter
    from spen_plugins.loop.recipe import Recipe
    from spen_plugins.runs.folder.folder import RunFolder

    seconds: dict[str, list[float]] = {"on disk": [], "in memory": []}
    loops = {}
    for name in seconds:
        setting = f"task.on_disk={json.dumps(name == 'on disk')}"
        parts = built(words_of(options, "few.parquet", setting, f"trainer.epoch_updates_at_most={TURNS * AT_ONCE}"))
        run = RunFolder.create(options.folder / name.replace(" ", "_"), {})
        stages = parts.trainer.stages(parts.model, parts.task)
        reporter = Reporter(Console(quiet=True), parts.task.selection)
        config, accelerator = parts.trainer.config, Accelerator(cpu=True)
        loops[name] = Loop(Recipe(parts.model, parts.task, stages, config, 0), run, accelerator, reporter)
        loops[name].position.stage = len(stages) - 1
        loops[name].begin(stages[-1])
    for turn in range(TURNS):
        for name, loop in loops.items():
            order = loop.epochs.order(0)[AT_ONCE * turn : AT_ONCE * (turn + 1)]
            started = time.process_time()
            for rows in order:
                loop.run_batch(loop.stages[-1], rows)
            seconds[name].append((time.process_time() - started) / len(order))
    disk_time, memory_time = (1e3 * float(np.median(seconds[name][1:])) for name in seconds)
    summary = f"{disk_time:.1f} ms of CPU on disk, {memory_time:.1f} in memory, ratio {disk_time / memory_time:.2f}"
    print(f"a batch: {summary} (medians of {TURNS - 1} turns of {AT_ONCE})", flush=True)


def measured(title: str, start: Callable[[], subprocess.Popen[bytes]], status: int = 0) -> float:
    """Run a process, print its time and its peak of resident memory, and return its seconds of CPU."""
    start_time = time.perf_counter()
    process = start()
    _, wait_status, usage = os.wait4(process.pid, 0)
    seconds, cpu_seconds = time.perf_counter() - start_time, usage.ru_utime + usage.ru_stime
    if os.waitstatus_to_exitcode(wait_status) != status:
        raise SystemExit(f"{title}: exit status {os.waitstatus_to_exitcode(wait_status)}")
    peak = usage.ru_maxrss / 2**20
    print(f"{title}: {seconds:,.0f} s ({cpu_seconds:,.0f} s of CPU), at most {peak:.2f} GiB resident", flush=True)
    return cpu_seconds


def in_mid_epoch(run: Path) -> bool:
    """True if half of the epochs are over, and the last checkpoint is within one."""
    history = run / "history.jsonl"
    if not history.exists() or len(history.read_text().splitlines()) < EPOCHS // 2:
        return False
    states = sorted((run / "checkpoint").glob("state-*.json"), key=lambda path: int(path.stem[6:]))
    if not states:
        return False
    position = dict(json.loads(states[-1].read_text())["state"]["$table"])["position"]
    return dict(position["$table"])["batch"] > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=50_000)
    parser.add_argument("--updates", type=int, default=200, help="batches trained on, in four epochs")
    parser.add_argument("--task", choices=("tagging", "text"), default="tagging")
    parser.add_argument("--folder", type=Path, help="where all is written (removed at the end if not given)")
    parser.add_argument("--step", choices=("make", "index", "race"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    if options.step:
        {"make": make, "index": index, "race": race}[options.step](options)
        return
    with tempfile.TemporaryDirectory(prefix="large-") as temporary:
        options.folder = options.folder or Path(temporary)
        options.folder.mkdir(parents=True, exist_ok=True)
        everything(options)


def everything(options: Any) -> None:
    """All steps, one after the other."""
    command = [
        sys.executable,
        "-m",
        "tools.bench.bench_large_data",
        "--sentences",
        str(options.sentences),
        "--updates",
        str(options.updates),
    ]
    command += ["--task", options.task, "--folder", str(options.folder)]

    def make_step(name: str) -> Callable[[], subprocess.Popen[bytes]]:
        return lambda: subprocess.Popen([*command, "--step", name])

    def start_training(*words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*TRAIN, *words, "--quiet", "--checkpoint-every", "5"], stdout=subprocess.DEVNULL)

    def start_and_kill() -> subprocess.Popen[bytes]:
        process = start_training(*words_of(options), "--out", str(runs[1]))
        while not in_mid_epoch(runs[1]):
            time.sleep(0.2)
            if process.poll() is not None:
                raise SystemExit("the run ended before it was killed")
        process.send_signal(signal.SIGKILL)
        return process

    runs = [options.folder / name for name in ("whole", "killed")]
    measured(f"{options.sentences:,} sentences made", make_step("make"))
    seconds = measured("indexed", make_step("index"))
    print(f"  {options.sentences / seconds:,.0f} sentences a second of CPU, checksums and imports included")
    measured(f"{options.updates:,} updates", lambda: start_training(*words_of(options), "--out", str(runs[0])))
    measured("the same, killed in mid-epoch", start_and_kill, -signal.SIGKILL)
    measured("  and resumed", lambda: start_training("--resume", str(runs[1])))
    are_same = [all((run / n).read_bytes() == (runs[0] / n).read_bytes() for n in COMPARED) for run in runs]
    scores = json.loads((runs[0] / "metrics.json").read_text())
    print("weights, history and scores are the same, bit for bit" if all(are_same) else "NOT THE SAME")
    constant = scores["protocol"]["constant_predictor"]
    score = constant["score"]
    print(f"validation {score} {scores['validation'][score]:.4f}; constant predictor {constant['validation']:.4f}")
    measured("on disk against in memory", make_step("race"))
    for run in runs:
        shutil.rmtree(run)
    if not all(are_same):
        raise SystemExit(1)


TRAIN = [sys.executable, "-c", "from spen_plugins.cli.run import main; main()"]
COMPARED = ("weights.safetensors", "history.jsonl", "metrics.json")

if __name__ == "__main__":
    main()
