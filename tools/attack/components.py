"""Damaged bytes for spaCy's components, and folders of the user's in the place where they are saved."""

from __future__ import annotations

import io
import random
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import inputs
import run_folders
import spacy
from tries import Try
from warm import Warm

from spen_plugins.errors import SpenError

TOTAL = 500
PARTS = {"spen_pos": "tags", "spen_ner": "names", "spen_multilabel": "texts"}
"""Factories, and the configs of their runs."""
PLACES = ("encoders", "assets", "spen_pos", "spen_pos/model", "spen_pos/model/assets", "vocab")
"""Folders of a saved pipeline, some of which it does not have."""
TEXT = "Anna gave Bob a book in Paris yesterday"


def make_try(warm: Warm, name: str, draw: random.Random) -> Try:
    """Damaged bytes for a component, or a pipeline that is saved beside files of the user's."""
    if draw.random() < 0.2:
        return _to_disk(name, draw, warm)
    factory, damage = draw.choice(sorted(PARTS)), draw.choice((inputs.damaged, _member, _overlapping))
    model = warm.runs[PARTS[factory]]
    given = damage(_pack(factory, model), draw)
    name = f"{name}-{factory}-{damage.__name__.strip('_')}"
    return _from_bytes(name, _pipeline(factory, model).get_pipe(factory), given, damage is _overlapping)


@cache
def _pipeline(factory: str, model: Path) -> spacy.language.Language:
    nlp = spacy.blank("en")
    nlp.add_pipe(factory, config={"model": str(model)})
    return nlp


@cache
def _pack(factory: str, model: Path) -> bytes:
    return _pipeline(factory, model).get_pipe(factory).to_bytes()


def _said(component: Any) -> str:
    """Annotations that a component sets, as text."""
    doc = component(spacy.blank("en")(TEXT))
    return repr((doc.cats, [token.pos_ for token in doc], [(span.start, span.end, span.label_) for span in doc.ents]))


def _refused(error: SpenError) -> SystemExit:
    print(f"error: {error}")
    return SystemExit(2)


def _from_bytes(name: str, component: Any, given: bytes, swells: bool) -> Try:
    def act(folder: Path) -> None:
        before = _said(component)
        try:
            component.from_bytes(given)
        except SpenError as error:
            if _said(component) != before:
                raise AssertionError("bytes that were rejected have changed the component") from error
            raise _refused(error) from None
        if swells:
            raise AssertionError("few bytes were unpacked to many")
        try:
            _said(component)
        except SpenError as error:
            raise _refused(error) from None

    return Try(name, act)


def _member(data: bytes, draw: random.Random) -> bytes:
    """A file in the archive is damaged or gone."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(written, "w") as new:
        wanted = draw.choice(old.namelist())
        for info in old.infolist():
            content: bytes | None = old.read(info)
            if info.filename == wanted:
                content = draw.choice((None, b"", b"{}", b"[]", run_folders.DEEP, inputs.damaged(old.read(info), draw)))
            if content is not None:
                new.writestr(info.filename, content)
    return written.getvalue()


def _overlapping(data: bytes, draw: random.Random) -> bytes:
    """Each file of the archive is listed 200 times."""
    at, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    listed, tail = data[at:end], bytearray(data[end:])
    tail[8:10] = tail[10:12] = (int.from_bytes(tail[10:12], "little") * 200).to_bytes(2, "little")
    tail[12:16] = (len(listed) * 200).to_bytes(4, "little")
    return data[:at] + listed * 200 + bytes(tail)


def _to_disk(name: str, draw: random.Random, warm: Warm) -> Try:
    """A pipeline is saved where a folder is a link to one of the user's."""
    nlp, part, before = _pipeline("spen_pos", warm.runs["tags"]), draw.choice(PLACES), draw.random() < 0.5

    def act(folder: Path) -> None:
        saved, own = folder / "saved", folder / "own"
        if before:
            nlp.to_disk(saved)
            if (saved / part).is_dir():
                (saved / part).rename(own)
        (saved / part).parent.mkdir(parents=True, exist_ok=True)
        (saved / part).symlink_to(own)
        mine = [own / name for name in ("mine.txt", "assets/mine.txt", "0" * 16, f"{'0' * 16}.safetensors")]
        for path in mine:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("the user's", encoding="utf-8")
        try:
            nlp.to_disk(saved)
            spacy.load(saved)
        except SpenError as error:
            raise _refused(error) from None
        finally:
            if gone := [path.name for path in mine if not path.is_file()]:
                raise AssertionError(f"files of the user's are gone: {gone}")

    return Try(f"{name}-to_disk-{part.replace('/', '_')}", act)
