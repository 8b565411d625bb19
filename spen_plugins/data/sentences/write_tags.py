"""Tagged sentences as text or bytes: columns, CoNLL-U, spaCy's DocBin. The readers of these formats read each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spen_plugins.data.schemes import convert
from spen_plugins.data.sentences.columns import TaggedSentence, cell
from spen_plugins.data.sentences.conllu import FIELDS
from spen_plugins.errors import ConfigError

_BLANK = "_"


def columns(
    sentences: Sequence[TaggedSentence], words: int = 0, tags: int = -1, more: Mapping[str, int] | None = None
) -> str:
    """A token a line, cells apart by tabs; at most as many columns as are numbered, negative ones from the end, `_` in
    the others."""
    places = [words, tags, *(more or {}).values()]
    least = max(place + 1 if place >= 0 else -place for place in places)
    width = next(
        n for n in range(least, least + len(places) + 1) if len({place % n for place in places}) == len(places)
    )
    lines = []
    for sentence in sentences:
        for i, (word, tag) in enumerate(zip(sentence.words, sentence.tags or (), strict=True)):
            cells = [_BLANK] * width
            cells[words % width], cells[tags % width] = cell(word), cell(tag)
            for name, place in (more or {}).items():
                cells[place % width] = cell(sentence.columns[name][i])
            lines.append("\t".join(cells))
        lines.append("")
    return "".join(line + "\n" for line in lines)


def conllu(sentences: Sequence[TaggedSentence], tags: str = "upos") -> str:
    """CoNLL-U with the tags in a field, or in several, as in "upos+xpos"; `_` in the others."""
    fields = tags.split("+")
    lines = []
    for sentence in sentences:
        for i, (word, tag) in enumerate(zip(sentence.words, sentence.tags or (), strict=True), 1):
            cells = {"form": cell(word) or _BLANK} | dict(zip(fields, tag.split("+", len(fields) - 1), strict=False))
            lines.append("\t".join([str(i), *(cells.get(name) or _BLANK for name in FIELDS)]))
        lines.append("")
    return "".join(line + "\n" for line in lines)


def docbin(sentences: Sequence[TaggedSentence], scheme: str = "none", tags: str | None = None) -> bytes:
    """A DocBin with a doc a sentence: entities under a scheme of spans, otherwise parts of speech and finer tags,
    "upos", "xpos" or "upos+xpos"; by default upos if all are Universal Dependencies'."""
    try:
        from spacy.parts_of_speech import IDS
        from spacy.tokens import Doc, DocBin
        from spacy.vocab import Vocab
    except ImportError as error:
        raise ConfigError("a DocBin needs spaCy: pip install 'spen-plugins[spacy]'") from error
    seen = {tag for sentence in sentences for tag in sentence.tags or ()}
    fields = (tags or ("upos" if seen <= IDS.keys() else "xpos")).split("+")
    vocab, made = Vocab(), DocBin()
    for sentence in sentences:
        given = sentence.tags or ()
        spans = {"ents": convert(given, scheme, "bio")} if scheme != "none" else None  # type: ignore[arg-type]
        layers = _layers(given, fields, IDS) if spans is None else spans
        starts = [i == 0 for i in range(len(sentence.words))]
        words = [word if word.strip() else _BLANK for word in sentence.words]
        made.add(Doc(vocab, words=words, sent_starts=starts, **layers))
    return made.to_bytes()


def _layers(tags: Sequence[str], fields: Sequence[str], known: Mapping[str, int]) -> dict[str, list[str]]:
    """Attributes of a doc by the fields of its tags; `known` are spaCy's parts of speech."""
    names = {"upos": "pos", "xpos": "tags"}
    cells = [dict(zip(fields, tag.split("+", len(fields) - 1), strict=False)) for tag in tags]
    layers = {names[field]: [one.get(field) or "" for one in cells] for field in fields if field in names}
    if not layers or not {*layers.get("pos", ())} <= known.keys():
        found = f"the tags of the field {'+'.join(fields)!r}, such as {tags[0]!r}"
        raise ConfigError(f"{found}, are no parts of speech that spaCy's docs have; conllu holds any")
    return layers
