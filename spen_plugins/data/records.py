"""Records of CSV files, with quoted cells and any of the usual separators, and of JSON lines.

A spreadsheet takes a text that begins with = + - @ or a tab for a formula. Unless it is a number, such a text is
written with an apostrophe before it, which is removed when a file is read.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, TypeVar

from spen_plugins.data.formats import Format, Head
from spen_plugins.data.text import UTF_8, is_number, open_text, read_lines, shorten
from spen_plugins.errors import DataError
from spen_plugins.files import from_json

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SAMPLE_RECORDS = 50  # records that determine the separator
_LONGEST_CELL = 1 << 26  # maximum length of a cell: above the library's default, which a long text may exceed


_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def written(records: Iterable[Sequence[Any]]) -> str:
    """Records as CSV, with cells separated by commas; None is an empty cell."""
    file = StringIO()
    csv.writer(file, lineterminator="\n").writerows(map(_guard, cells) for cells in records)
    return file.getvalue()


def _guard(cell: Any) -> Any:
    """The cell, changed if a spreadsheet would take it for a formula, or if `_unguard` would change it."""
    if isinstance(cell, str) and _FORMULA.match(cell) and not is_number(cell):
        return f"'{cell}"
    return cell


def _unguard(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell


def find_separator(head: Head) -> str | None:
    """The separator that divides the first records into the most cells; separators that divide all of them into equally
    many cells are preferred. None if no separator divides the first record."""
    best, best_separator = (False, 1), None
    for separator in () if head.is_json_list else SEPARATORS:
        try:
            records = list(
                csv.reader(StringIO("\n".join(head.lines[:_SAMPLE_RECORDS]), newline=""), delimiter=separator)
            )
        except csv.Error:
            continue
        widths = [len(record) for record in records if record]
        if widths and widths[0] > 1 and (len(set(widths[:-1] or widths)) == 1, widths[0]) > best:
            best, best_separator = (len(set(widths[:-1] or widths)) == 1, widths[0]), separator
    return best_separator


CSV = Format(
    "CSV",
    'cells separated by commas, semicolons, tabs or bars, quoted by " if they contain one',
    lambda head: find_separator(head) is not None,
)


def records(path: str | Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The number of the first line of each record, and its cells; blank lines are skipped."""
    csv.field_size_limit(_LONGEST_CELL)
    with TextIOWrapper(open_text(path), encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=separator, strict=True)
        width, start = None, 1
        try:
            for cells in reader:
                if cells:
                    width = width or len(cells)
                    if len(cells) != width:
                        problem = f"{len(cells)} cell{'s' * (len(cells) != 1)} in {shorten(separator.join(cells))}"
                        expected = f"{width}, as in the first line, separated by {SEPARATORS[separator]}"
                        raise DataError(path, start, problem, expected)
                    yield start, [_unguard(cell) for cell in cells]
                start = reader.line_num + 1
        except UnicodeDecodeError:
            read_lines(path)  # raises an error with the line
            raise
        except csv.Error as error:
            expected = 'cells quoted by ", with quotes inside doubled'
            raise DataError(path, start, f"a record that can't be read ({error})", expected) from None


def read_header(head: Head) -> list[str]:
    """The cells of a head's first record, without surrounding blanks; an empty list if no separator divides it."""
    separator = find_separator(head)
    cells = next(csv.reader(head.filled[:1], delimiter=separator)) if separator else []
    return [cell.strip() for cell in cells]


_NAME = re.compile(r"[^\W\d]\w*([ ._/-]\w+){0,2}")  # is_joy, Review Text


def looks_like_header(names: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """True if the records below a first record without usual names show that it is a header.

    Its cells are different names that don't recur in their columns, and there is a column of numbers, or of texts most
    of which have more words than its name. The first cell may be empty, as above a table's index.
    """
    columns = list(zip(*below, strict=False))
    filled = names[1:] if not names[0] else names
    if not (columns and filled and all(map(_NAME.fullmatch, filled)) and len({*filled}) == len(filled)):
        return False
    if any(name and name in map(str.strip, cells) for name, cells in zip(names, columns, strict=False)):
        return False
    return any(_differs(name, cells) for name, cells in zip(names, columns, strict=False))


def _differs(name: str, cells: Sequence[str]) -> bool:
    """True if cells are numbers, or most have more words than the name above them."""
    filled = [cell for cell in cells if cell.strip()]
    longer_count = sum(len(cell.split()) > len(name.split()) for cell in filled)
    return bool(filled) and (all(map(is_number, filled)) or (name != "" and 2 * longer_count > len(filled)))


T = TypeVar("T")


def read_json_lines(path: Path, form: str, make: Callable[[Any], T]) -> Iterator[tuple[int, T]]:
    """Number and content of each line that is not blank, one at a time.

    `form` is an example of a line, for messages; `make` converts a line's value to its content, and the file and the
    line are added to its `DataError`.
    """
    is_empty = True
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            is_empty = False
            try:
                value = from_json(line)
            except UnicodeDecodeError as error:
                raise DataError(path, number, f"byte 0x{line[error.start]:02x}, which is not UTF-8", UTF_8) from None
            except ValueError as error:
                text = shorten(line[:1000].decode("utf-8", "replace").strip())
                raise DataError(path, number, f"{text}, not JSON ({error})", f"a line such as {form}") from None
            try:
                yield number, make(value)
            except DataError as error:
                raise DataError(path, number, error.found, error.expected) from None
    if is_empty:
        raise DataError(path, None, "an empty file", f"lines such as {form}")
