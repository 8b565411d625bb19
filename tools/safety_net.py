"""A safety net for moving code: every config and method, evaluated and trained for two epochs, in one JSON file.

    python tools/safety_net.py --out before.json                       # all rows, half an hour on two cores
    python tools/safety_net.py --out part.json --only "srl_seal "      # rows whose name has this text
    python tools/safety_net.py --out after.json --evaluated-only       # no training, some minutes
    python tools/safety_net.py compare before.json after.json --map renamed.json

A row is a config that `spen configs` lists with one value of its argument `method`, `part` or `energy`
(`srl_seal method=nce`); a config without `method` and `part` is a row itself. A row has

    evaluated  every key of the experiment with its value, as `spen-run --arguments` prints them; and their sha256
    weights    one digest of all tensors, independent of their names
    tensors    a digest of each tensor, by name
    scores     all numbers in metrics.json, by dotted name
    error      the message of a run that failed

Only configs with embedded data (`data` defaults to `sample`) are trained, with at most two epochs in each stage. The
tool uses the command line alone, so it runs on any revision. Equal digests need the same machine and packages.

`compare` prints the rows that differ and exits with 1 if there are any. The map is a JSON table, old name -> new name,
of configs and types; a key such as "task.senses" renames the type of one component only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from safetensors import deserialize

ARGUMENTS = ("method", "part", "energy")
"""Arguments of configs of which every value is a row."""

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
WORKERS = 2
EPOCHS = 2
SHOWN = 5
"""Differences that `compare` prints for each row and kind."""

Row = dict[str, Any]
_KEY = re.compile(r"  (\S+) += (?=\S)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", metavar="WORD", help="rows whose name has this text")
    parser.add_argument("--out", type=Path, default=Path("safety_net.json"))
    parser.add_argument("--evaluated-only", action="store_true", help="train nothing")
    comparing = parser.add_subparsers(dest="mode").add_parser("compare", help="print the rows of two files that differ")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument("--map", type=Path, help="JSON: old name -> new name of configs and types")
    options = parser.parse_args()
    if options.mode == "compare":
        names = json.loads(options.map.read_text()) if options.map else {}
        old, new = (json.loads(path.read_text()) for path in (options.old, options.new))
        kept = [{k: v for k, v in rows.items() if options.only in k} for rows in (renamed(old, names), new)]
        sys.exit(compare(*kept))
    measure(options.out, options.only, options.evaluated_only)


def measure(out: Path, only: str, evaluated_only: bool) -> None:
    """Write the rows to a file, again after each row."""
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(WORKERS) as pool:
        folder = Path(place)
        configs = [line.split()[0] for line in command(folder, "spen", "configs").stdout.splitlines()]
        names = [name for found in pool.map(row_names, configs, repeat(folder)) for name in found if only in name]
        waiting = {pool.submit(measure_row, name, folder, evaluated_only): name for name in names}
        rows: dict[str, Row] = {}
        for future in as_completed(waiting):
            name = waiting[future]
            rows[name], seconds = future.result()
            lines = [f"{json.dumps(key)}: {canonical(rows[key])}" for key in sorted(rows)]
            out.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
            print(f"{len(rows)}/{len(names)} {seconds:6.1f} s ", name, rows[name].get("error", ""), file=sys.stderr)


def row_names(config: str, folder: Path) -> list[str]:
    """Names of a config's rows: `srl_seal method=nce`. An error message lists the values that an argument takes."""
    found = {}
    for argument in ARGUMENTS:
        message = command(folder, "spen-run", config, f'{argument}="?"', "--quiet").stderr
        known = re.search(rf'unknown {argument} "\?"; known: (.*)', message, re.IGNORECASE)
        found[argument] = [f"{config} {argument}={value}" for value in known[1].split(", ")] if known else []
    return [*([] if found["method"] or found["part"] else [config]), *chain(*found.values())]


def measure_row(name: str, folder: Path, evaluated_only: bool) -> tuple[Row, float]:
    """A row, and its seconds."""
    start = time.perf_counter()
    listing = command(folder, "spen-run", *name.split(), "--arguments")
    if listing.returncode:
        return {"error": first_error(listing)}, time.perf_counter() - start
    evaluated = {}
    for line in listing.stdout.partition("\nkeys, ")[2].splitlines():
        if key := _KEY.match(line):
            evaluated[key[1]] = json.JSONDecoder().raw_decode(line, key.end())[0]
    row: Row = {"evaluated": evaluated, "sha256": sha256(canonical(evaluated).encode())}
    if not evaluated_only and re.search(r"^  data +'sample'", listing.stdout, re.MULTILINE):
        long = [key for key in evaluated if re.fullmatch(r"trainer\.(\w+_)?epochs", key) and evaluated[key] > EPOCHS]
        short = [f"{key}={EPOCHS}" for key in long]
        out = folder / name.replace(" ", "_")
        done = command(folder, "spen-run", *name.split(), *short, "--device", "cpu", "--quiet", "--out", str(out))
        row |= {"error": first_error(done)} if done.returncode else trained(out)
    return row, time.perf_counter() - start


def trained(run: Path) -> Row:
    """Digests of a run's weights, and its scores."""
    tensors = {
        name: sha256(f"{tensor['dtype']} {tensor['shape']} ".encode() + bytes(tensor["data"]))
        for name, tensor in deserialize((run / "weights.safetensors").read_bytes())
    }
    weights = sha256(" ".join(sorted(tensors.values())).encode())
    metrics = json.loads((run / "metrics.json").read_text())
    return {"weights": weights, "tensors": {k: v[:16] for k, v in tensors.items()}, "scores": dict(numbers(metrics))}


def numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """The numbers in nested tables by dotted name, times left out."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(inner, f"{name}.{key}".strip("."))
    elif isinstance(value, int | float) and "seconds" not in name:
        yield name, value


def command(folder: Path, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A finished command of this Python's environment."""
    path = str(Path(sys.executable).with_name(program))
    return subprocess.run([path, *words], cwd=folder, env=os.environ | ONE_THREAD, capture_output=True, text=True)


def first_error(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit status {done.returncode}"]
    return next((line for line in lines if line.startswith("error")), lines[0])


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def compare(old: dict[str, Row], new: dict[str, Row]) -> bool:
    """Print the rows that differ; True if there are any. Parts that a whole file lacks are not compared."""
    kinds = [{part for row in rows.values() for part in row} | {"error"} for rows in (old, new)]
    parts = [part for part in ("evaluated", "weights", "tensors", "scores", "error") if part in kinds[0] & kinds[1]]
    differing = 0
    for name in sorted(old.keys() | new.keys()):
        if name not in old or name not in new:
            lines = [f"only in the {'old' if name in old else 'new'} file"]
        else:
            lines = [line for part in parts for line in differences(part, old[name].get(part), new[name].get(part))]
        if lines:
            differing += 1
            print(name, *lines, sep="\n    ")
    print(f"{differing} of {len(old.keys() | new.keys())} rows differ in {', '.join(parts)}")
    return differing > 0


def differences(part: str, old: Any, new: Any) -> list[str]:
    """The values of a part that differ, by name if it is a table."""
    tables = [found if isinstance(found, dict) else {"": found} if found else {} for found in (old, new)]
    old, new = ({f" {key}".rstrip(): canonical(value) for key, value in table.items()} for table in tables)
    keys = [key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)]
    lines = [f"{part}{key}: {old.get(key, 'absent')} -> {new.get(key, 'absent')}" for key in keys[:SHOWN]]
    return lines + [f"{part}: {len(keys) - SHOWN} more"] * (len(keys) > SHOWN)


def renamed(rows: dict[str, Row], names: dict[str, str]) -> dict[str, Row]:
    """Rows with new names of configs and types."""
    found = {}
    for name, row in rows.items():
        config, *argument = name.split()
        evaluated = dict(row.get("evaluated", {}))
        for key in [key for key in evaluated if key.endswith(".type")]:
            old = evaluated[key]
            evaluated[key] = names.get(f"{key.removesuffix('type')}{old}", names.get(old, old))
        found[" ".join([names.get(config, config), *argument])] = {**row, "evaluated": evaluated}
    return found


if __name__ == "__main__":
    main()
