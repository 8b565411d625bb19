"""Size of a pretrained encoder as `spen package` stores it, and the change of its words' vectors.

    SPEN_DATA=... python -m tools.english.encoder_size --model minilm --sentences 150

Vectors are of the first sentences of EWT's development part; the change is the length of the difference, divided by the
length of the original vector. The change by rounding to 16 bits alone is printed for comparison.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from torch import Tensor

from spen_plugins.builtin.features.transformer import Transformer
from spen_plugins.builtin.tasks.roles.srl import SemanticRoles
from spen_plugins.data.catalogue import locate
from spen_plugins.data.sentences.conllu import read_conllu
from spen_plugins.files import save_json
from spen_plugins.runs.folder import encoders


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--sentences", type=int, default=150)
    options = parser.parse_args()
    torch.set_num_threads(1)
    task = SemanticRoles(SemanticRoles.Config(corpus="sample"))
    task.load()
    network = Transformer(Transformer.Config(model=options.model), task).eval()
    task.indexers.update([network.indexer()])
    sentences = read_conllu(locate("data:pos/ewt/en_ewt-ud-dev.conllu"), tags="upos")[: options.sentences]
    x = task.collate([task.parse({"words": list(s.words), "predicate": 0}) for s in sentences]).x

    def compute_vectors() -> Tensor:
        with torch.no_grad():
            return network(x)[x.mask]

    original, weights = compute_vectors(), {name: tensor.clone() for name, tensor in network.state_dict().items()}
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "component", "part")
        run.mkdir(parents=True)
        save_json(encoders.take_out(dict(weights), network, run, True), run / encoders.INDEX)
        [file] = Path(folder, encoders.FOLDER).iterdir()
        print(
            f"stored: {file.stat().st_size / 1e6:.1f} MB; in 16 bits {_compute_half_size(weights):.1f} MB; "
            f"{len(original):,} words"
        )
        network.load_state_dict(weights | encoders.read(run))
        _print_change("8-bit rows, 16-bit layers", original, compute_vectors())
    network.load_state_dict({n: t.half().float() if t.is_floating_point() else t for n, t in weights.items()})
    _print_change("16 bits", original, compute_vectors())


def _compute_half_size(weights: dict[str, Tensor]) -> float:
    return sum(2 * tensor.numel() for tensor in weights.values() if tensor.is_floating_point()) / 1e6


def _print_change(name: str, original: Tensor, stored: Tensor) -> None:
    changes = (stored - original).norm(dim=-1) / original.norm(dim=-1)
    print(f"{name}: mean {100 * changes.mean():.2f} %, at most {100 * changes.max():.2f} %")


if __name__ == "__main__":
    main()
