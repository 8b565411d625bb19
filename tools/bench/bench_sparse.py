"""Speed-up by sparse samples: the NCE loss of an energy update, dense against sparse, as ratios within one run.

    python -m tools.bench.bench_sparse                       # 159, 983, 4000 and 50000 labels, 20 on in a sample
    python -m tools.bench.bench_sparse --labels 159 983 --on 2.4 --samples 20
    python -m tools.bench.bench_sparse --growth              # sparse alone, 1000 against 50000 labels

Generated data: logits N(shift, 2²) with the shift for the wanted number of labels on, gold drawn from them. The timed
part is the samples, their log-probabilities, seal.labels' energy, the loss and its gradient to M, c, v and the b_i; the
net's logits and the features are given. The two forms take turns and the fastest turn of each counts, so that a busy
machine slows both alike. One thread.

With very many labels most of the time goes into new memory for the gradients of M and b. Kept between steps it costs
half: with glibc, MALLOC_MMAP_THRESHOLD_=4000000000 MALLOC_TRIM_THRESHOLD_=8000000000 in the environment.
"""

from __future__ import annotations

import argparse
import os
import time
from types import SimpleNamespace

import torch
from rich.console import Console
from rich.table import Table

import spen_plugins as sp
from spen_seal.contrast import Nce
from spen_seal.labels import Labels


class Given(sp.FeatureNetwork):
    """The input vector itself."""

    output_dim = 200

    def forward(self, x: sp.X) -> torch.Tensor:
        return x.inputs["vector"]


class Step:
    """One loss with its gradients, dense and sparse.

    Args:
        labels: L.
        on: labels that are on in a sample, on average.
    """

    def __init__(self, labels: int, on: float, batch: int, samples: int, hidden: int) -> None:
        task = SimpleNamespace(space=sp.LabelSet([str(i) for i in range(labels)]))
        vector = torch.randn(batch, Given.output_dim)
        self.energy = Labels(Labels.Config(hidden=hidden), task, Given(sp.Config(), task))
        logits = 2 * torch.randn(batch, 1, labels)
        self.logits = logits + shift(logits, on)
        x = sp.X({"vector": vector}, None, batch)
        gold = task.space.independent(self.logits).sample(1)
        self.batch = sp.Batch(x, torch.arange(batch), gold, torch.ones(batch, dtype=torch.bool))
        self.losses = {form: Nce(Nce.Config(samples=samples, sampling=form), task) for form in ("dense", "sparse")}

    def seconds(self, form: str) -> float:
        """Seconds of one forward and backward pass."""
        proposal = self.energy.space.independent(self.logits)
        self.energy.zero_grad()
        start = time.perf_counter()
        self.losses[form](self.energy.at(self.batch.x), self.batch, proposal).mean().backward()
        return time.perf_counter() - start

    def fastest(self, turns: int) -> dict[str, float]:
        """Milliseconds of each form's fastest turn; the first turn is a warm-up."""
        times = [{form: self.seconds(form) for form in self.losses} for _ in range(turns + 1)][1:]
        return {form: 1000 * min(turn[form] for turn in times) for form in self.losses}


def shift(logits: torch.Tensor, on: float) -> float:
    """Constant to add to the logits so that `on` labels are on in a sample, on average; by bisection."""
    low, high = -60.0, 60.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if (logits + middle).sigmoid().sum(-1).mean() > on else (middle, high)
    return low


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, nargs="+", default=[159, 983, 4000, 50_000])
    parser.add_argument("--on", type=float, default=20, help="labels on in a sample, on average")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--samples", type=int, default=40, help="K")
    parser.add_argument("--hidden", type=int, default=200, help="rows of M")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--growth", action="store_true", help="sparse alone, 1000 against 50000 labels")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    console = Console()
    console.print(
        f"batch {options.batch}, K = {options.samples}, {options.on:g} labels on, {options.hidden} measurements, "
        f"one thread, freed memory {'kept' if 'MALLOC_MMAP_THRESHOLD_' in os.environ else 'given back'}"
    )
    if options.growth:
        steps = [Step(labels, options.on, options.batch, options.samples, options.hidden) for labels in (1000, 50_000)]
        turns = [[step.seconds("sparse") for step in steps] for _ in range(options.turns + 1)][1:]
        small, large = (1000 * min(times) for times in zip(*turns, strict=True))
        console.print(f"sparse: {small:.1f} ms at 1000 labels, {large:.1f} ms at 50000: {large / small:.1f} times")
        return
    table = Table("labels", "dense, ms", "sparse, ms", "dense / sparse")
    for labels in options.labels:
        times = Step(labels, options.on, options.batch, options.samples, options.hidden).fastest(
            options.turns if labels < 10_000 else options.turns // 4
        )
        table.add_row(
            str(labels),
            f"{times['dense']:.1f}",
            f"{times['sparse']:.1f}",
            f"{times['dense'] / times['sparse']:.1f}",
        )
    console.print(table)


if __name__ == "__main__":
    main()
