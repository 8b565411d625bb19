"""Equal inputs: those that stay in one part where rows are divided, and those that given parts share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations

import numpy as np

from spen_plugins.readers.split import PARTS


def digest(*pieces: bytes | str) -> bytes:
    """A short key of a long input, equal for equal pieces."""
    found = blake2b(digest_size=16)
    for piece in pieces:
        data = piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece
        found.update(len(data).to_bytes(8, "little") + data)
    return found.digest()


def number_inputs(keys: Iterable[Hashable]) -> np.ndarray:
    """The number of each row's input, `(rows,)`, from 0 in the order of their first rows; equal keys, equal inputs."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def count_repeats(inputs: np.ndarray) -> int:
    """How many rows have the input of an earlier row; `inputs` as of `number_inputs`."""
    return len(inputs) - len(np.unique(inputs))


def repeats_said(inputs: np.ndarray) -> str:
    """The end of a sentence on rows that were divided; empty if their inputs all differ."""
    repeats = count_repeats(inputs)
    verbs = "has the input of an earlier row and stays" if repeats == 1 else "have the input of an earlier row and stay"
    return f"; {repeats:,} of them {verbs} in its part" if repeats else ""


def shared_inputs(parts: Mapping[str, Sequence[Hashable]]) -> list[str]:
    """A warning for each pair of parts that share inputs.

    Args:
        parts: part -> the key of each row's input.
    """
    known = {part: set(parts[part]) for part in PARTS if part in parts}
    counts = {(one, other): sum(key in known[one] for key in parts[other]) for one, other in combinations(known, 2)}
    return [
        f"warning: the {one} part has {count:,} of the {len(parts[other]):,} {other} inputs, too: on these, scores "
        "don't say how well new inputs are predicted"
        for (one, other), count in counts.items()
        if count
    ]
