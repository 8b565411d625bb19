"""Time and memory of a pretrained encoder's keys: a batch forward and backward, one thread, on the CPU.

    python -m tools.bench.bench_encoder                       # MiniLM, 32 sentences of 28 words
    python -m tools.bench.bench_encoder --words 300 --batch 4
    python -m tools.bench.bench_encoder --precision bf16

CPU seconds are the least of several turns, in which each row has its own; memory is what autograd keeps of a batch,
weights not counted.
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
    given = parser.parse_args()
    torch.set_num_threads(1)
    task = SemanticRoles(SemanticRoles.Config(corpus="sample"))
    task.load()
    words = (SENTENCE.split() * given.words)[: given.words]
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ROWS}
    networks = {}
    for name, fields in ROWS.items():
        torch.manual_seed(0)
        networks[name] = Transformer(Transformer.Config.model_validate({"model": given.model, **fields}), task)
        task.indexers.update([networks[name].indexer()])
    x = task.collate([task.parse({"words": words, "predicate": 3})] * given.batch).x
    for network in networks.values():
        network.train()(x)  # what is stored is there
    with torch.autocast("cpu", torch.bfloat16, enabled=given.precision == "bf16", cache_enabled=False):
        for _ in range(given.turns):
            for name, network in networks.items():
                found[name].append((predicted(network, x), *trained(network, x)))
    table = Table("", "predicts, s", "trains, s", "keeps, MiB", "weights trained")
    for name, rows in found.items():
        seconds = [f"{min(row[i] for row in rows):.2f}" for i in (0, 1)]
        weights = sum(p.numel() for p in networks[name].parameters() if p.requires_grad)
        table.add_row(name, *seconds, f"{rows[0][2]:.0f}", f"{weights:,}")
    Console().print(table)


def predicted(network: Transformer, x: X) -> float:
    """CPU seconds of a batch in evaluation."""
    network.eval()
    began = time.process_time()
    with torch.no_grad():
        network(x)
    return time.process_time() - began


def trained(network: Transformer, x: X) -> tuple[float, float]:
    """CPU seconds of a batch forward and backward, and MiB that autograd keeps between the two."""
    network.train()
    own = {p.untyped_storage().data_ptr() for p in network.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    began = time.process_time()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = network(x)
    size = sum(kept.values()) / 2**20
    if y.requires_grad:
        y.square().sum().backward()
        network.zero_grad()
    return time.process_time() - began, size


if __name__ == "__main__":
    main()
