"""Tagged sentences in spaCy's DocBin (`corpus.spacy`), read and written through spaCy. The format holds no code."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spen_plugins.data.formats import Format, Head
from spen_plugins.data.schemes import Scheme, convert
from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.data.sentences.conllu import check_fields
from spen_plugins.data.text import LARGEST, opened, shorten
from spen_plugins.errors import ConfigError, DataError, explain_missing

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

FIELDS = {"form": None, "lemma": "LEMMA", "upos": "POS", "xpos": "TAG", "deprel": "DEP", "ents": "ENT_IOB"}
"""Fields by the names of CoNLL-U, and `ents`, entities; with the annotation that each requires."""
_ATTRIBUTES = {"form": "text", "lemma": "lemma_", "upos": "pos_", "xpos": "tag_", "deprel": "dep_"}


def _is_docbin(head: Head) -> bool:
    return head.data[:1] == b"\x78" and head.data[1:2] in (b"\x01", b"\x5e", b"\x9c", b"\xda")


DOCBIN = Format("DocBin", "spaCy's corpus.spacy", _is_docbin)


def read_docbin(path: Path, fields: Mapping[str, str], gold: bool, scheme: str) -> list[TaggedSentence]:
    """All sentences of a file, without whitespace tokens; a doc without sentence boundaries is one sentence.

    `fields` are those of "words", "tags" and "columns.NAME"; tags are entities by default under a scheme of spans,
    otherwise upos, or xpos if no doc has upos. Without gold, a sentence with an untagged token has no tags.
    """
    docs = _read_docs(path)
    has_upos = any(doc.has_annotation("POS") for doc in docs)
    chosen_fields = {"words": "form", "tags": "ents" if scheme != "none" else "upos" if has_upos else "xpos", **fields}
    check_fields(chosen_fields, FIELDS, "spaCy's docs")
    if "ents" in chosen_fields["tags"].split("+") and scheme == "none":
        raise ConfigError("task.tags: found 'ents' with task.scheme 'none'; entities are spans: set task.scheme=bio")
    sentences: list[TaggedSentence] = []
    for number, doc in enumerate(docs, 1):
        try:
            sentences += _read_sentences(path, number, doc, chosen_fields, gold, scheme)
        except KeyError as error:  # of spaCy's table of strings
            raise DataError(path, None, f"doc {number} with a string that the file lacks", "a complete file") from error
    if not sentences:
        raise DataError(path, None, "no words", "docs with words")
    return sentences


def _read_sentences(
    path: Path, number: int, doc: Doc, fields: Mapping[str, str], gold: bool, scheme: str
) -> Iterator[TaggedSentence]:
    """The sentences of a doc; arguments are as in `read_docbin`."""
    missing_fields = {
        key: name for key, name in fields.items() if (gold or key != "tags") and not _has_field(doc, name)
    }
    for key, name in missing_fields.items():
        remedy = f"; or set task.{key} to another field: {', '.join(FIELDS)}" if len(missing_fields) == 1 else ""
        raise DataError(path, None, f"doc {number}, {shorten(doc.text)}, without {name}", f"annotated docs{remedy}")
    tags = fields["tags"]
    is_annotated = _has_field(doc, tags)
    for tokens in _split_sentences(doc):
        is_tagged = is_annotated
        if is_tagged and (untagged := [token for token in tokens if not _is_tagged(token, tags)]):
            if gold:
                _reject_untagged(path, number, untagged[0], tags)
            is_tagged = False
        values = {key: _read_values(tokens, name, scheme) for key, name in fields.items() if is_tagged or key != "tags"}
        columns = {key.removeprefix("columns."): value for key, value in values.items() if key.startswith("columns.")}
        yield TaggedSentence(values["words"], values.get("tags"), columns)


def _read_docs(path: Path) -> list[Doc]:
    with explain_missing(f"{path} is a DocBin, which requires spaCy: pip install 'spen-plugins[spacy]'"):
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab
    with opened(path) as file:
        data = file.read()
    try:
        if zlib.decompressobj().decompress(data, LARGEST + 1)[LARGEST:]:
            raise DataError(
                path, None, f"a DocBin of more than {LARGEST / 1e9:.1f} GB when decompressed", "a smaller file"
            )
        return list(DocBin().from_bytes(data).get_docs(Vocab()))
    except DataError:
        raise
    except Exception as error:  # of zlib, msgpack, numpy or spaCy, whatever is damaged
        problem = f"a damaged file ({type(error).__name__})"
        raise DataError(path, None, problem, "a DocBin, as written by spaCy's DocBin.to_disk") from error


def _has_field(doc: Doc, field: str) -> bool:
    annotations = (FIELDS[name] for name in field.split("+"))
    return all(annotation is None or doc.has_annotation(annotation) for annotation in annotations)


def _is_tagged(token: Token, field: str) -> bool:
    """True if a token has a value of a field of tags; "" as an entity's type is a value, outside of entities."""
    return all(
        token.ent_iob_ != "" if name == "ents" else getattr(token, _ATTRIBUTES[name]) != "" for name in field.split("+")
    )


def _reject_untagged(path: Path, number: int, token: Token, field: str) -> None:
    expected = "one for every token"
    if field == "ents":
        expected += "; doc.set_ents(…, default='outside') marks the other tokens as no entity"
    context = token.doc[max(token.i - 3, 0) : token.i + 4].text
    raise DataError(path, None, f"doc {number}, …{context}…, without {field} of {shorten(token.text)}", expected)


def _split_sentences(doc: Doc) -> Iterator[list[Token]]:
    for span in doc.sents if doc.has_annotation("SENT_START") else [doc]:
        if tokens := [token for token in span if not token.text.isspace()]:
            yield tokens


def _read_values(tokens: list[Token], field: str, scheme: Any) -> tuple[str, ...]:
    if field == "ents":
        return tuple(_tag_entities(tokens, "bio" if scheme == "none" else scheme))
    names = [_ATTRIBUTES[name] for name in field.split("+")]
    return tuple("+".join(getattr(token, name) or "_" for name in names) for token in tokens)


def _tag_entities(tokens: list[Token], scheme: Scheme) -> list[str]:
    """Tags of entities; an entity that continues from an earlier sentence begins again."""
    tags, previous = [], ""
    for token in tokens:
        kind = token.ent_type_
        tags.append(f"{'I' if token.ent_iob_ == 'I' and previous == kind else 'B'}-{kind}" if kind else "O")
        previous = kind
    return convert(tags, "bio", scheme)


def write_docbin(sentences: Sequence[TaggedSentence], scheme: str = "none", tags: str | None = None) -> bytes:
    """A DocBin with one doc per sentence: entities under a scheme of spans, otherwise parts of speech and finer tags,
    "upos", "xpos" or "upos+xpos"; by default upos if all tags are Universal Dependencies'."""
    with explain_missing("a DocBin requires spaCy: pip install 'spen-plugins[spacy]'"):
        from spacy.parts_of_speech import IDS
        from spacy.tokens import Doc, DocBin
        from spacy.vocab import Vocab
    all_tags = {tag for sentence in sentences for tag in sentence.tags or ()}
    fields = (tags or ("upos" if all_tags <= IDS.keys() else "xpos")).split("+")
    vocab, docbin = Vocab(), DocBin()
    for sentence in sentences:
        sentence_tags = sentence.tags or ()
        spans = {"ents": convert(sentence_tags, scheme, "bio")} if scheme != "none" else None  # type: ignore[arg-type]
        layers = _make_layers(sentence_tags, fields, IDS) if spans is None else spans
        starts = [i == 0 for i in range(len(sentence.words))]
        words = [word if word.strip() else "_" for word in sentence.words]
        docbin.add(Doc(vocab, words=words, sent_starts=starts, **layers))
    return docbin.to_bytes()


def _make_layers(
    tags: Sequence[str], fields: Sequence[str], parts_of_speech: Mapping[str, int]
) -> dict[str, list[str]]:
    """Attributes of a doc by the fields of its tags; `parts_of_speech` are spaCy's parts of speech."""
    names = {"upos": "pos", "xpos": "tags"}
    cells = [dict(zip(fields, tag.split("+", len(fields) - 1), strict=False)) for tag in tags]
    layers = {names[field]: [values.get(field) or "" for values in cells] for field in fields if field in names}
    if not layers or not {*layers.get("pos", ())} <= parts_of_speech.keys():
        problem = f"the tags of the field {'+'.join(fields)!r}, such as {tags[0]!r}"
        raise ConfigError(f"{problem}, are not parts of speech of spaCy; conllu allows any tags")
    return layers
