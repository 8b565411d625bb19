"""Equal inputs: they stay in one part when rows are divided, and separate parts that share some are reported."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations
from typing import Any

import numpy as np

from spen_plugins.data.table import Ragged


def digest(*pieces: bytes | str) -> bytes:
    """A short key of a long input, equal for equal pieces."""
    hasher = blake2b(digest_size=16)
    for piece in pieces:
        data = piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece
        hasher.update(len(data).to_bytes(8, "little") + data)
    return hasher.digest()


def make_row_keys(features: Ragged | np.ndarray) -> list[bytes]:
    """Keys of the rows of features; equal rows have equal keys. Zeros stored in a sparse row don't count."""
    if isinstance(features, np.ndarray):
        return [digest((row + 0.0).tobytes()) for row in features]  # -0 is 0
    if features.weight is None:
        return [digest(features[i].tobytes()) for i in range(len(features))]
    rows = [(features[i], features.weights(i), features.weights(i) != 0) for i in range(len(features))]
    return [digest(columns[is_stored].tobytes(), values[is_stored].tobytes()) for columns, values, is_stored in rows]


def number_inputs(keys: Iterable[Hashable]) -> np.ndarray:
    """The number of each row's input, `(rows,)`, from 0 in the order of first rows; equal keys have equal numbers."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def describe_repeats(inputs: np.ndarray) -> str:
    """The end of a sentence about divided rows, empty if all inputs differ; `number_inputs` returns `inputs`."""
    repeats = len(inputs) - len(np.unique(inputs))
    if not repeats:
        return ""
    rows, suffix = ("1 row repeats", "s") if repeats == 1 else (f"{repeats:,} rows repeat", "")
    return f"; {rows} an earlier row's input (as the task reads it) and stay{suffix} in the same part"


def shared_inputs(parts: Mapping[str, Sequence[Hashable]]) -> list[str]:
    """A warning if parts share inputs; `parts` has the key of each row's input."""
    part_keys = {part: set(parts[part]) for part in ("train", "validation", "test") if part in parts}
    return warn_of_shared(
        (one, other, sum(key in part_keys[one] for key in parts[other]), len(parts[other]))
        for one, other in combinations(part_keys, 2)
    )


def warn_of_shared(pairs: Iterable[tuple[str, str, int, int]]) -> list[str]:
    """A warning if parts share inputs; `pairs`: a part, another part, how many of the latter's inputs the former has,
    and how many inputs the latter has."""
    shared = [
        f"the {one} part also has {count:,} of the {size:,} {other} inputs"
        for one, other, count, size in pairs
        if count
    ]
    scores = "scores on these do not measure generalisation"
    return [f"warning: {'; '.join(shared)}: {scores}"] if shared else []


def hash_rows(columns: Sequence[tuple[Any, Any]]) -> np.ndarray:
    """A hash of 64 bits of each row's lists of numbers, `(row,)` uint64. Each column is two arrays of NumPy or pyarrow:
    the numbers, one row after another, and the length of each row's list, `(row,)`."""
    hashes = np.zeros(len(columns[0][1]), dtype=np.uint64)
    for column in columns:
        numbers, lengths = (np.asarray(values).astype(np.int64) for values in column)
        ends = lengths.cumsum()
        positions = np.arange(len(numbers)) - np.repeat(ends - lengths, lengths)
        pieces = _mix_bits(_mix_bits(positions.astype(np.uint64)) + numbers.astype(np.uint64))
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), pieces.cumsum(dtype=np.uint64)])
        hashes = _mix_bits(hashes + sums[ends] - sums[ends - lengths] + lengths.astype(np.uint64))
    return hashes


def _mix_bits(numbers: np.ndarray) -> np.ndarray:
    """SplitMix64's mixture of the bits of each number."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
