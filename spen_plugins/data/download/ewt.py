"""Semantic roles of the English Web Treebank, merged from two sources.

PropBank's release has the roles of each document without its words (`*.gold_skel`: file, tree, token, [WORD], PTB tag,
parse, lemma, roleset, one column per predicate); Universal Dependencies has the words. Sentence n of a document is tree
n - 1; where the two differ in length, or in more than 40% of the PTB tags, they are not the same sentence: left out.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spen_plugins.data.sentences.conllu import Word, conllu_sentences
from spen_plugins.errors import RunError
from spen_plugins.files import save_text

RELEASE = "propbank/propbank-release/4abade0b53ce4a181e1d98b3518101c1a44d395a/data/google/ewt"
ALIKE = 0.6
_AT_ONCE = 8

Tree = list[list[str]]
"""The columns of a skeleton's tokens."""


class NotThere(RunError):
    """The origin has no such file."""


def make(root: Path, origin: str, download: Callable[[str, Path, str | None], None]) -> None:
    """Download the skeletons (1145 small files) and write the three parts below `root`.

    Downloaded files are kept until all parts are written, so that an interrupted download can resume.
    """
    target = root / "srl" / "ewt_propbank"
    skeletons = target / "skeletons"
    parts = {
        part: [(str(name), words) for name, words in conllu_sentences(root / f"pos/ewt/en_ewt-ud-{part}.conllu")]
        for part in ("train", "dev", "test")
    }
    documents = sorted({name.rpartition("-")[0] for sentences in parts.values() for name, _ in sentences})

    def fetch(document: str) -> None:
        genre, _, rest = document.partition("-")
        if not (skeletons / document).exists():
            try:
                download(f"{origin}/{RELEASE}/{genre}/00/{rest}.xml.gold_skel", skeletons / document, None)
            except NotThere:  # 29 documents are not in PropBank
                save_text("", skeletons / document)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(fetch, documents):
            pass
    roles = {document: read_skeleton((skeletons / document).read_text("utf-8")) for document in documents}
    for part, sentences in parts.items():
        save_text("".join(merge(sentences, roles)), target / f"ewt-propbank-{part}.gold_conll")
    shutil.rmtree(skeletons)


def read_skeleton(text: str) -> list[Tree]:
    """The trees of a `.gold_skel` file."""
    return [[line.split() for line in block.splitlines()] for block in text.split("\n\n") if block.strip()]


def merge(sentences: list[tuple[str, list[Word]]], roles: dict[str, list[Tree]]) -> Iterator[str]:
    """Blocks of the merged file: `# sent_id = NAME`, then index, word, tag, `*`, lemma, roleset and role columns."""
    for name, words in sentences:
        document, _, number = name.rpartition("-")
        trees = roles[document]
        tree = trees[int(number) - 1] if int(number) <= len(trees) else []
        alike = sum(word.fields["xpos"] == cells[4] for word, cells in zip(words, tree, strict=False))
        if len(tree) != len(words) or alike < ALIKE * len(words):
            continue
        pairs = enumerate(zip(words, tree, strict=True))
        rows = ("\t".join([str(i), word.fields["form"], cells[4], "*", *cells[6:]]) for i, (word, cells) in pairs)
        yield f"# sent_id = {name}\n" + "".join(f"{row}\n" for row in rows) + "\n"
