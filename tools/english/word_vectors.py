"""Vectors of words for spen_en, from a larger net that reads each word alone: for `make english`.

    python -m tools.english.word_vectors runs/english/data/ner.taught.conll runs/english/data/vectors.safetensors

The words are those of a text of columns that occur at least three times, in lower case, and the encoder's pieces that
are whole words, such as "siemens" and "nairobi". A word's vector is the mean of its pieces' states, with no other word
in the sentence, in the directions in which the words differ most (principal components), in 8 bits.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from spen_plugins.builtin.features.pretrained import load
from spen_plugins.data.sentences.columns import read_columns
from spen_plugins.data.words import STEP, WordVectors
from spen_plugins.files import save_bytes
from spen_plugins.nn.int8 import has_bfloat16
from tools.errors import end_with_message

LEAST = 3
"""Least occurrences in the text of a word that has a vector."""
LONGEST = 30
"""Letters of the longest word that has a vector."""
AT_ONCE = 512
"""Words that are encoded together."""


@end_with_message()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, help="text of columns, of which the first one has the words")
    parser.add_argument("out", type=Path, help="file to write")
    parser.add_argument("--encoder", default="mpnet", help="a folder, mpnet or minilm (default: mpnet)")
    parser.add_argument("--dim", type=int, default=64, help="width of the vectors (default: 64)")
    options = parser.parse_args()
    print(make_vectors(options.text, options.out, options.encoder, options.dim))


def make_vectors(text: Path, out: Path, encoder: str = "mpnet", dim: int = 64) -> str:
    """Write the vectors, unless the file exists; returns a sentence about them."""
    if out.exists():
        return f"{out} is there"
    net, tokenizer = load(encoder)
    words = list_words(text, tokenizer.get_vocab())
    states = torch.cat([encode(net, tokenizer, words[i : i + AT_ONCE]) for i in range(0, len(words), AT_ONCE)])
    vectors, share = reduce_width(states, dim)
    matrix = torch.cat([vectors.new_zeros(1, dim), (vectors / STEP).round().clamp(-127, 127) * STEP])
    save_bytes(WordVectors(words, matrix).to_bytes(), out, parents=True)
    return f"{out}: {len(words):,} words; {dim} of {states.shape[1]} directions have {share:.0%} of the variance"


def list_words(text: Path, pieces: Sequence[str]) -> list[str]:
    """The words, the shortest first, so that the words of a batch have about equal length."""
    counts = Counter(word.lower() for sentence in read_columns(text, 0, -1) for word in sentence.words)
    frequent = {word for word, count in counts.items() if count >= LEAST and len(word) <= LONGEST}
    whole_words = {piece for piece in pieces if re.fullmatch(r"[a-z0-9][a-z0-9.'&-]*", piece)}
    return sorted(frequent | whole_words, key=lambda word: (len(word), word))


def encode(net: nn.Module, tokenizer: Any, words: Sequence[str]) -> Tensor:
    """The mean state of each word's pieces, `(word, width)`."""
    encoding = tokenizer(list(words), padding=True, return_tensors="pt", return_special_tokens_mask=True)
    mask = encoding["attention_mask"] * (1 - encoding["special_tokens_mask"])
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=has_bfloat16()):
        states = net(input_ids=encoding["input_ids"], attention_mask=encoding["attention_mask"]).last_hidden_state
    return (states.float() * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


def reduce_width(states: Tensor, dim: int) -> tuple[Tensor, float]:
    """States in their `dim` principal components, of a mean variance of 1, and the share of the variance in these."""
    states = (states - states.mean(0)).double()
    variance, directions = torch.linalg.eigh(states.t() @ states / len(states))
    largest = variance[-dim:]
    return (states @ directions[:, -dim:] / largest.mean().sqrt()).float(), float(largest.sum() / variance.sum())


if __name__ == "__main__":
    main()
