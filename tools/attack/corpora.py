"""`spen annotate` on corpora of any format and damage, with the user's files in the output folder."""

from __future__ import annotations

import gzip
import io
import json
import random
from pathlib import Path

import inputs
from tries import Ended, Try, command
from warm import Warm, spen

TOTAL = 800
SUFFIXES = {
    "lines": ".txt", "jsonl": ".jsonl", "json": ".json", "csv": ".csv", "html": ".html", "parquet": ".parquet",
    "docbin": ".spacy",
}  # fmt: skip
OTHERS = (*SUFFIXES.values(), ".ndjson", ".tsv", ".md", "")
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "utf-7")
OPTIONS = ("--errors keep", "--documents file", "--text n", "--to docbin", "--columns pos")
"""Options, each used by 15 % of the tries."""


def content(kind: str, texts: list[str]) -> bytes:
    """The bytes of a file of texts."""
    if kind == "parquet":
        import pyarrow
        from pyarrow import parquet

        buffer = io.BytesIO()
        parquet.write_table(pyarrow.table({"text": texts, "n": list(range(len(texts)))}), buffer)
        return buffer.getvalue()
    if kind == "docbin":
        import spacy
        from spacy.tokens import DocBin

        return DocBin(docs=[spacy.blank("en")(text) for text in texts]).to_bytes()
    rows = [{"text": text, "n": n} for n, text in enumerate(texts)]
    return {
        "lines": "".join(f"{text}\n" for text in texts),
        "jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "json": json.dumps(rows, indent=1),
        "csv": "n,text\n" + "".join(f'{n},"{text}"\n' for n, text in enumerate(texts)),
        "html": "<html><body>\n" + "".join(f"<p>{text}</p>\n" for text in texts) + "</body></html>\n",
    }[kind].encode()


def make_try(warm: Warm, name: str, draw: random.Random) -> Try:
    """`spen annotate` on a file of texts, sound or damaged."""
    kind, is_sound, is_packed = draw.choice(sorted(SUFFIXES)), draw.random() < 0.3, draw.random() < 0.15
    texts = [" ".join(draw.choices(inputs.WORDS, k=5)) for _ in range(draw.choice((1, 3, 20)))]
    data, suffix = content(kind, texts), SUFFIXES[kind]
    out = draw.choice(("out", "corpus/out"))
    options = [option for option in OPTIONS if draw.random() < 0.15]
    if not is_sound:
        text = data.decode("utf-8", "replace") + "é\n"
        data = inputs.damaged(data, draw) if draw.random() < 0.7 else text.encode(draw.choice(ENCODINGS), "replace")
        suffix = draw.choice((suffix, suffix, draw.choice(OTHERS)))
        options += [f"--from {draw.choice(('text', 'jsonl', 'parquet', 'docbin'))}"] * (draw.random() < 0.2)
    if is_packed:
        data, suffix = gzip.compress(data)[: draw.choice((None, None if is_sound else 20))], suffix + ".gz"
    file = f"corpus/a{suffix}"
    words = [draw.choice((file, "corpus", "corpus/*")), "--out", out, *" ".join(options).split()]
    files = {file: data} | ({f"{out}/mine.partial": b"the user's\n"} if draw.random() < 0.3 else {})

    def act(folder: Path) -> None:
        for path, original in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(original)
        command(spen, "annotate", str(warm.runs["tags"]), *words)

    def check(folder: Path, end: Ended) -> str | None:
        for path, original in files.items():
            if not (folder / path).is_file() or (folder / path).read_bytes() != original:
                return f"{path} of the user was changed or removed"
        if end.status or "docbin" in words:
            return None
        from pyarrow import parquet

        shards = sorted((folder / out).glob("shard-*.parquet"))
        annotated = [row["text"] or "" for shard in shards for row in parquet.read_table(shard).to_pylist()]
        if any("\0" in text for text in annotated):
            return "a zero byte was annotated as a part of a text"
        if is_sound and not {"file", "n"} & {*words} and annotated != texts:
            return f"annotated as {len(annotated)} other texts: {annotated[:2]}"
        return None

    return Try(f"{name}-{kind}{suffix}", act, check)
