"""`spen data get`: download from the origin, check, store in the cache; merge roles of the English Web Treebank.

PropBank's release has the roles of each document without its words (`*.gold_skel`: file, tree, token, [WORD], PTB tag,
parse, lemma, roleset, one column per predicate); Universal Dependencies has the words. Sentence n of a document is tree
n - 1. If the two differ in length, or in more than 40% of the PTB tags, they are not the same sentence and are skipped.
"""

from __future__ import annotations

import shutil
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path

from spen_plugins.data.catalogue import CATALOGUE, DataSet, File, cache_folder
from spen_plugins.data.parts.split import split_file
from spen_plugins.data.sentences.conllu import Word, conllu_sentences
from spen_plugins.data.text import sha256
from spen_plugins.errors import ConfigError, RunError, did_you_mean
from spen_plugins.files import save_text, writing
from spen_plugins.files.lock import locked

ORIGIN = "https://raw.githubusercontent.com"
_TIMEOUT = 60  # seconds without a byte


def get(
    name: str,
    yes: bool = False,
    ask: Callable[[str], bool] | None = None,
    base_url: str | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Path:
    """Download a data set into the cache, and make its derived files; existing files with the right checksum are kept.

    Returns its folder. The licence is accepted by `yes`, or by `ask`, which is called with a question that names it.
    `say` is called with a sentence before waiting for another process that downloads the same data set.
    """
    if name not in CATALOGUE:
        raise ConfigError(f"Unknown data set {name!r}.{did_you_mean(name, CATALOGUE)} Known: {', '.join(CATALOGUE)}.")
    entry = CATALOGUE[name]
    if entry.why_not:
        raise ConfigError(f"{name} can't be downloaded: {entry.why_not}.")
    root = cache_folder()
    if any(_find_missing(entry, root)):
        _accept_licence(entry, yes, ask)
        with locked(root / entry.folder, say):
            missing, missing_derived = _find_missing(entry, root)  # another process may have made some
            for file in missing:
                download(f"{base_url or ORIGIN}/{file.origin}", root / file.path, file.sha256)
            if missing_derived:
                _make_derived(entry, root, missing_derived, base_url or ORIGIN)
    return root / entry.folder


def _find_missing(entry: DataSet, root: Path) -> tuple[list[File], list[tuple[Path, str]]]:
    missing = [file for file in entry.files if not _has_checksum(root / file.path, file.sha256)]
    derived = [(root / path, checksum) for path, checksum in entry.made if not _has_checksum(root / path, checksum)]
    return missing, derived


def _make_derived(entry: DataSet, root: Path, missing: list[tuple[Path, str]], origin: str) -> None:
    if entry.name == "ewt":
        _make_roles(root, origin)
    else:
        split_file(root / entry.files[0].path, missing[0][0], together=False)
    for path, checksum in missing:
        if not _has_checksum(path, checksum):
            path.unlink(missing_ok=True)
            raise RunError(
                f"{entry.name}: {path.name} as generated here differs from the published file (sha256 "
                f"{checksum[:12]}...): this NumPy draws other random numbers, or the origin has changed. It was deleted"
            )


def _has_checksum(path: Path, checksum: str) -> bool:
    return path.is_file() and sha256(path) == checksum


def _accept_licence(entry: DataSet, yes: bool, ask: Callable[[str], bool] | None) -> None:
    if yes:
        return
    if ask is None:
        raise ConfigError(f"{entry.name}: licence: {entry.licence}. Accept it with --yes.")
    if not ask(f"{entry.name}: {entry.about}. Licence: {entry.licence}. Download?"):
        raise ConfigError(f"{entry.name}: not downloaded, because its licence was not accepted")


def download(url: str, target: Path, checksum: str | None) -> None:
    """Download to a temporary file, check it, then rename it, so that the target is always complete."""
    with writing(target, parents=True) as part:
        with part.open("wb") as out:
            out.writelines(_receive(url))
        digest = sha256(part)
        if checksum is not None and digest != checksum:
            raise RunError(f"{url}: found sha256 {digest}; expected {checksum}, as in the catalogue")


def _receive(url: str) -> Iterator[bytes]:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as response:
            while piece := response.read(1 << 16):
                yield piece
    except (OSError, HTTPException) as error:  # base classes of urllib's errors and timeouts, and of broken answers
        if getattr(error, "code", None) == 404:
            raise NotThere(f"could not download {url}: there is no such file") from None
        raise RunError(f"could not download {url}: {getattr(error, 'reason', error)}. Is there a network?") from None


RELEASE = "propbank/propbank-release/4abade0b53ce4a181e1d98b3518101c1a44d395a/data/google/ewt"
ALIKE = 0.6
_WORKERS = 8

Tree = list[list[str]]
"""The columns of each token of a skeleton."""


class NotThere(RunError):
    """The origin has no such file."""


def _make_roles(root: Path, origin: str) -> None:
    """Download the skeletons (1145 small files) and write the three parts below `root`.

    Downloaded files are deleted after all parts are written, so that an interrupted download can resume.
    """
    target = root / "srl" / "ewt_propbank"
    skeletons = target / "skeletons"
    parts = {
        part: [(str(name), words) for name, words in conllu_sentences(root / f"pos/ewt/en_ewt-ud-{part}.conllu")]
        for part in ("train", "dev", "test")
    }
    documents = sorted({name.rpartition("-")[0] for sentences in parts.values() for name, _ in sentences})

    def fetch(document: str) -> None:
        genre, _, name = document.partition("-")
        if not (skeletons / document).exists():
            try:
                download(f"{origin}/{RELEASE}/{genre}/00/{name}.xml.gold_skel", skeletons / document, None)
            except NotThere:  # 29 documents are not in PropBank
                save_text("", skeletons / document)

    with ThreadPoolExecutor(_WORKERS) as pool:
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
        matches = sum(word.fields["xpos"] == cells[4] for word, cells in zip(words, tree, strict=False))
        if len(tree) != len(words) or matches < ALIKE * len(words):
            continue
        pairs = enumerate(zip(words, tree, strict=True))
        rows = ("\t".join([str(i), word.fields["form"], cells[4], "*", *cells[6:]]) for i, (word, cells) in pairs)
        yield f"# sent_id = {name}\n" + "".join(f"{row}\n" for row in rows) + "\n"
