"""Sizes of the code base: lines, files in a folder, functions, and the way that a run takes.

    python tools/house.py
    python tools/house.py --against main      # a column for that revision of Git, too

The core is spen_plugins, the plugins are below plugins/. Empty lines count. A function's length is from `def` to its
last line. Its complexity is 1 plus the number of branches, loops, exception handlers, cases of a match, `and` and `or`,
comprehensions and their conditions; functions inside it are counted separately. Its parameters exclude `self`, `cls`,
`*args` and `**kwargs`. Lengths, complexities and parameters are those of core and plugins.

The way of a run: `spen-run srl_seal` is traced from `main` until the loop trains its first batch (`run_batch`). Each
call in one of the packages cli, report (earlier: research), runs, config, registry and loop, from top to bottom, passes
through the function's module. If the next such call is in a package further up, the run climbs back up.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("cli", "report", "research", "runs", "config", "registry", "loop")
COMPLEX = 20
PARAMETERS = 8
RUN = ("spen-run", "srl_seal", "trainer.epochs=1", "--device", "cpu", "--quiet", "--out")

Definition = ast.FunctionDef | ast.AsyncFunctionDef
_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--against", metavar="REVISION", help="also measure this revision of Git")
    parser.add_argument("--trace", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trace:
        trace(options.trace)
    checkout = House(ROOT)
    columns = {"now": checkout.measures()}
    if options.against:
        with tempfile.TemporaryDirectory() as folder:
            tree = subprocess.run(["git", "archive", options.against], cwd=ROOT, check=True, stdout=subprocess.PIPE)
            with tarfile.open(fileobj=io.BytesIO(tree.stdout)) as archive:
                archive.extractall(folder, filter="data")
            columns = {options.against: House(Path(folder).resolve()).measures(), **columns}
    rows = [["", *columns], *([name, *(values[name] for values in columns.values())] for name in columns["now"])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * width for width in widths])
    for row in rows:
        print("|", " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)), "|")
    for title, functions in (
        (f"complexity of {COMPLEX} or more", [(f.complexity, f) for f in checkout.complex_functions()]),
        (f"{PARAMETERS} parameters or more", [(f.parameters, f) for f in checkout.long_signatures()]),
    ):
        print(f"\nNow of {title}:")
        for number, function in sorted(functions, key=lambda pair: -pair[0]):
            print(f"{number:4}  {function.path}:{function.node.lineno} {function.node.name}")


@dataclass(frozen=True)
class Function:
    """A function in a file."""

    path: str
    node: Definition

    @property
    def lines(self) -> int:
        return (self.node.end_lineno or 0) - self.node.lineno + 1

    @property
    def complexity(self) -> int:
        return 1 + sum(decisions(child) for child in ast.iter_child_nodes(self.node))

    @property
    def parameters(self) -> int:
        arguments = self.node.args
        names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        return len(names) - (names[:1] in (["self"], ["cls"]))

    @property
    def is_command(self) -> bool:
        """True for commands of typer, whose parameters are the command line's options."""
        calls = [decorator.func for decorator in self.node.decorator_list if isinstance(decorator, ast.Call)]
        return any(isinstance(call, ast.Attribute) and call.attr in ("command", "callback") for call in calls)


def decisions(node: ast.AST) -> int:
    """Decisions in a node, without those of functions and classes inside it."""
    if isinstance(node, Definition | ast.ClassDef):
        return 0
    if isinstance(node, ast.BoolOp):
        count = len(node.values) - 1
    elif isinstance(node, ast.comprehension):
        count = 1 + len(node.ifs)
    else:
        count = int(isinstance(node, _BRANCHES))
    return count + sum(decisions(child) for child in ast.iter_child_nodes(node))


class House:
    """A checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def files(self, *folders: str) -> Iterator[Path]:
        """Python files below folders, without those in build folders."""
        for folder in folders:
            for path in sorted((self.root / folder).rglob("*.py")):
                if "build" not in path.relative_to(self.root).parts:
                    yield path

    def lines(self, *folders: str) -> int:
        return sum(count_lines(path) for path in self.files(*folders))

    @cached_property
    def functions(self) -> list[Function]:
        """All functions of core and plugins."""
        return [
            Function(self.name(path), node)
            for path in self.files("spen_plugins", "plugins")
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, Definition)
        ]

    def complex_functions(self) -> list[Function]:
        return [function for function in self.functions if function.complexity >= COMPLEX]

    def long_signatures(self) -> list[Function]:
        return [f for f in self.functions if f.parameters >= PARAMETERS and not f.is_command]

    def measures(self) -> dict[str, str]:
        """The value of each measure, as text."""
        files = self.files("spen_plugins", "plugins", "tools", "tests")
        [(folder, count)] = Counter(path.parent for path in files).most_common(1)
        longest = max(self.files("spen_plugins", "plugins"), key=count_lines)
        bases = re.compile(r"\(sp\.\w*Task\b")
        [task] = [path for path in self.files("docs/tutorial") if bases.search(path.read_text(encoding="utf-8"))]
        defined = sum(isinstance(node, Definition) for node in ast.walk(ast.parse(task.read_text(encoding="utf-8"))))
        return {
            "lines of the core": f"{self.lines('spen_plugins'):,}",
            "lines of core and plugins": f"{self.lines('spen_plugins', 'plugins'):,}",
            "lines of tests": f"{self.lines('tests'):,}",
            "most files in one folder": f"{count} ({self.name(folder)})",
            "longest module": f"{count_lines(longest)} ({self.name(longest)})",
            "median lines of a function": f"{median(function.lines for function in self.functions):g}",
            "modules that spen-run passes through; climbs back up": self.way_of_a_run(),
            "lines of the tutorial's task; functions": f"{count_lines(task)}; {defined}",
            f"functions of complexity {COMPLEX} or more": str(len(self.complex_functions())),
            f"functions with {PARAMETERS} parameters or more": str(len(self.long_signatures())),
        }

    def way_of_a_run(self) -> str:
        """The trace of a run in a process of its own that imports this checkout."""
        path = os.pathsep.join(map(str, [self.root, *sorted(self.root.glob("plugins/spen-*"))]))
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(Path(__file__).resolve()), "--trace", f"{folder}/run"]
            environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
            process = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        try:
            result = json.loads(process.stdout)
        except ValueError:
            raise SystemExit(f"the trace of {self.root} failed:\n{process.stderr}") from None
        if not Path(result["file"]).is_relative_to(self.root):
            raise SystemExit(f"the trace imported {result['file']}; expected files of {self.root}")
        return f"{result['modules']}; {result['climbs']}"

    def name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def count_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def trace(out: str) -> None:
    """Start a run, print its way as JSON at its first batch, and end the process."""
    import spen_plugins
    from spen_plugins.cli.run import main as spen_run

    modules: set[str] = set()
    layers: list[int] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        names = frame.f_globals.get("__name__", "").split(".")
        if event != "call" or names[0] != "spen_plugins" or not {*LAYERS} & {*names[1:2]}:
            return
        if frame.f_code.co_name == "<module>":
            return
        modules.add(".".join(names))
        layers.append(LAYERS.index(names[1]))
        if names[1] == "loop" and frame.f_code.co_name == "run_batch":
            climbs = sum(after < before for before, after in pairwise(layers))
            print(json.dumps({"modules": len(modules), "climbs": climbs, "file": spen_plugins.__file__}), flush=True)
            os._exit(0)

    sys.argv = [*RUN, out]
    sys.setprofile(note)
    spen_run()


if __name__ == "__main__":
    main()
