"""Processor time of semantic roles: a sentence read for each of its predicates, and once for all of them.

    SPEN_DATA=... python -m tools.bench.bench_reading data=ewt
    SPEN_DATA=... python -m tools.bench.bench_reading --rows 320 --turns 3 data=ewt encoder=FOLDER

`roles method=cross_entropy` with either `reading`, in turns, on one thread and the same number of predicates:
training as in an epoch, prediction of the first rows of the test part. Collation counts, reading of files doesn't;
weights are untrained. The median of the turns is shown, and its ratio to the first line's.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from spen_plugins.config.evaluation import evaluate, parse_arguments
from spen_plugins.config.experiment import Built, build, parse_experiment
from spen_plugins.loop.evaluation import proposals
from spen_plugins.loop.order import plan_epochs
from spen_plugins.registry import Registry


class Contestant:
    """A model with one way of reading.

    Args:
        built: the model and its task.
        rows: number of predicates of a turn.
    """

    def __init__(self, built: Built, rows: int) -> None:
        self.model, self.task, self.config = built.model, built.task, built.trainer.config
        self.optimizer = torch.optim.Adam(self.model.parameters(), 1e-5)
        self.examples = self.task.part("train")
        batches = -(-rows // self.config.batch_size)
        self.batches = plan_epochs(self.task, self.examples, self.config, 0, 0).order(0)[:batches]
        self.predicted = self.task.part("test")[:rows]
        self.training: list[float] = []
        self.predicting: list[float] = []

    def train(self) -> None:
        """Times updates on the first batches of an epoch."""
        started = time.process_time()
        self.model.train()
        for rows in self.batches:
            batch = self.task.collate([self.examples[row] for row in rows])
            loss = -self.model.propose(batch.x).log_prob(batch.gold).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.training.append(time.process_time() - started)

    def predict(self) -> None:
        """Times scores and decoded tags."""
        started = time.process_time()
        for proposal, _, _ in proposals(self.model, self.task, self.predicted, self.config.evaluated_at_once, "cpu"):
            self.task.decode(proposal)
        self.predicting.append(time.process_time() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arguments", nargs="*", metavar="KEY=VALUE", help="arguments of roles")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    contestants = {}
    for reading in ("predicate", "sentence"):
        arguments = parse_arguments([*options.arguments, "method=cross_entropy", f"reading={reading}"])
        built = build(parse_experiment(evaluate("roles", arguments), "roles", Registry()))
        contestants[reading] = Contestant(built, options.rows)
    for _ in range(options.turns):
        for contestant in contestants.values():
            contestant.train()
            contestant.predict()
    print("| reading | parameters | training, predicates / s | time | prediction, predicates / s | time |")
    print("|---|---:|---:|---:|---:|---:|")
    first = contestants["predicate"]
    for reading, c in contestants.items():
        cells = [reading, f"{sum(p.numel() for p in c.model.parameters()):,}"]
        train_rows, test_rows = sum(map(len, c.batches)), len(c.predicted)
        for rows, seconds, reference in (
            (train_rows, c.training, first.training),
            (test_rows, c.predicting, first.predicting),
        ):
            median = statistics.median(seconds)
            cells += [f"{rows / median:,.0f}", f"{median / statistics.median(reference):.2f}"]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
