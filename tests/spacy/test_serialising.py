"""`to_json` and `Frame.to_dict`: plain types, positions that fit the text, numbers with six digits."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

import spen_spacy
from spen_plugins.errors import RunError
from spen_spacy.extensions import ENERGIES, SENSE_SCORES, SENSES, STARTS, keep_frames, keep_token_scores, make_group
from tests.loaded import ROOT, of_six_digits

spen_spacy.set_extensions()
VOCAB = spacy.blank("en").vocab
SCORES = [0.9973, 0.123457, 0.3]
"""Numbers that float32 can't represent."""


def make_annotated_doc() -> Doc:
    """Returns "Anna gave it", with scores of each kind, set by hand."""
    doc = Doc(VOCAB, ["Anna", "gave", "it"])
    spans = [Span(doc, 1, 2, label="V"), Span(doc, 0, 1, label="ARG0"), Span(doc, 2, 3, label="ARG1")]
    frame_attributes = {STARTS: [0], ENERGIES: [-1.3], SENSES: ["give.01"], SENSE_SCORES: [0.7]}
    doc.spans["spen_srl"] = make_group(doc, "spen_srl", spans, SCORES, **frame_attributes)
    keep_frames(doc, spans, doc.spans["spen_srl"].attrs["scores"], frame_attributes, [doc[:]])
    doc.set_ents([Span(doc, 0, 1, label="PER")])
    doc.spans["spen_ner"] = make_group(doc, "spen_ner", list(doc.ents), [0.9973])
    doc.spans["others"] = [doc[1:3]]
    keep_token_scores(doc, np.array([0.9973, np.nan, 0.3], dtype=np.float32))
    doc.cats = {"mail": 0.1234567891, "gift": float(np.float32(0.9973))}
    return doc


def test_a_frame_has_a_dictionary() -> None:
    [frame] = make_annotated_doc()._.srl
    assert frame.to_dict() == {
        "predicate": {"text": "gave", "start": 1, "end": 2, "start_char": 5, "end_char": 9},
        "score": 0.9973,
        "energy": -1.3,
        "sense": "give.01",
        "sense_score": 0.7,
        "gloss": "transfer",
        "arguments": [
            {
                "role": "ARG0",
                "description": "giver",
                "text": "Anna",
                "start": 0,
                "end": 1,
                "start_char": 0,
                "end_char": 4,
                "score": 0.123457,
            },
            {
                "role": "ARG1",
                "description": "thing given",
                "text": "it",
                "start": 2,
                "end": 3,
                "start_char": 10,
                "end_char": 12,
                "score": 0.3,
            },
        ],
    }


def test_a_doc_has_spacys_values_and_ours() -> None:
    doc = make_annotated_doc()
    result, spacy_json = spen_spacy.to_json(doc), doc.to_json()
    place = {"start": 0, "end": 4, "label": "PER", "start_token": 0, "end_token": 1, "text": "Anna", "score": 0.9973}
    assert result["ents"] == [place] and result["spans"]["spen_ner"] == [place | {"kb_id": ""}]
    assert [span["score"] for span in result["spans"]["spen_srl"]] == SCORES
    [other] = result["spans"]["others"]
    assert (other["text"], other["start_token"], other["end_token"], "score" in other) == ("gave it", 1, 3, False)
    assert [token.get("score") for token in result["tokens"]] == [0.9973, None, 0.3]
    assert result["cats"] == {"mail": 0.123457, "gift": 0.9973} and doc.cats["mail"] == 0.1234567891
    assert result["frames"] == [frame.to_dict() for frame in doc._.srl] and "energies" not in result
    for name in ("ents", "tokens"):
        assert [
            spacy_entry.items() <= entry.items()
            for spacy_entry, entry in zip(spacy_json[name], result[name], strict=True)
        ]
    assert doc.to_json() == spacy_json  # the doc is unchanged


def test_predictions_are_strict_json_with_six_digits(nlp: Language, text: str) -> None:
    doc = nlp(text)
    result = json.loads(json.dumps(spen_spacy.to_json(doc), allow_nan=False), parse_float=of_six_digits)
    assert result == spen_spacy.to_json(doc) and result["frames"] and result["energies"].keys() == {"spen_ner"}
    assert result["cats"].keys() == doc.cats.keys()
    for entry in [*result["ents"], *(span for group in result["spans"].values() for span in group)]:
        assert entry["text"] == text[entry["start"] : entry["end"]] and "score" in entry
        assert entry["text"] == doc[entry["start_token"] : entry["end_token"]].text
    for place in [a for frame in result["frames"] for a in (frame["predicate"], *frame["arguments"])]:
        assert place["text"] == text[place["start_char"] : place["end_char"]] == doc[place["start"] : place["end"]].text
    restored = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    [stored] = DocBin(docs=[doc], store_user_data=True).get_docs(nlp.vocab)
    assert spen_spacy.to_json(restored) == spen_spacy.to_json(stored) == result
    scores = [*(t._.spen_score for t in doc), *(span._.spen_score for group in doc.spans.values() for span in group)]
    scores += [score for frame in doc._.srl for score in (frame.score, *(a.score for a in frame.arguments))]
    assert scores and all(score is None or score == of_six_digits(repr(score)) for score in scores)
    assert doc._.spen_energy == result["energies"]


def test_a_doc_without_annotations_has_no_frames() -> None:
    doc = Doc(VOCAB, [])
    assert spen_spacy.to_json(doc) == doc.to_json() | {"frames": []}


def test_foreign_extensions_are_kept_and_merged_tokens_rejected() -> None:
    if not Doc.has_extension("test_serialised"):
        Doc.set_extension("test_serialised", default={"mine": 1})
    doc = make_annotated_doc()
    assert spen_spacy.to_json(doc, ["test_serialised", "spen_energy"])["_"]["test_serialised"] == {"mine": 1}
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])
    with pytest.raises(RunError, match="no longer holds the predicted frames"):
        spen_spacy.to_json(doc)


def test_dir_lists_the_names_and_imports_no_spacy() -> None:
    code = "import sys, spen_spacy; print(set(spen_spacy.__all__) <= set(dir(spen_spacy)), 'spacy' in sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert output == ["True", "False"] and all(hasattr(spen_spacy, name) for name in spen_spacy.__all__)


def test_the_calibration_tool_measures_what_the_run_wrote(runs: dict[str, Path]) -> None:
    row = runpy.run_path(str(ROOT / "tools/english/english_scores.py"))["calibration_row"]
    calibration = json.loads((runs["pos"] / "calibration.json").read_text())
    cells = [cell.strip() for cell in row("mine", runs["pos"]).strip("|").split("|")]
    assert cells[0].startswith("`mine` ") and float(cells[2]) == round(calibration["temperature"], 2)
    kinds = ("ece_uncalibrated", "ece")
    expected = [calibration[part][kind] for part in ("validation", "test") for kind in kinds]
    assert [float(cell) for cell in cells[3:]] == pytest.approx(expected, abs=2e-3)
