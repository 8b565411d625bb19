"""Processes, hours and losses for a large corpus, from measured figures; stragglers and failures by simulation.

    python -m tools.bench.simulate_scale tools/bench/annotate_measured.json

The file is what `tools/bench/bench_annotate.py --json` writes: words a second of one process, resident memory, and the
seconds of each shard. Everything else is an assumption, and an option: how many sentences in how many hours, how often
a worker dies and how long until it works again, which share of the workers is slow and by how much.

A worker takes the next shard as soon as it is free. The seconds of a shard are drawn (--seed) from the measured ones;
those of a shard as large as n measured ones are the sum of n draws. A worker dies after an exponential time: its shard
is begun anew by the next one that is free. `hours` is when the last shard is done, `over` how much that is above the
ideal (the same workers, none dies, all end together), `lost` the share of all workers' time that was worked in vain or
away, `idle` the share in which they had nothing left to do while the last shards were running.
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
    """Of one simulated job: seconds, and the shares of the docstring above."""

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
    given = parser.parse_args()
    measured = json.loads(given.measured.read_text(encoding="utf-8"))
    rate = given.words_per_second or measured["local"]["steady"]
    words = given.sentences * given.sentence_words
    workers = int(np.ceil(words / rate / (given.hours * 3600)))
    times = np.array(measured["shards"])
    per_shard = measured["words"] / (len(times) + 1)
    times = times * (per_shard / rate) / times.mean()  # the spread is measured, the mean is that of the rate
    memory = max(measured["memory"])
    print(f"{words:,.0f} words, {words * given.word_bytes / 1e9:,.0f} GB of text")
    print(f"{rate:,.0f} words/s a process: {workers:,} processes for {given.hours:g} hours if all goes well")
    print(f"{memory:,.0f} MB of memory a process: {memory * workers / 1000:,.0f} GB")
    print(f"text read at {words * given.word_bytes / given.hours / 3600 / 1e6:.1f} MB/s by all together")
    print(f"measured shards: {len(times)}; slowest / median {times.max() / np.median(times):.2f}")
    print("\n| MB a shard | shards | a shard, s | hours | over | lost | idle |\n|---:|---:|---:|---:|---:|---:|---:|")
    for size in given.shard_mb:
        shard_words = size * 1e6 / given.word_bytes
        count = int(np.ceil(words / shard_words))
        rng = np.random.default_rng(given.seed)
        slow = np.where(rng.random(workers) < given.slow_share, given.slow_factor, 1.0)
        seconds = drawn(times, per_shard, shard_words, count, rng)
        found = simulate(seconds, slow, given.dies_hours * 3600, given.away, rng)
        cells = (f"{size:g}", f"{count:,}", f"{np.median(seconds):.0f}", f"{found.seconds / 3600:.2f}")
        print(f"| {' | '.join(cells)} | {found.over:.1%} | {found.lost:.2%} | {found.idle:.2%} |")


def drawn(times: np.ndarray, words: float, wanted: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Seconds of `count` shards of `wanted` words, from those of shards of `words` words."""
    number = max(1, round(wanted / words))
    sums = np.zeros(count)
    for _ in range(number):
        sums += rng.choice(times, count)
    return sums * wanted / (words * number)


def simulate(seconds: np.ndarray, slow: np.ndarray, dies: float, away: float, rng: np.random.Generator) -> Outcome:
    """One job.

    Args:
        seconds: of each shard on a worker that is not slow.
        slow: of each worker, how many times as long it takes.
        dies: mean seconds until a worker dies.
        away: seconds until one that died works again.
        rng: draws when workers die.
    """
    left = deque(seconds.tolist())
    again: list[tuple[float, float]] = []  # when a shard's worker dies, and the shard
    free = [(0.0, worker) for worker in range(len(slow))]
    end = lost = busy = 0.0
    while left or again:
        now, worker = heapq.heappop(free)
        if again and (again[0][0] <= now or not left):
            died, shard = heapq.heappop(again)
            now = max(now, died)
        else:
            shard = left.popleft()
        takes, lives = shard * slow[worker], rng.exponential(dies)
        if lives < takes:
            heapq.heappush(again, (now + lives, shard))
            lost += lives + away
            heapq.heappush(free, (now + lives + away, worker))
        else:
            busy += takes
            end = max(end, now + takes)
            heapq.heappush(free, (now + takes, worker))
    total = end * len(slow)
    ideal = seconds.sum() / (1 / slow).sum()
    return Outcome(end, end / ideal - 1, lost / total, 1 - (busy + lost) / total)


if __name__ == "__main__":
    main()
