"""Small inputs for every config, generated from a seed, and damage to values, lines and files."""

from __future__ import annotations

import json
import random
from pathlib import Path

WORDS = ["Anna", "gave", "Bob", "a", "book", "in", "Paris", "yesterday", "the", "old", "train", "left", "two", "cities"]
LABELS = ["red", "green", "blue", "round"]

HOSTILE = [
    "0", "-1", "1", "2", "1e999", "-1e999", "NaN", "Infinity", "1e-320", "0.5", "1.5", "100000000000000000000",
    "2147483648", "true", "false", "null", '""', '"nonsense"', "nonsense", "[]", "[0]", "[[]]", "{}",
    '{"type":"nonsense"}', '{"type":"mlp"}', '{"type":"crf"}', '{"type":"bilstm"}', '{"type":"seal.nce"}',
    "[1000000000]", '"/dev/null"', '"/dev/zero"', '"."', '"../.."', '"\\u0000"', '"é\\u202e"', "'", '"', "{", "1,2",
    "data:nothing",
]  # fmt: skip
"""Values for a key, as on the command line."""

REFUSED = {"1e999", "-1e999", "NaN", "Infinity"}
"""Values that no key accepts."""

PIECES = [
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\r\n", b"\n\n", b"\t", b" ", b",", b'"', b"{", b"}", b"[", b"#",
    b"-", b"=", b"nan", b"inf", b"1e999", b"-1", b"99999999999999999999", b"0", b"B-", b"I-X", b"_", b"*", b"(", b")",
    b"\xe2\x80\xae", "é".encode(), "🙂".encode(), b"<b>", b"x" * 100_000, b"\n" * 1000, b"(" * 5000, b"{" * 5000,
]  # fmt: skip
"""Bytes to put into a file."""


def tagged(seed: int, rows: int, entities: bool) -> str:
    """Sentences as columns of a word and its tag."""
    draw, sentences = random.Random(seed), []
    for _ in range(rows):
        words = draw.choices(WORDS, k=draw.randint(1, 8))
        tags = [("B-PER" if w in ("Anna", "Bob") else "B-LOC" if w == "Paris" else "O") for w in words]
        if not entities:
            tags = ["NOUN" if w[0].isupper() or w in ("book", "train", "cities") else "VERB" for w in words]
        sentences.append("\n".join(f"{w}\t{t}" for w, t in zip(words, tags, strict=True)))
    return "\n\n".join(sentences) + "\n"


def lists(columns: str) -> list[list[list[str]]]:
    """The words, and the tags, of each of these sentences."""
    rows = [[line.split("\t") for line in block.splitlines()] for block in columns.strip().split("\n\n")]
    return [[[cells[i] for cells in row] for row in rows] for i in range(2)]


def roles(seed: int, rows: int) -> str:
    """JSON lines of words with a predicate and its roles."""
    draw, lines = random.Random(seed), []
    for _ in range(rows):
        person, thing = draw.choice(["Anna", "Bob"]), draw.choice(["book", "train"])
        words = [person, draw.choice(["gave", "left"]), "a", thing]
        lines.append(json.dumps({"words": words, "predicate": 1, "tags": ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"]}))
    return "\n".join(lines) + "\n"


def label_table(seed: int, rows: int) -> str:
    """CSV of four numbers and the labels they decide."""
    draw = random.Random(seed)
    lines = [",".join([f"x{i}" for i in range(4)] + [f"label_{name}" for name in LABELS])]
    for _ in range(rows):
        x = [draw.gauss(0, 1) for _ in range(4)]
        lines.append(",".join([f"{v:.3f}" for v in x] + [str(int(v > 0)) for v in x]))
    return "\n".join(lines) + "\n"


def texts(seed: int, rows: int) -> str:
    """JSON lines of a text and its labels."""
    draw, lines = random.Random(seed), []
    for _ in range(rows):
        words = draw.choices([*WORDS, *LABELS], k=6)
        lines.append(json.dumps({"text": " ".join(words), "labels": sorted(set(words) & set(LABELS)) or ["none"]}))
    return "\n".join(lines) + "\n"


def citations(seed: int, rows: int) -> str:
    """Citations with their fields tagged inline, one per line."""
    draw = random.Random(seed)
    return "".join(
        f"<author> {draw.choice('ABCD')}. {draw.choice(WORDS)} . </author> "
        f"<title> {' '.join(draw.choices(WORDS, k=4))} . </title> <date> {draw.randint(1980, 2020)} . </date>\n"
        for _ in range(rows)
    )


def files(folder: Path) -> dict[str, list[str]]:
    """Writes each config's files in `folder`, and returns for each the arguments of a run of about a second."""
    folder.mkdir(parents=True, exist_ok=True)
    formats = {
        "labels": ("csv", label_table),
        "texts": ("jsonl", texts),
        "tags": ("conll", lambda seed, rows: tagged(seed, rows, False)),
        "names": ("conll", lambda seed, rows: tagged(seed, rows, True)),
        "roles": ("jsonl", roles),
        "citations": ("txt", citations),
    }
    runs = {}
    for name, (suffix, write) in formats.items():
        arguments = []
        for seed, (part, rows) in enumerate((("data", 24), ("validation", 8), ("test", 8))):
            path = folder / f"{name}.{part}.{suffix}"
            path.write_text(write(seed, rows), encoding="utf-8")
            arguments.append(f"{part}={path}")
        runs[name] = [*arguments, "trainer.epochs=1", "trainer.epoch_updates=1"]
    runs["labels"].append("task.labels=label_*")
    for name in ("tags", "names"):
        runs[name].append("trainer.pretrain_epochs=1")
    runs["citations"] += ["labelled=5", "method=alternating_cd", "trainer.net_epochs=0"]
    return runs


def damaged(data: bytes, draw: random.Random) -> bytes:
    """The bytes with one to three damages."""
    for _ in range(draw.randint(1, 3)):
        data = draw.choice(_DAMAGES)(data, draw)
    return data


def _cut(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _flip(data: bytes, draw: random.Random) -> bytes:
    if not data:
        return data
    index = draw.randrange(len(data))
    return data[:index] + bytes([data[index] ^ (1 << draw.randrange(8))]) + data[index + 1 :]


def _insert(data: bytes, draw: random.Random) -> bytes:
    index = draw.randrange(len(data) + 1)
    return data[:index] + draw.choice(PIECES) + data[index:]


def _overwrite(data: bytes, draw: random.Random) -> bytes:
    index, piece = draw.randrange(len(data) + 1), draw.choice(PIECES)
    return data[:index] + piece + data[index + len(piece) :]


def _change_lines(data: bytes, draw: random.Random) -> bytes:
    """Drops, repeats or moves a line."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    line = lines.pop(draw.randrange(len(lines)))
    for _ in range(draw.choice((0, 1, 2))):
        lines.insert(draw.randrange(len(lines) + 1), line)
    return b"".join(lines)


def _change_cells(data: bytes, draw: random.Random) -> bytes:
    """Drops, repeats or moves a cell of a line."""
    lines = data.split(b"\n")
    index = draw.randrange(len(lines))
    separator = draw.choice((b"\t", b",", b" ", b":"))
    cells = lines[index].split(separator)
    cell = cells.pop(draw.randrange(len(cells)))
    for _ in range(draw.choice((0, 1, 2))):
        cells.insert(draw.randrange(len(cells) + 1), cell)
    lines[index] = separator.join(cells)
    return b"\n".join(lines)


_DAMAGES = (_cut, _flip, _insert, _overwrite, _change_lines, _change_cells)
