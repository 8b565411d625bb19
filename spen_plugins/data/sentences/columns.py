r"""Tagged sentences in columns, read and written: one token per line, a blank line between sentences.

Cells are separated by tabs if a line holds one, otherwise by blanks:

    @paulwalk\tO
    Empire\tB-location
    State\tI-location

Only a line of nothing but white space ends a sentence: in `\tO` the word is empty, but still a word (the Broad
Twitter Corpus has such lines). CoNLL-2003's `-DOCSTART-` lines are skipped. A line before a sentence's first token that
starts with `#` is a comment if it has another number of cells than the file's rows, or another separator (`#` may be a
word). If cells are separated by blanks, a line that reads `# key = value` is a comment, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spen_plugins.data.sentences.srl import SETTING, Block, Sentence
from spen_plugins.data.text import read_lines, shorten
from spen_plugins.errors import DataError

_DOCUMENT = "-DOCSTART-"
_WORD_NAMES = {"word", "words", "token", "tokens", "form"}
_TAG_NAMES = {"tag", "tags", "label", "labels", "pos", "pos_tag", "upos", "xpos", "chunk", "ner", "ner_tag", "entity"}
"""Names of columns in a header, in lower case."""


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """Words with one tag each, and further columns.

    Args:
        words: the words as in the file; may be empty strings.
        tags: one tag per word; None if unknown.
        columns: name of each extra column -> one value per word.
        line: number of the sentence's first line in its file, from 1; None without a file.
        lines: line number of each word, if not consecutive.
        weight: weight of its loss in training.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    line: int | None = None
    lines: tuple[int, ...] | None = None
    weight: float = 1.0

    def line_of(self, word: int) -> int | None:
        """Line number of a word, for an error message."""
        if self.lines is not None:
            return self.lines[word]
        return None if self.line is None else self.line + word


def predicate_sentences(sentences: Iterable[Sentence]) -> list[TaggedSentence]:
    """Sentences with semantic roles as tagged sentences: B-V at each predicate, O elsewhere."""
    pairs = [(sentence.words, {p.predicate for p in sentence.propositions}) for sentence in sentences]
    return [
        TaggedSentence(words, tuple("B-V" if i in predicates else "O" for i in range(len(words))))
        for words, predicates in pairs
    ]


def read_columns(
    path: Path,
    words: int = 0,
    tags: int = -1,
    columns: Mapping[str, int] | None = None,
    gold: bool = True,
    plain: bool = False,
) -> list[TaggedSentence]:
    """All sentences of a file; columns are counted from 0, negative ones from the end.

    Without gold, the tags' column may be missing or empty. With `plain`, tags of spans are an error if another column
    may have plain tags.
    """
    blocks = _split_rows(read_lines(path))
    if not blocks:
        raise DataError(path, None, "comments or blank lines only", "sentences, one token per line")
    width = _find_width(path, blocks)
    column_places = {name: _check_place(path, blocks[0].first, width, name, n) for name, n in (columns or {}).items()}
    word = _check_place(path, blocks[0].first, width, "words", words)
    places = {**column_places, "words": word}
    tag = tags + width if tags < 0 else tags
    owner = next((name for name, place in places.items() if place == tag), None)
    if gold:
        if owner is not None:
            problem = f"{width} column{'s' * (width > 1)}, so column {tags} for tags is also the column of {owner}"
            expected = "a separate column for tags; set task.tags if it is another column"
            raise DataError(path, blocks[0].first, problem, expected)
        _check_place(path, blocks[0].first, width, "tags", tags)
    has_tags = owner is None and 0 <= tag < width
    _check_header(path, blocks[0], tag if has_tags else -1)
    if plain and has_tags:
        _check_plain(path, blocks, tag, places.values())
    return [
        TaggedSentence(
            tuple(row[word] for row in block.rows),
            _read_tags(path, block, tag, gold) if has_tags else None,
            {name: tuple(row[place].strip() for row in block.rows) for name, place in column_places.items()},
            block.first,
        )
        for block in blocks
    ]


def _split_rows(lines: Sequence[str]) -> list[Block]:
    has_tabs, width = _find_usual_row(lines)
    blocks: list[Block] = []
    rows: list[list[str]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith(_DOCUMENT):
            rows = []
        elif rows or line[0] != "#" or not _is_comment(line, has_tabs, width):
            if not rows:
                blocks.append(Block(number, rows))
            rows.append(_split_cells(line))
    return blocks


def _find_usual_row(lines: Sequence[str]) -> tuple[bool, int]:
    """True if tabs separate cells, and the most frequent number of cells; by lines that can't be comments, if any."""
    tokens = [line for line in lines if line.strip() and not line.startswith(_DOCUMENT) and not SETTING.match(line)]
    certain = [line for line in tokens if line[0] != "#"] or tokens
    has_tabs = any("\t" in line for line in certain)
    return has_tabs, Counter(len(_split_cells(line)) for line in certain).most_common(1)[0][0] if certain else 0


def _split_cells(line: str) -> list[str]:
    # Only blanks separate: a no-break space may be part of a word.
    return line.split("\t") if "\t" in line else [cell for cell in line.split(" ") if cell]


def _is_comment(line: str, has_tabs: bool, width: int) -> bool:
    if ("\t" in line) != has_tabs or len(_split_cells(line)) != width:
        return True
    return not has_tabs and SETTING.match(line) is not None


def _find_width(path: Path, blocks: Sequence[Block]) -> int:
    (width, _), *others = Counter(len(row) for block in blocks for row in block.rows).most_common()
    if others:
        number, row = next((n, row) for b in blocks for n, row in enumerate(b.rows, b.first) if len(row) != width)
        problem = f"{len(row)} column{'s' * (len(row) != 1)}"
        raise DataError(path, number, problem, f"{width}, as in most lines, separated by tabs or blanks")
    return width


def _check_place(path: Path, line: int, width: int, name: str, column: int) -> int:
    if not -width <= column < width:
        problem = f"{width} column{'s' * (width > 1)}, so no column {column} for {name}"
        key = name if name in ("words", "tags") else f"columns.{name}"
        raise DataError(path, line, problem, f"task.{key} from {-width} to {width - 1}")
    return column % width


def _check_header(path: Path, block: Block, tag: int) -> None:
    names = [cell.strip().lower() for cell in block.rows[0]]
    if names[tag] in _TAG_NAMES and _WORD_NAMES & set(names):
        raise DataError(
            path, block.first, f"the header {shorten(' '.join(block.rows[0]))}", "a token; remove that line"
        )


def _check_plain(path: Path, blocks: Sequence[Block], tag: int, used: Collection[int]) -> None:
    """Raise DataError if column `tag` has tags of spans, and a column that is not used has other tags."""

    def list_values(column: int) -> list[str]:
        return sorted({row[column].strip() for block in blocks for row in block.rows})

    def are_spans(tags: Sequence[str]) -> bool:
        return all(value == "O" or value[:2] in ("B-", "I-", "E-", "S-", "L-", "U-") for value in tags)

    values = list_values(tag)
    if values == ["O"] or not are_spans(values):
        return
    for column in range(len(blocks[0].rows[0])):
        if column not in (tag, *used) and not are_spans(other_values := list_values(column)):
            tags, plain = ", ".join(values[:3]), ", ".join(other_values[:3])
            expected = f"plain tags; set their column, such as task.tags={column} ({plain}), or task.scheme for spans"
            raise DataError(path, blocks[0].first, f"tags of spans in column {tag} ({tags})", expected)


def _read_tags(path: Path, block: Block, place: int, gold: bool) -> tuple[str, ...] | None:
    tags = tuple(row[place].strip() for row in block.rows)
    if all(tags):
        return tags
    if not gold and not any(tags):
        return None
    raise DataError(path, block.first + tags.index(""), "an empty tag", f"a tag for every token in column {place}")


def cell(text: str) -> str:
    """A word as a cell of columns."""
    if any(mark in text for mark in "\t\n\r"):
        raise DataError("output", None, f"the word {text!r}", "words without tabs and line breaks; jsonl allows them")
    return text


def write_columns(
    sentences: Sequence[TaggedSentence],
    words: int = 0,
    tags: int = -1,
    further_columns: Mapping[str, int] | None = None,
) -> str:
    """One token per line, cells separated by tabs; as few columns as the numbers allow (negative ones count from the
    end), with `_` in the other columns."""
    places = [words, tags, *(further_columns or {}).values()]
    if len({*places}) < len(places):
        problem = f"one column for several of {', '.join(['words', 'tags', *(further_columns or {})])}"
        raise DataError("output", None, problem, "a column for each; name them (words=, tags=)")
    min_width = max(place + 1 if place >= 0 else -place for place in places)
    width = next(
        n for n in range(min_width, min_width + len(places) + 1) if len({place % n for place in places}) == len(places)
    )
    lines = []
    for sentence in sentences:
        for i, (word, tag) in enumerate(zip(sentence.words, sentence.tags or (), strict=True)):
            cells = ["_"] * width
            cells[words % width], cells[tags % width] = cell(word), cell(tag)
            for name, place in (further_columns or {}).items():
                cells[place % width] = cell(sentence.columns[name][i])
            lines.append("\t".join(cells))
        lines.append("")
    return "".join(line + "\n" for line in lines)


def insert_column(path: Path, words: int, values: Iterable[Sequence[str]]) -> str:
    """A file's rows with one more column, right after the words; cells are separated by tabs, comments removed."""
    lines = []
    for block, sentence_values in zip(_split_rows(read_lines(path)), values, strict=True):
        for row, value in zip(block.rows, sentence_values, strict=True):
            word = words % len(row)
            cells = [text if place == word else text.strip() for place, text in enumerate(row)]
            cells.insert(word + 1, value)
            lines.append("\t".join(map(cell, cells)))
        lines.append("")
    return "".join(line + "\n" for line in lines)
