"""Files that a pattern, or a folder of CoNLL-2012 files or images, stands for."""

from __future__ import annotations

from collections import Counter
from glob import has_magic
from pathlib import Path

from spen_plugins.errors import DataError

CONLL_2012 = "gold_conll"
"""End of the names of CoNLL-2012 files, as in `a2e_0001.v4_gold_conll`."""
IMAGES = (".png", ".jpg", ".jpeg")


def is_pattern(path: Path) -> bool:
    """True of a path that is not there, and has a part with `*`, `?` or `[…]`."""
    return _first_pattern(path) is not None


def split_pattern(pattern: Path) -> tuple[Path, str]:
    """The folder above a pattern's first `*`, `?` or `[…]`, and the rest."""
    first = _first_pattern(pattern)
    return Path(*pattern.parts[:first]), "/".join(pattern.parts[first:])


def find_files(pattern: Path) -> list[tuple[str, Path]]:
    """The files that fit a pattern, in order, each with its path below the folder of `split_pattern`; `**` stands for
    any folders.
    """
    base, rest = split_pattern(pattern)
    files = sorted(file for file in base.glob(rest) if not file.is_dir())
    if not files:
        raise DataError(pattern, None, "no file of such a name", "files that the pattern fits")
    return [(file.relative_to(base).as_posix(), file) for file in files]


def find_conll_2012_files(folder: Path) -> list[tuple[str, Path]]:
    """The CoNLL-2012 files below a folder, by their paths there, which come with them; an empty list if it has none."""
    files = sorted(file for file in folder.rglob(f"*{CONLL_2012}") if _is_visible_file(file))
    return [(file.relative_to(folder).as_posix(), file) for file in files]


def image_files(folder: Path) -> list[tuple[str, Path]]:
    """The PNG and JPEG files in a folder, by their names, which come with them; an empty list if it has none."""
    files = [file for file in folder.iterdir() if _is_visible_file(file) and file.suffix.lower() in IMAGES]
    return sorted((file.name, file) for file in files)


def count_other_files(folder: Path) -> tuple[int, str]:
    """The number of files below a folder that are no CoNLL-2012 files, and their kinds, such as "*.gold_skel"."""
    others = [file for file in folder.rglob("*") if _is_visible_file(file) and not file.name.endswith(CONLL_2012)]
    kinds = Counter(f"*{file.suffix}" if file.suffix else file.name for file in others)
    names = sorted(kinds, key=lambda kind: (-kinds[kind], kind))
    return len(others), ", ".join(names[:4]) + ", …" * (len(names) > 4)


def _is_visible_file(file: Path) -> bool:
    return not file.name.startswith(".") and file.is_file()


def _first_pattern(path: Path) -> int | None:
    """Index of the first part of a path that is a pattern; a folder may have such a name, too."""
    magic = (i for i, part in enumerate(path.parts) if has_magic(part))
    return next((i for i in magic if not Path(*path.parts[: i + 1]).exists()), None)
