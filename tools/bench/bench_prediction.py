"""Parameters, seconds per epoch, examples per second in prediction of finished runs (Lee et al. 2021, Tables 11-13).

    SPEN_DATA=... python -m tools.bench.bench_prediction SEAL=runs/seal/seed-0 DVN=runs/dvn/seed-0 NCE=runs/nce/seed-0

All runs predict their own test part, in turns, several times, on one thread; the median counts. Batches are collated
beforehand, so only the model is timed. The first RUN is the reference for the others.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass

import torch

from spen_plugins.batch import Batch
from spen_plugins.config.experiment import build, parse_experiment
from spen_plugins.model import Model
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.runs.many.groups import read_groups
from spen_plugins.scores.bootstrap import scale
from spen_plugins.task import Task


@dataclass
class Contestant:
    """A run, ready to predict."""

    label: str
    run: RunFolder
    model: Model
    task: Task
    batches: list[Batch]
    score: float
    seconds: list[float]

    @property
    def examples(self) -> int:
        return sum(len(batch) for batch in self.batches)

    def predict(self) -> None:
        """Times one pass over the part."""
        started = time.perf_counter()
        with torch.no_grad():
            for batch in self.batches:
                self.task.decode(self.model.propose(batch.x))
        self.seconds.append(time.perf_counter() - started)


def load(word: str, batch_size: int) -> Contestant:
    """The (first) run of a RUN argument."""
    [group] = read_groups([word])
    run = group.runs[0]
    experiment = parse_experiment(run.config(), str(run.path), Registry())
    built = build(experiment)
    run.load_weights(built.model)
    task, part = built.task, built.task.part("test")
    metric = task.metric()
    batches = [task.collate(part[i : i + batch_size]) for i in range(0, len(part), batch_size)]
    model = built.model.eval()
    with torch.no_grad():
        for batch in batches:
            metric.update(model.propose(batch.x), batch)
    score = scale(metric.unit) * float(metric.compute()[task.selection])
    return Contestant(group.label, run, model, task, batches, score, [])


def parameters(model: Model, prediction: bool) -> int:
    """Number of parameters of all nets, or of those that prediction needs."""
    nets = [model.inference_net]
    if model.energy is not None and (not prediction or model.inference_net.uses_energy):
        nets.append(model.energy)
    if not prediction and model.energy_loss is not None:
        nets.append(model.energy_loss)
    return sum(p.numel() for p in {id(p): p for net in nets for p in net.parameters()}.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="[LABEL=]RUN")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=128)
    options = parser.parse_args()
    torch.set_num_threads(1)
    contestants = [load(word, options.batch_size) for word in options.runs]
    for _ in range(options.repeats):
        for contestant in contestants:
            contestant.predict()
    print("| | parameters, training | prediction | s / epoch | examples / s | time ÷ the first's | test score |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    first = statistics.median(contestants[0].seconds) / contestants[0].examples
    for c in contestants:
        duration = statistics.median(c.seconds) / c.examples
        epoch = statistics.median(record["seconds"] for record in c.run.times())
        counts = f"{parameters(c.model, False):,} | {parameters(c.model, True):,}"
        print(f"| {c.label} | {counts} | {epoch:.2f} | {1 / duration:,.0f} | {duration / first:.2f} | {c.score:.2f} |")


if __name__ == "__main__":
    main()
