"""Damaged bytes for spaCy's components, and links to the user's folders where pipelines are saved."""

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
"""Folders of a saved pipeline, some of them absent."""
TEXT = "Anna gave Bob a book in Paris yesterday"


def make_try(warm: Warm, name: str, draw: random.Random) -> Try:
    """Damaged bytes for a component, or a pipeline that is saved next to the user's files."""
    if draw.random() < 0.2:
        return _try_saving(name, draw, warm)
    factory, damage = draw.choice(sorted(PARTS)), draw.choice((inputs.damaged, _member, _overlapping))
    model = warm.runs[PARTS[factory]]
    data = damage(_pack(factory, model), draw)
    name = f"{name}-{factory}-{damage.__name__.strip('_')}"
    return _try_bytes(name, _load_pipeline(factory, model).get_pipe(factory), data, damage is _overlapping)


@cache
def _load_pipeline(factory: str, model: Path) -> spacy.language.Language:
    nlp = spacy.blank("en")
    nlp.add_pipe(factory, config={"model": str(model)})
    return nlp


@cache
def _pack(factory: str, model: Path) -> bytes:
    return _load_pipeline(factory, model).get_pipe(factory).to_bytes()


def _format_annotations(component: Any) -> str:
    """Annotations that a component sets, as text."""
    doc = component(spacy.blank("en")(TEXT))
    return repr((doc.cats, [token.pos_ for token in doc], [(span.start, span.end, span.label_) for span in doc.ents]))


def _report_rejection(error: SpenError) -> SystemExit:
    print(f"error: {error}")
    return SystemExit(2)


def _try_bytes(name: str, component: Any, data: bytes, is_inflated: bool) -> Try:
    def act(folder: Path) -> None:
        annotations = _format_annotations(component)
        try:
            component.from_bytes(data)
        except SpenError as error:
            if _format_annotations(component) != annotations:
                raise AssertionError("bytes that were rejected have changed the component") from error
            raise _report_rejection(error) from None
        if is_inflated:
            raise AssertionError("few bytes were unpacked to many")
        try:
            _format_annotations(component)
        except SpenError as error:
            raise _report_rejection(error) from None

    return Try(name, act)


def _member(data: bytes, draw: random.Random) -> bytes:
    """Damages or removes a file of the archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        chosen = draw.choice(old.namelist())
        for info in old.infolist():
            content: bytes | None = old.read(info)
            if info.filename == chosen:
                content = draw.choice((None, b"", b"{}", b"[]", run_folders.DEEP, inputs.damaged(old.read(info), draw)))
            if content is not None:
                new.writestr(info.filename, content)
    return buffer.getvalue()


def _overlapping(data: bytes, draw: random.Random) -> bytes:
    """Lists each file of the archive 200 times."""
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    directory, tail = data[start:end], bytearray(data[end:])
    tail[8:10] = tail[10:12] = (int.from_bytes(tail[10:12], "little") * 200).to_bytes(2, "little")
    tail[12:16] = (len(directory) * 200).to_bytes(4, "little")
    return data[:start] + directory * 200 + bytes(tail)


def _try_saving(name: str, draw: random.Random, warm: Warm) -> Try:
    """Saves a pipeline where one of its folders is a link to the user's."""
    nlp, part, is_saved = _load_pipeline("spen_pos", warm.runs["tags"]), draw.choice(PLACES), draw.random() < 0.5

    def act(folder: Path) -> None:
        pipeline, user_folder = folder / "saved", folder / "own"
        if is_saved:
            nlp.to_disk(pipeline)
            if (pipeline / part).is_dir():
                (pipeline / part).rename(user_folder)
        (pipeline / part).parent.mkdir(parents=True, exist_ok=True)
        (pipeline / part).symlink_to(user_folder)
        user_files = [
            user_folder / name for name in ("mine.txt", "assets/mine.txt", "0" * 16, f"{'0' * 16}.safetensors")
        ]
        for path in user_files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("the user's", encoding="utf-8")
        try:
            nlp.to_disk(pipeline)
            spacy.load(pipeline)
        except SpenError as error:
            raise _report_rejection(error) from None
        finally:
            if missing := [path.name for path in user_files if not path.is_file()]:
                raise AssertionError(f"files of the user's are gone: {missing}")

    return Try(f"{name}-to_disk-{part.replace('/', '_')}", act)
