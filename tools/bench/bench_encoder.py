"""Time and memory of a pretrained encoder's keys: a batch forward and backward, one thread, on the CPU.

    python -m tools.bench.bench_encoder                       # MiniLM, 32 sentences of 28 words
    python -m tools.bench.bench_encoder --words 300 --batch 4
    python -m tools.bench.bench_encoder --precision bf16

CPU seconds are those of the fastest of several turns; memory is that of the tensors that autograd keeps for a batch,
without weights.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from spen_plugins.batch import X
from spen_plugins.builtin.features.transformer import Transformer
from spen_plugins.builtin.tasks.roles.srl import SemanticRoles

SENTENCE = "The old farmer told Anna in Boston that they had sent a letter to the mayor before the meeting ended"
ROWS: dict[str, dict[str, Any]] = {
    "all trained": {},
    "eager": {"attention": "eager"},
    "attention_dropout=0": {"attention_dropout": 0},
    "frozen=3": {"frozen": 3},
    "frozen=5": {"frozen": 5},
    "frozen=all": {"frozen": "all"},
    "frozen=3, stored": {"frozen": 3, "store_gib": 1},
    "frozen=all, stored": {"frozen": "all", "store_gib": 1},
    "lora, rank 8": {"lora": {"rank": 8}},
    "lora, attention_dropout=0": {"lora": {"rank": 8}, "attention_dropout": 0},
    "gradient_checkpointing": {"gradient_checkpointing": True},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--words", type=int, default=28)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--precision", choices=("no", "bf16"), default="no")
    options = parser.parse_args()
    torch.set_num_threads(1)
    task = SemanticRoles(SemanticRoles.Config(corpus="sample"))
    task.load()
    words = (SENTENCE.split() * options.words)[: options.words]
    results: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ROWS}
    networks = {}
    for name, fields in ROWS.items():
        torch.manual_seed(0)
        networks[name] = Transformer(Transformer.Config.model_validate({"model": options.model, **fields}), task)
        task.indexers.update([networks[name].indexer()])
    x = task.collate([task.parse({"words": words, "predicate": 3})] * options.batch).x
    for network in networks.values():
        network.train()(x)  # fills the stores
    with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16", cache_enabled=False):
        for _ in range(options.turns):
            for name, network in networks.items():
                results[name].append((predicted(network, x), *trained(network, x)))
    table = Table("", "predicts, s", "trains, s", "keeps, MiB", "weights trained")
    for name, rows in results.items():
        seconds = [f"{min(row[i] for row in rows):.2f}" for i in (0, 1)]
        weights = sum(p.numel() for p in networks[name].parameters() if p.requires_grad)
        table.add_row(name, *seconds, f"{rows[0][2]:.0f}", f"{weights:,}")
    Console().print(table)


def predicted(network: Transformer, x: X) -> float:
    """CPU seconds of a batch in evaluation."""
    network.eval()
    start = time.process_time()
    with torch.no_grad():
        network(x)
    return time.process_time() - start


def trained(network: Transformer, x: X) -> tuple[float, float]:
    """CPU seconds of a batch forward and backward, and MiB that autograd keeps between the two."""
    network.train()
    weights = {p.untyped_storage().data_ptr() for p in network.parameters()}
    sizes: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    start = time.process_time()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = network(x)
    size = sum(sizes.values()) / 2**20
    if y.requires_grad:
        y.square().sum().backward()
        network.zero_grad()
    return time.process_time() - start, size


if __name__ == "__main__":
    main()
