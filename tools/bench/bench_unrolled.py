"""Time and memory of training through gradient steps, and of prediction, as ratios within one run.

    python -m tools.bench.bench_unrolled              # training on 8 crops of 40x40, prediction of an image of 321x481
    python -m tools.bench.bench_unrolled --rounds 5   # less noise

A deep prior of 32 filters of 7x7 learns by the loss of all iterates (Belanger et al. 2017, Eq. 9) of T = 3, 10 and 20
steps, with and without `checkpoint`; the energy's gradient is in closed form, in float32 or bfloat16, or by autograd.
All take turns, an update each, so that a machine of varying speed slows all of them alike. One thread; seconds are CPU
seconds, which exclude the work of other processes.

MiB is the most memory that torch's tensors take at once, above what they take at the start: it hardly depends on
the machine, and leaves out the memory that the allocator and the kernels of convolutions hold for themselves.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import spen_plugins as sp
from spen_e2e.images import DeepPrior, Input
from spen_e2e.unroll import Unroll
from spen_e2e.unrolled import Unrolled
from spen_images.denoising import Denoising
from spen_plugins.loop.context import LiveContext, NetStates

STEPS = (3, 10, 20)
TOLERANCE = 0.5 / 255


class ByAutograd(DeepPrior):
    """The deep prior without its gradient in closed form."""

    gradient = sp.Energy.gradient


ENERGIES: Mapping[str, tuple[type[DeepPrior], str]] = {
    "closed form": (DeepPrior, "float32"),
    "closed form, bfloat16": (DeepPrior, "bfloat16"),
    "autograd": (ByAutograd, "float32"),
}


@dataclass(frozen=True)
class Point:
    """A measured setting."""

    energy: str
    steps: int
    checkpoint: bool = False
    tolerance: float = 0.0
    weight: float = 0.01

    def model(self, task: sp.Task) -> sp.Model:
        """A new model, which differs between points only by the settings."""
        torch.manual_seed(0)
        cls, precision = ENERGIES[self.energy]
        config = Unrolled.Config(
            steps=self.steps,
            checkpoint=self.checkpoint,
            tolerance=self.tolerance,
            lr=0.5,
            momentum=0.25,
            rates="learned",
        )
        net = Unrolled(config, task, net=Input(Input.Config(), task))
        return sp.Model(net, cls(cls.Config(precision=precision, weight=self.weight), task), None)


def update(point: Point, task: sp.Task, batch: sp.Batch) -> Callable[[], Any]:
    """A function that makes one training update."""
    model = point.model(task)
    phase = Unroll(Unroll.Config()).stages(model, task)[0].phases[0]
    optimizer, nets = torch.optim.Adam(model.parameters(), lr=1e-3), NetStates(model)

    def update_once() -> None:
        optimizer.zero_grad()
        sum(term.sum() for term in phase.loss(LiveContext(nets, batch)).values()).backward()
        optimizer.step()

    return update_once


def prediction(point: Point, task: sp.Task, batch: sp.Batch) -> Callable[[], Any]:
    """A function that predicts; it returns the number of steps made."""
    model = point.model(task).eval()
    calls: list[None] = []
    model.energy.first.register_forward_hook(lambda *_: calls.append(None))

    @torch.no_grad()
    def predict_once() -> int:
        calls.clear()
        task.decode(model.propose(batch.x))
        return len(calls)

    return predict_once


def peak(work: Callable[[], Any]) -> float:
    """The most MiB that the work's tensors take at once."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        work()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    changes = sorted((event for event in events if event["name"] == "[memory]"), key=lambda event: event["ts"])
    # Torch's total continues from the previous profile.
    return max(itertools.accumulate(event["args"]["Bytes"] for event in changes)) / 2**20


def race(works: Mapping[Point, Callable[[], Any]], rounds: int) -> dict[Point, list[float]]:
    """Seconds of each point in each round, after one round to warm up."""
    seconds: dict[Point, list[float]] = {point: [] for point in works}
    for _ in range(rounds + 1):
        for point, work in works.items():
            start = time.process_time()
            work()
            seconds[point].append(time.process_time() - start)
    return {point: values[1:] for point, values in seconds.items()}


def ratio(values: Iterable[float], others: Iterable[float]) -> str:
    """Median of the ratios within a round."""
    return f"{statistics.median(a / b for a, b in zip(values, others, strict=True)):.2f}"


def show(title: str, header: str, rows: Iterable[Iterable[object]]) -> None:
    """Print a Markdown table."""
    columns = header.split(" | ")
    print(f"\n{title}\n\n| {header} |\n|{'---|' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def train(rounds: int) -> None:
    """Print the table of training."""
    task = Denoising(Denoising.Config(corpus="sample", crop=40))
    task.load()
    rng = np.random.default_rng(0)
    batch = task.collate([task.augment(example, rng) for example in task.part("train")[:8]])
    points = [
        Point(energy, steps, checkpoint) for steps in STEPS for checkpoint in (False, True) for energy in ENERGIES
    ]
    works = {point: update(point, task, batch) for point in points}
    seconds = race(works, rounds)
    mib = {point: peak(works[point]) for point in points}

    def make_row(p: Point) -> tuple[object, ...]:
        base, other = Point(p.energy, 3), Point("autograd", p.steps, p.checkpoint)
        return (
            p.energy,
            p.steps,
            "yes" if p.checkpoint else "no",
            f"{statistics.median(seconds[p]):.2f}",
            ratio(seconds[p], seconds[base]),
            ratio(seconds[p], seconds[other]),
            f"{mib[p]:.1f}",
            f"{mib[p] / mib[base]:.2f}",
        )

    show(
        "One training update, 8 crops of 40x40; a ratio to T = 3 is to that without checkpoint",
        "gradient | T | checkpoint | s | to T = 3 | to autograd | MiB | to T = 3",
        map(make_row, sorted(points, key=lambda p: list(ENERGIES).index(p.energy))),
    )


def predict(rounds: int) -> None:
    """Print the table of prediction, with a new prior."""
    task = Denoising(Denoising.Config(corpus="sample"))
    task.load()
    # Images of the sample are small: one is repeated.
    clean = task.part("test")[0].clean
    clean = np.tile(clean, [-(-size // side) for size, side in zip((321, 481), clean.shape, strict=True)])[:321, :481]
    noise = np.random.default_rng(0).standard_normal(clean.shape, dtype=np.float32)
    batch = task.collate([task.part("test")[0]._replace(clean=clean, noise=noise)])
    # With weight 1 a new prior moves pixels by up to 0.1, the deviation of the noise; with a lower one hardly at all.
    points = [
        Point("closed form", steps, tolerance=tolerance, weight=1.0)
        for steps in (3, 20)
        for tolerance in (0.0, TOLERANCE)
    ]
    works = {point: prediction(point, task, batch) for point in points}
    seconds = race(works, rounds)
    show(
        f"Prediction of one image of 321x481; tolerance {TOLERANCE:.4f}, half a grey level",
        "T | tolerance | steps made | s | to T = 3 | MiB",
        (
            (
                p.steps,
                "yes" if p.tolerance else "no",
                works[p](),
                f"{statistics.median(seconds[p]):.2f}",
                ratio(seconds[p], seconds[points[0]]),
                f"{peak(works[p]):.1f}",
            )
            for p in points
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="timed updates and predictions of each, after one more")
    options = parser.parse_args()
    torch.set_num_threads(1)
    train(options.rounds)
    predict(options.rounds)


if __name__ == "__main__":
    main()
