"""Training times, as ratios within one run.

    python -m tools.bench.bench_training              # bibtex if its data is there, else the sample corpus
    python -m tools.bench.bench_training --profile    # and a profile of a SEAL epoch
    python -m tools.bench.bench_training --tag-lm     # tag language models as energies against a BiLSTM
    python -m tools.bench.bench_training --tagging  # joint training of energy and inference nets against a tagger
    python -m tools.bench.bench_training --implicit  # implicit training against SEAL, SPEN and DVN

Trainings take turns, an epoch each, so that a machine of varying speed slows all of them alike: our cross entropy, our
SEAL-dynamic NCE (one energy update and one net update per batch, 20 samples), also with ten samples and with an energy
that moves at every other batch, and the first as a plain script (docs/plain_seal.md: dense inputs, default AdamW). One
thread.

With --tag-lm, a batch of 32 sentences of 30 words and 25 tags goes forward and backward through each energy (gradients
to the outputs and to the parameters) and through a BiLSTM feature network of the same width, in turns.

With --tagging, a BiLSTM with cross entropy, a CRF and joint training in its parameterisations train a tagger in turns
(Twitter POS if its data is there, else the sample corpus), all on the same feature network.

With --implicit, an epoch of updates of the net and the energy, 1 : 1, by SEAL-dynamic NCE and by implicit contrastive
divergence with several inverses (20 samples each), one of SPEN's and DVN's energies, in turns; then the seconds in
which each predicts the test part.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from rich.console import Console
from rich.table import Table

from spen_plugins.batch import X
from spen_plugins.config.evaluation import evaluate
from spen_plugins.config.experiment import build, parse_experiment
from spen_plugins.loop import evaluation
from spen_plugins.loop.loop import Loop
from spen_plugins.loop.progress import Reporter
from spen_plugins.loop.recipe import Callbacks, Recipe
from spen_plugins.registry import Registry
from spen_plugins.runs.folder.folder import RunFolder
from spen_plugins.spaces import TagSequence
from spen_plugins.task import WordInputs
from spen_plugins.testing import ToyTags

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
PAGE = Path(__file__).resolve().parents[2] / "docs/plain_seal.md"


class Ours:
    """One of our configs, an epoch at a time."""

    def __init__(self, folder: Path, config: str = "labels", stage: int = 0, **arguments: Any) -> None:
        source = CONFIGS / f"{config}.jsonnet"
        experiment = parse_experiment(evaluate(source, arguments), str(source), Registry())
        built = build(experiment)
        self.task, config = built.task, built.trainer.config.model_copy(update={"gradient_norms_every": 0})
        self.stage = built.trainer.stages(built.model, built.task)[stage]
        reporter = Reporter(Console(quiet=True), built.task.selection)
        run = RunFolder.create(folder, experiment.table())
        recipe = Recipe(built.model, built.task, [self.stage], config, 0)
        self.loop = Loop(recipe, run, Accelerator(cpu=True), reporter, Callbacks(1e9))
        self.folder = folder
        self.loop.begin(self.stage)

    def epoch(self) -> float:
        """Train one epoch; returns the seconds without validation (of several processes, 0 in all but the main one)."""
        self.loop.run_epoch(self.stage)
        self.loop.position.epoch += 1
        self.loop.position.batch = 0
        if not self.loop.accelerator.is_main_process:
            return 0.0
        return json.loads((self.folder / "times.jsonl").read_text().splitlines()[-1])["seconds"]

    def predict(self) -> float:
        """Predict the test part; returns the seconds."""
        loop = self.loop
        started = time.perf_counter()
        evaluation.evaluate(loop.model, self.task, self.task.part("test"), loop.config.evaluated_at_once, "cpu")
        return time.perf_counter() - started


class Plain:
    """The script of docs/plain_seal.md on dense matrices."""

    def __init__(self, x: torch.Tensor, y: torch.Tensor) -> None:
        names: dict[str, Any] = {"__name__": "plain_seal"}
        [script] = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        exec(compile(script, str(PAGE), "exec"), names)
        self.seal = names["Seal"](x, y)

    def epoch(self) -> float:
        """Train one epoch; returns the seconds."""
        started = time.perf_counter()
        self.seal.epoch()
        return time.perf_counter() - started


def dense(task: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The training part as dense matrices, for the plain script."""
    examples = task.part("train")
    batch = task.collate(examples)
    if "vector" in batch.x.inputs:
        return batch.x.inputs["vector"], batch.gold[:, 0]
    indices, offsets = batch.x.inputs["indices"], batch.x.inputs["offsets"]
    lengths = torch.diff(offsets, append=torch.tensor([len(indices)]))
    x = torch.zeros(len(examples), task.inputs.size)
    x[torch.repeat_interleave(torch.arange(len(examples)), lengths), indices] = 1.0
    return x, batch.gold[:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="bibtex (twitter_pos with --tagging) if SPEN_DATA is set, else sample")
    parser.add_argument("--epochs", type=int, default=5, help="timed epochs of each, after a warm-up epoch")
    parser.add_argument("--profile", action="store_true", help="operators of one SEAL epoch, most expensive first")
    parser.add_argument("--tag-lm", action="store_true", help="only the cost of tag language models")
    parser.add_argument("--tagging", action="store_true", help="only taggers")
    parser.add_argument("--implicit", action="store_true", help="only implicit training and what it is compared with")
    options = parser.parse_args()
    torch.set_num_threads(1)
    corpus = "twitter_pos" if options.tagging else "bibtex"
    options.data = options.data or (corpus if os.environ.get("SPEN_DATA") else "sample")
    if options.tag_lm:
        report_passes(passes())
        return
    if options.tagging:
        race_taggers(options.data, options.epochs)
        return
    if options.implicit:
        race_implicit(options.data, options.epochs)
        return
    with tempfile.TemporaryDirectory() as folder:
        base = {"method": "nce", "trainer.rounds": "1", "trainer.energy.steps": "1", "trainer.net.steps": "1"}
        rows = {
            "cross entropy": {"method": "cross_entropy"},
            "SEAL NCE 1:1": {**base, "energy_loss.samples": "20"},
            "SEAL NCE 1:1, 10 samples": {**base, "energy_loss.samples": "10"},
            "SEAL NCE 1:2, 10 samples": {**base, "energy_loss.samples": "10", "trainer.energy.every": "2"},
        }
        trainings = {name: Ours(Path(folder, name), data=options.data, **fields) for name, fields in rows.items()}
        for racer in trainings.values():
            racer.epoch()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        racers = {**trainings, "SEAL NCE 1:1, plain": Plain(*dense(trainings["cross entropy"].task))}
        racers["SEAL NCE 1:1, plain"].epoch()
        seconds: dict[str, list[float]] = {name: [] for name in racers}
        for _ in range(options.epochs):
            for name, racer in racers.items():
                seconds[name].append(racer.epoch())
        report(options.data, seconds, peak)
        if options.profile:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
                trainings["SEAL NCE 1:1"].epoch()
            print(profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=25, max_name_column_width=50))


def race_implicit(data: str, epochs: int) -> None:
    """Print the seconds per epoch, and of prediction, of implicit training and the methods it is compared with."""
    base = {"energy_loss.samples": "20", "trainer.rounds": "1", "trainer.energy.steps": "1", "trainer.net.steps": "1"}
    implicit = {"method": "implicit_cd", "energy_loss.samples": "20"}
    rows = {
        "SEAL NCE 1:1": {"method": "nce", **base},
        "alternating CD": {**implicit, "trainer.inverse": "none"},
        "implicit CD, identity": {**implicit, "trainer.inverse": "identity"},
        "implicit CD, K = 3": implicit,
        "implicit CD, K = 5": {**implicit, "trainer.terms": "5"},
        "implicit CD, conjugate gradient, 5": {**implicit, "trainer.inverse": "cg", "trainer.terms": "5"},
        "SPEN": {"method": "spen"},
        "DVN": {"method": "dvn"},
    }
    with tempfile.TemporaryDirectory() as folder:
        racers = {name: Ours(Path(folder, name), stage=-1, data=data, **fields) for name, fields in rows.items()}
        seconds: dict[str, list[float]] = {name: [] for name in racers}
        predict_seconds: dict[str, list[float]] = {name: [] for name in racers}
        for turn in range(epochs + 1):
            for name, racer in racers.items():
                duration = racer.epoch()
                if turn:  # the first one warms up
                    seconds[name].append(duration)
                    predict_seconds[name].append(racer.predict())
    table = Table(
        "", "s / epoch (median)", "ratio to SEAL", "s to predict", "ratio to SEAL", title=f"{data}, one thread"
    )
    for name in racers:
        cells = []
        for values in (seconds, predict_seconds):
            ratio = statistics.median(a / b for a, b in zip(values[name], values["SEAL NCE 1:1"], strict=True))
            cells += [f"{statistics.median(values[name]):.3f}", f"{ratio:.2f}"]
        table.add_row(name, *cells)
    Console().print(table)


def race_taggers(data: str, epochs: int) -> None:
    """Print the seconds per epoch of each tagger, and their ratios to plain BiLSTM training."""
    game = {"trainer.pretrain_epochs": "0"}
    rows: dict[str, dict[str, str]] = {
        "BiLSTM": {"method": "cross_entropy"},
        "CRF": {"method": "crf"},
        "margin": {"method": "margin", **game},
        "compound stacked": game,
        "compound stacked, nets first": {**game, "trainer.first": "net"},
        "compound shared": {**game, "energy_loss.cost_net.type": "infnet.shared"},
        "compound separated": {**game, "energy_loss.cost_net.type": "infnet.separated"},
        "compound stacked, k = 5": {**game, "trainer.net.steps": "5", "trainer.first": "net"},
    }
    with tempfile.TemporaryDirectory() as folder:
        racers = {name: Ours(Path(folder, name), "tags", data=data, **fields) for name, fields in rows.items()}
        turns = [{name: racer.epoch() for name, racer in racers.items()} for _ in range(epochs + 1)][1:]
        examples = len(racers["BiLSTM"].task.part("train"))
    table = Table("", "s / epoch (median)", "examples / s", "ratio to BiLSTM", title=f"{data}, one thread")
    for name in rows:
        seconds = statistics.median(turn[name] for turn in turns)
        ratio = statistics.median(turn[name] / turn["BiLSTM"] for turn in turns)
        table.add_row(name, f"{seconds:.2f}", f"{examples / seconds:.0f}", f"{ratio:.2f}")
    Console().print(table)


class Sentences(ToyTags):
    """Random sentences, all of one length."""

    def set_up(self) -> None:
        self.space = TagSequence([f"tag{i}" for i in range(25)])
        self.inputs = WordInputs([f"word{i}" for i in range(5000)], {})

    def batch(self, sentences: int, tokens: int) -> X:
        words = torch.randint(2, 5000, (sentences, tokens))
        return X({"words": words}, torch.ones(sentences, tokens, dtype=torch.bool), sentences)


def passes() -> dict[str, Callable[[], float]]:
    """Functions that time one forward and backward pass, by name of the module."""
    registry, task = Registry(), Sentences(examples=0)
    x = task.batch(32, 30)
    y = task.space.relax(torch.randn(32, 1, 30, 25), x.mask).requires_grad_()

    def make(kind: str, spec: dict[str, Any], *parts: Any) -> Any:
        cls, config = registry.parse(kind, spec, kind, "benchmark")
        return cls(config, task, *parts).train()

    directions = {"directions": ["forward", "backward"]}
    table = {"type": "encoder", "encoder": "pass_through", "word_dim": 100, "char_dim": 0}
    bilstm = make("features", {"type": "bilstm", "word_dim": 100, "affix_dim": 0, "hidden": 128, "layers": 1})
    tags = make("energy", {"type": "infnet.tag_lm", **directions})
    words = make("energy", {"type": "infnet.word_tag_lm", **directions}, make("features", table))
    energies = {
        "GE(a): tags forward": make("energy", {"type": "infnet.tag_lm"}),
        "GE(b): tags both ways": tags,
        "GE(c): tags and words both ways": make("energy", {"type": "sum"}, None, {"tags": tags, "words": words}),
    }

    def make_timer(compute: Callable[[], torch.Tensor]) -> Callable[[], float]:
        def time_once() -> float:
            start = time.perf_counter()
            compute().sum().backward()
            return time.perf_counter() - start

        return time_once

    timers = {"BiLSTM-128": make_timer(lambda: bilstm(x))}
    for name, energy in energies.items():
        timers[name] = make_timer(lambda energy=energy: energy.at(x)(y))
    return timers


def report_passes(racers: dict[str, Callable[[], float]], rounds: int = 40) -> None:
    """Print medians of passes in turns, and the ratios to the first."""
    seconds = [{name: timer() for name, timer in racers.items()} for _ in range(rounds + 5)][5:]
    base = next(iter(racers))
    table = Table("", "ms (median)", f"ratio to {base}", title="32 sentences x 30 words x 25 tags, one thread")
    for name in racers:
        ratio = statistics.median(turn[name] / turn[base] for turn in seconds)
        table.add_row(name, f"{1000 * statistics.median(turn[name] for turn in seconds):.1f}", f"{ratio:.2f}")
    Console().print(table)


def report(data: str, seconds: dict[str, list[float]], peak: float) -> None:
    """Print medians and ratios; peak memory is that of all our trainings together."""
    table = Table("", "s / epoch (median)", "min", "max", title=f"{data}, one thread")
    for name, values in seconds.items():
        table.add_row(name, *(f"{value:.3f}" for value in (statistics.median(values), min(values), max(values))))
    console = Console()
    console.print(table)
    for name, base in (*((name, "cross entropy") for name in seconds), ("SEAL NCE 1:1", "SEAL NCE 1:1, plain")):
        ratio = statistics.median(a / b for a, b in zip(seconds[name], seconds[base], strict=True))
        console.print(f"{name} / {base}: {ratio:.2f} (median of pairs)")
    console.print(f"peak resident memory of our trainings together: {peak:.2f} GiB")


if __name__ == "__main__":
    main()
