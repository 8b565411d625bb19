"""The process that evaluates a jsonnet expression, so that Ctrl-C ends it: rjsonnet holds Python's lock while it works.

A bare interpreter runs this script, which imports no package besides rjsonnet, so that it starts in 30 ms. Standard
input is a request as JSON, standard output the value; the exit status `REFUSED` goes with jsonnet's own message.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

REFUSED = 3


def main() -> None:
    """Answer the request of `jsonnet._asked`."""
    request = json.load(sys.stdin)
    sys.path += request["packages"]
    import rjsonnet

    callback = importer(**request["imports"])
    try:
        value = rjsonnet.evaluate_snippet(import_callback=callback, **request["expression"])
    except RuntimeError as error:
        print(error, file=sys.stderr)
        sys.exit(REFUSED)
    sys.stdout.write(value)


def importer(itself: str, path: str, text: str, shipped: str) -> Callable[[str, str], tuple[str, str]]:
    """The import callback of rjsonnet: the folder of the file that imports, and the name -> the file and its content.

    Files are below the config's folder, or ship with the package; links lead nowhere else.

    Args:
        itself: the name by which the config is imported.
        path, text: the config's file and its content.
        shipped: the folder of the shipped configs.
    """
    below = Path(path).parent.resolve()

    def found(folder: str, name: str) -> tuple[str, str]:
        if name == itself:
            return path, text
        place = next((place for place in (Path(folder, name), Path(shipped, name)) if place.is_file()), None)
        if place is None:
            near = nearest(Path(folder).resolve())
            raise ValueError(f"no file {name} to import, neither in {near} nor among those that ship")
        if not any(place.resolve().is_relative_to(root) for root in (below, shipped)):
            wanted = f"one below the config's folder, {below}, or one that ships"
            raise ValueError(f"found an import of {place.resolve()}; expected {wanted}")
        try:
            return str(place), place.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{place}: not UTF-8 text ({error.reason} at byte {error.start})") from error

    return found


def nearest(path: Path) -> str:
    """A path as a user would type it: relative to the working folder if below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


if __name__ == "__main__":
    main()
