"""Writes spen-propbank's lexicon of PropBank's rolesets: the fields in use, compressed.

    python -m tools.english.make_rolesets FOLDER

FOLDER holds rolesets.jsonl, one roleset per line (id, lemma, name, aliases, roles), and its LICENSE. Equal input gives
equal bytes.
"""

from __future__ import annotations

import argparse
import json
import lzma
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[2] / "plugins/spen-propbank/spen_propbank/frames"
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 4 << 20}]


def line(roleset: Mapping[str, Any]) -> str:
    """Id, lemma, gloss, aliases and roles, separated by tabs, as `spen_propbank.lexicon` reads them."""
    aliases = " ".join(f"{form.replace(' ', '_')}/{pos}" for form, pos in roleset["aliases"])
    roles = [f"{role['role']}={_join_words(role['description'])}" for role in roleset["roles"]]
    return "\t".join([roleset["id"], roleset["lemma"], _join_words(roleset["name"]), aliases, *roles])


def _join_words(text: str | None) -> str:
    return " ".join((text or "").split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with rolesets.jsonl and LICENSE")
    source = parser.parse_args().folder
    rows = [json.loads(row) for row in (source / "rolesets.jsonl").read_text(encoding="utf-8").splitlines()]
    text = "".join(line(row) + "\n" for row in sorted(rows, key=lambda row: row["id"]))
    data = lzma.compress(text.encode(), format=lzma.FORMAT_XZ, filters=FILTERS)
    HERE.mkdir(parents=True, exist_ok=True)
    (HERE / "rolesets.tsv.xz").write_bytes(data)
    shutil.copyfile(source / "LICENSE", HERE / "LICENSE")
    print(f"{len(rows):,} rolesets, {len(data):,} bytes")


if __name__ == "__main__":
    main()
