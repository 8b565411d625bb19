"""Processor time of an energy with an encoder of its own, and on the inference net's (`energy.features.type=shared`).

    python -m tools.bench.bench_shared                            # MiniLM, which pip installs; see docs/encoders.md
    python -m tools.bench.bench_shared --encoder FOLDER --batches 20

Updates of both players by SEAL-dynamic NCE on the sample's roles, in turns with cross entropy alone; one thread. The
median seconds of a batch are shown, their ratio to cross entropy's, and the size of the weights.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from tools.bench.bench_training import Ours

ROWS = {
    "cross entropy": {"method": "cross_entropy"},
    "NCE, an encoder each": {"method": "nce"},
    "NCE, one encoder": {"method": "nce", "energy.features.type": "shared"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--batches", type=int, default=8, help="timed batches of each, after one to warm up")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        trainings = {
            name: Ours(Path(folder, name), "roles", -1, encoder=options.encoder, **arguments)
            for name, arguments in ROWS.items()
        }
        seconds: dict[str, list[float]] = {name: [] for name in trainings}
        for number in range(options.batches + 1):
            for name, training in trainings.items():
                rows = training.loop.epochs.order(0)[number]
                started = time.process_time()
                training.loop.run_batch(training.stage, rows)
                seconds[name].append(time.process_time() - started)
    table = Table("", "s a batch", "ratio", "weights, MiB")
    first = statistics.median(seconds["cross entropy"][1:])
    for name, training in trainings.items():
        median = statistics.median(seconds[name][1:])
        weights = sum(p.nbytes for p in training.loop.model.parameters()) / 2**20
        table.add_row(name, f"{median:.2f}", f"{median / first:.2f}", f"{weights:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
