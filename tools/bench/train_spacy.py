"""Train spaCy's own `ner` or `tagger` on corpus files: its efficiency config as `spacy init config` writes it, on CPU.

    SPEN_DATA=... python -m tools.bench.train_spacy ner data:ner/btc/btc.train data:ner/btc/btc.dev runs/spacy/btc
    SPEN_DATA=... python -m tools.bench.train_spacy tag \\
        data:pos/ewt/en_ewt-ud-train.conllu data:pos/ewt/en_ewt-ud-dev.conllu runs/spacy/ewt

Names are in BIO columns, tags in columns or CoNLL-U. Every sentence is a Doc of the corpus's own words. OUT gets
train.spacy and dev.spacy, the config, and the best pipeline in OUT/model-best, for `tools/bench/bench_spacy.py`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import spacy
from spacy.cli.init_config import init_config
from spacy.cli.train import train as spacy_train
from spacy.tokens import DocBin

from spen_plugins.data.catalogue import locate
from tools.bench.spacy_docs import Kind, gold, read
from tools.errors import end_with_message


def convert(kind: Kind, source: Path, target: Path, tags: str = "xpos") -> int:
    """Write a corpus file as `.spacy`; returns the number of Docs."""
    vocab = spacy.blank("en").vocab
    docs = [gold(kind, sentence, vocab, source) for sentence in read(kind, source, tags)]
    DocBin(docs=docs).to_disk(target)
    return len(docs)


def train(kind: Kind, files: dict[str, Path], out: Path, tags: str = "xpos", max_steps: int | None = None) -> None:
    """Convert `train` and `dev` of `files`, and train; `max_steps` replaces the config's."""
    out.mkdir(parents=True, exist_ok=True)
    paths = {}
    for part, source in files.items():
        target = out / f"{part}.spacy"
        print(f"{target}: {convert(kind, source, target, tags)} docs")
        paths[f"paths.{part}"] = str(target)
    config = init_config(lang="en", pipeline=["tagger" if kind == "tag" else "ner"], optimize="efficiency")
    if max_steps is not None:
        config["training"]["max_steps"] = max_steps
    config.to_disk(out / "config.cfg")
    spacy_train(out / "config.cfg", out, overrides=paths)


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("ner", "tag"))
    parser.add_argument("train", help="training file, or its data: path")
    parser.add_argument("dev", help="file that the best step is chosen on")
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("--tags", default="xpos", help="field of CoNLL-U that holds the tags (default: xpos)")
    parser.add_argument("--max-steps", type=int, help="stop there, unless the config's patience stops earlier")
    options = parser.parse_args()
    started = time.perf_counter()
    files = {"train": locate(options.train), "dev": locate(options.dev)}
    train(options.kind, files, options.out, options.tags, options.max_steps)
    print(f"{time.perf_counter() - started:.0f} s in all")


if __name__ == "__main__":
    main()
