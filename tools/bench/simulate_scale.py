"""Processes, hours and losses for a large corpus, from measured figures; stragglers and failures by simulation.

    python -m tools.bench.simulate_scale tools/bench/annotate_measured.json

The file is written by `tools/bench/bench_annotate.py --json`: words per second of one process, resident memory, and the
seconds of each shard. Everything else is an assumption, and an option: how many sentences in how many hours, how often
a worker dies and how long until it works again, which share of the workers is slow and by how much.

A worker takes the next shard as soon as it is free. The seconds of a shard are drawn (--seed) from the measured ones;
those of a shard as large as n measured ones are the sum of n draws. A worker dies after an exponential time: its shard
is restarted by the next free worker. `hours` is when the last shard is done, `over` how much that is above the ideal
(the same workers, none dies, all end together), `lost` the share of all workers' time that was lost to unfinished
shards and absence, `idle` the share in which they had nothing left to do while the last shards were running.
"""

from __future__ import annotations

import argparse
import heapq
import json
from collections import deque
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Outcome(NamedTuple):
    """Seconds of one simulated job, and the shares that the docstring above explains."""

    seconds: float
    over: float
    lost: float
    idle: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=Path)
    parser.add_argument("--sentences", type=float, default=1e9)
    parser.add_argument("--sentence-words", type=float, default=20, help="words (tokens) of a sentence")
    parser.add_argument("--word-bytes", type=float, default=5, help="bytes of a word of text, with its blank")
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--words-per-second", type=float, help="of one process (default: the measured ones)")
    parser.add_argument("--shard-mb", type=float, nargs="+", default=[0.25, 1, 4, 16, 64])
    parser.add_argument("--dies-hours", type=float, default=24, help="mean hours until a worker dies")
    parser.add_argument("--away", type=float, default=120, help="seconds until a worker that died works again")
    parser.add_argument("--slow-share", type=float, default=0.02, help="share of the workers that are slow")
    parser.add_argument("--slow-factor", type=float, default=3, help="how many times as long they take")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    measured = json.loads(options.measured.read_text(encoding="utf-8"))
    rate = options.words_per_second or measured["local"]["steady"]
    words = options.sentences * options.sentence_words
    workers = int(np.ceil(words / rate / (options.hours * 3600)))
    times = np.array(measured["shards"])
    per_shard = measured["words"] / (len(times) + 1)
    times = times * (per_shard / rate) / times.mean()  # the spread is measured, the mean is that of the rate
    memory = max(measured["memory"])
    print(f"{words:,.0f} words, {words * options.word_bytes / 1e9:,.0f} GB of text")
    print(f"{rate:,.0f} words/s a process: {workers:,} processes for {options.hours:g} hours if all goes well")
    print(f"{memory:,.0f} MB of memory a process: {memory * workers / 1000:,.0f} GB")
    print(f"text read at {words * options.word_bytes / options.hours / 3600 / 1e6:.1f} MB/s by all together")
    print(f"measured shards: {len(times)}; slowest / median {times.max() / np.median(times):.2f}")
    print("\n| MB a shard | shards | a shard, s | hours | over | lost | idle |\n|---:|---:|---:|---:|---:|---:|---:|")
    for size in options.shard_mb:
        shard_words = size * 1e6 / options.word_bytes
        count = int(np.ceil(words / shard_words))
        rng = np.random.default_rng(options.seed)
        slow = np.where(rng.random(workers) < options.slow_share, options.slow_factor, 1.0)
        seconds = drawn(times, per_shard, shard_words, count, rng)
        outcome = simulate(seconds, slow, options.dies_hours * 3600, options.away, rng)
        cells = (f"{size:g}", f"{count:,}", f"{np.median(seconds):.0f}", f"{outcome.seconds / 3600:.2f}")
        print(f"| {' | '.join(cells)} | {outcome.over:.1%} | {outcome.lost:.2%} | {outcome.idle:.2%} |")


def drawn(times: np.ndarray, words: float, shard_words: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Seconds of `count` shards of `shard_words` words, drawn from those of shards of `words` words."""
    number = max(1, round(shard_words / words))
    sums = np.zeros(count)
    for _ in range(number):
        sums += rng.choice(times, count)
    return sums * shard_words / (words * number)


def simulate(seconds: np.ndarray, slow: np.ndarray, dies: float, away: float, rng: np.random.Generator) -> Outcome:
    """Simulates one job.

    Args:
        seconds: the time of each shard on a worker that is not slow.
        slow: for each worker, how many times as long it takes.
        dies: mean seconds until a worker dies.
        away: seconds until a worker that died works again.
        rng: draws the times at which workers die.
    """
    queue = deque(seconds.tolist())
    restarts: list[tuple[float, float]] = []  # the time when a shard's worker dies, and the shard
    free_workers = [(0.0, worker) for worker in range(len(slow))]
    end = lost = busy = 0.0
    while queue or restarts:
        time, worker = heapq.heappop(free_workers)
        if restarts and (restarts[0][0] <= time or not queue):
            death, shard = heapq.heappop(restarts)
            time = max(time, death)
        else:
            shard = queue.popleft()
        duration, lifetime = shard * slow[worker], rng.exponential(dies)
        if lifetime < duration:
            heapq.heappush(restarts, (time + lifetime, shard))
            lost += lifetime + away
            heapq.heappush(free_workers, (time + lifetime + away, worker))
        else:
            busy += duration
            end = max(end, time + duration)
            heapq.heappush(free_workers, (time + duration, worker))
    total = end * len(slow)
    ideal = seconds.sum() / (1 / slow).sum()
    return Outcome(end, end / ideal - 1, lost / total, 1 - (busy + lost) / total)


if __name__ == "__main__":
    main()
