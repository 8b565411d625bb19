"""Seconds of an epoch of training in one process, and in two that share every batch.

    SPEN_DATA=... python -m tools.bench.bench_processes                     # all rows
    SPEN_DATA=... python -m tools.bench.bench_processes --only encoder --turns 7

One process and the two take turns, an epoch each, while the others wait, so that a machine of varying speed slows all
of them alike; each has one thread, and computes on the CPU. A ratio is the median, over the turns, of the seconds of
one process divided by those of two. CPU seconds are those of a process with its messages (the larger of the two). They
are the least that an epoch takes where each process has its own core, and depend less on the machine's other work than
clock time does. Validation hardly counts: every process does all of it, here on four examples.

The encoder is a BERT of 6 layers of width 384 with random weights and a small vocabulary, made in a temporary folder.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from spen_plugins.samples import tagged
from tools.bench.bench_training import Ours

BIBTEX = {"data": "bibtex", "trainer.rounds": "1", "trainer.energy.steps": "3"}
TAGGER = {"data": "sample", "method": "cross_entropy", "encoder": "{encoder}"}
ROWS: dict[str, tuple[str, dict[str, str], int, int]] = {
    "SEAL-NCE 3:1": ("labels", BIBTEX, 0, 1280),
    "SEAL-NCE 3:1, larger batches": ("labels", {**BIBTEX, "trainer.batch_size": "256"}, 0, 2560),
    "SEAL static, the net": ("labels", {"data": "bibtex", "method": "static_nce"}, -1, 2560),
    "inference-net game": ("tags", {"data": "twitter_pos", "trainer.pretrain_epochs": "0"}, 0, 640),
    "encoder": ("names", TAGGER, 0, 128),
    "encoder, larger batches": ("names", {**TAGGER, "trainer.batch_size": "64"}, 0, 128),
}
"""Config, its arguments, the stage's index and the number of training examples in an epoch, by the row's name."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5, help="timed epochs of each, after a warm-up epoch")
    parser.add_argument("--only", action="append", help="rows whose names begin with this; may be given more than once")
    options = parser.parse_args()
    names = [name for name in ROWS if any(name.startswith(start) for start in options.only or [""])]
    table = Table("", "batch", "one: s", "two: s", "ratio", "one: CPU s", "two: CPU s", "ratio")
    with tempfile.TemporaryDirectory() as folder:
        make_encoder(Path(folder) / "encoder")
        for name in names:
            size, turns = race(name, Path(folder), options.turns)
            cells = []
            for kind in range(2):
                one, two = ([turn[side][kind] for turn in turns] for side in range(2))
                ratio = statistics.median(a / b for a, b in zip(one, two, strict=True))
                cells += [f"{value:.2f}" for value in (statistics.median(one), statistics.median(two), ratio)]
            table.add_row(name, str(size), *cells)
    Console(width=100).print(table)


Seconds = tuple[float, float]
"""Clock and CPU seconds of an epoch."""


def race(name: str, folder: Path, turns: int) -> tuple[int, list[tuple[Seconds, Seconds]]]:
    """The batch size, and the seconds of one process and of two, by turn."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    environment = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    two = [Worker(name, folder, {"RANK": str(rank), "LOCAL_RANK": str(rank), **environment}) for rank in range(2)]
    one = Worker(name, folder, {})
    [size, _], *_ = [worker.answer() for worker in (one, *two)]
    seconds = [(together([one]), together(two)) for _ in range(turns + 1)]
    for worker in (one, *two):
        worker.end()
    return int(size), seconds[1:]


def together(workers: Sequence[Worker]) -> Seconds:
    """Trains an epoch in these workers together; returns the largest seconds."""
    for worker in workers:
        worker.ask()
    clock, cpu = zip(*[worker.answer() for worker in workers], strict=True)
    return max(clock), max(cpu)


class Worker:
    """A process that trains an epoch per request."""

    def __init__(self, name: str, folder: Path, environment: dict[str, str]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, worker_pipe = context.Pipe()
        run_folder = folder / f"{name} {environment.get('RANK', 'alone')}"
        self._process = context.Process(
            target=work, args=(name, folder / "encoder", run_folder, environment, worker_pipe)
        )
        self._process.start()
        worker_pipe.close()

    def ask(self) -> None:
        self._pipe.send("epoch")

    def answer(self) -> Seconds:
        return self._pipe.recv()

    def end(self) -> None:
        self._pipe.close()
        self._process.join()


def work(name: str, encoder: Path, folder: Path, environment: dict[str, str], pipe: Connection) -> None:
    """Send the batch size, then train an epoch per request, and send its seconds."""
    os.environ.update(environment)
    torch.set_num_threads(1)
    config, arguments, stage, examples = ROWS[name]
    settings = {key: value.format(encoder=encoder) for key, value in arguments.items()}
    training = Ours(folder, config, stage, **settings)
    training.stage = replace(training.stage, examples=training.loop.train[:examples])
    training.loop.begin(training.stage)
    part = training.task.part
    training.task.part = lambda name: part(name)[:4] if name == "validation" else part(name)
    pipe.send((training.loop.config.batch_size, 0.0))
    while True:
        try:
            pipe.recv()
        except EOFError:
            return
        start = time.process_time()
        seconds = training.epoch()
        pipe.send((seconds, time.process_time() - start))


def make_encoder(folder: Path) -> None:
    """A BERT with random weights, and its tokeniser, whose pieces are the words of the sample corpus."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = sorted({word.lower() for sentence in tagged.sample_corpus("ner")["train"] for word in sentence.words})
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
    sizes = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 6, "intermediate_size": 1536}
    torch.manual_seed(0)
    BertModel(BertConfig(**sizes, vocab_size=5 + len(words))).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)


if __name__ == "__main__":
    main()
