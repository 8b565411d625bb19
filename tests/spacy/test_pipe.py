"""Streams: batches of any size, several processes, long docs, any text, errors."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from spen_spacy.component import Component
from spen_spacy.predicting import EXAMPLES, PADDED, cut_batches
from spen_spacy.reading import windows
from tests.loaded import piped


def collect(doc: Doc) -> dict[str, Any]:
    """Returns everything that components write to a doc, for comparison by `is_close`."""
    return {
        "ents": [(e.start_char, e.end_char, e.label_, e._.spen_score) for e in doc.ents],
        "tags": [(token.pos_, token._.spen_score) for token in doc],
        "frames": [
            (f.predicate.idx, f.score, [(a.role, a.span.start_char, a.span.end_char, a.score) for a in f.arguments])
            for f in doc._.srl
        ],
        "cats": sorted(doc.cats.items()),
        "energy": list(doc._.spen_energy.items()),
    }


def is_close(a: Any, b: Any) -> bool:
    """True if the values are equal up to floating-point noise."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(is_close(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(is_close, a, b))
    return a == pytest.approx(b, abs=2e-4) if isinstance(a, float) else a == b


@pytest.fixture(scope="module")
def texts(text: str) -> list[str]:
    sentences = text.split(". ")
    return [text, "", *sentences, " ", "x", " ".join(sentences[::-1]), "\n\n", text * 3, "Anna", "😀"]


@pytest.fixture(scope="module")
def expected_annotations(nlp: Language, texts: list[str]) -> list[dict[str, Any]]:
    annotations = [collect(nlp(text)) for text in texts]
    assert any(answer["ents"] for answer in annotations) and any(answer["frames"] for answer in annotations)
    return annotations


@pytest.mark.parametrize("batch_size", [1, 2, 5, 1000])
def test_streams_match_single_calls(
    nlp: Language, texts: list[str], expected_annotations: list[dict[str, Any]], batch_size: int
) -> None:
    docs = list(nlp.pipe(texts, batch_size=batch_size))
    assert [doc.text for doc in docs] == texts
    assert all(is_close(collect(doc), expected) for doc, expected in zip(docs, expected_annotations, strict=True))


def test_two_processes_match_single_calls(
    nlp: Language, texts: list[str], expected_annotations: list[dict[str, Any]]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a process with threads forks
        docs = list(nlp.pipe(texts, batch_size=3, n_process=2))
    assert all(is_close(collect(doc), expected) for doc, expected in zip(docs, expected_annotations, strict=True))


def test_docs_keep_their_annotations_through_bytes(nlp: Language, text: str) -> None:
    doc = nlp(text)
    assert is_close(collect(Doc(nlp.vocab).from_bytes(doc.to_bytes())), collect(doc))
    doc_bin = DocBin(store_user_data=True, docs=[doc])
    [restored] = DocBin().from_bytes(doc_bin.to_bytes()).get_docs(spacy.blank("en").vocab)
    assert {key: value for key, value in collect(restored).items() if key != "tags"} == {
        key: value for key, value in collect(doc).items() if key != "tags"
    }


@given(st.text(max_size=80))
@settings(max_examples=40)
def test_any_text(nlp: Language, text: str) -> None:
    doc = nlp(text)
    assert doc.text == text
    for span in (*doc.ents, *doc.spans["spen_ner"], *doc.spans["spen_srl"]):
        assert 0 <= span.start < span.end <= len(doc) and text[span.start_char : span.end_char] == span.text
        assert not span[0].is_space and not span[-1].is_space and 0 <= span._.spen_score <= 1
    for frame in doc._.srl:
        indices = [i for argument in frame.arguments for i in range(argument.span.start, argument.span.end)]
        assert len(indices) == len(set(indices))
    assert all(token.pos_ for token in doc)


@given(st.lists(st.text(min_size=1, max_size=6), max_size=30), st.data())
@settings(max_examples=25)
def test_any_tokens_with_any_sentences(nlp: Language, words: list[str], data: st.DataObject) -> None:
    starts = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    doc = nlp(Doc(nlp.vocab, words=words, sent_starts=[i == 0 or start for i, start in enumerate(starts)]))
    sentence = [i for i, sent in enumerate(doc.sents) for _ in sent]
    for span in (*doc.ents, *(argument.span for frame in doc._.srl for argument in frame.arguments)):
        assert sentence[span.start] == sentence[span.end - 1]


def test_a_long_doc_is_read_in_windows(nlp: Language, text: str) -> None:
    """Far from the edges of its windows, a doc of one endless sentence is annotated as one of its windows is."""
    words = [token.text for token in nlp.make_doc(text) if not token.is_space] * 130
    doc = nlp(Doc(nlp.vocab, words=words, sent_starts=[True] + [False] * (len(words) - 1)))
    assert len(doc) > 5000 and all(token.pos_ for token in doc) and len(doc.ents) > 100 and len(doc._.srl) > 100
    window = list(windows(0, len(words), 200))[7]
    piece = nlp(Doc(nlp.vocab, words=words[window.start : window.end], sent_starts=[True] + [False] * 199))
    owned = slice(window.own_start, window.own_end)
    inner = slice(window.own_start - window.start, window.own_end - window.start)
    assert [token.pos_ for token in doc[owned]] == [token.pos_ for token in piece[inner]]
    offset = window.start
    expected = {
        (e.start + offset, e.end + offset, e.label_) for e in piece.ents if inner.start + 3 < e.start < inner.stop - 3
    }
    entities = {(e.start, e.end, e.label_) for e in doc.ents if inner.start + 3 < e.start - offset < inner.stop - 3}
    assert entities == expected != set()


def test_work_grows_with_the_length(runs: dict[str, Path]) -> None:
    """Counts the words that the net reads, padding included, and the calls of Python and C functions."""
    nlp = piped("spen_ner", model=runs["ner"])
    pipe = nlp.get_pipe("spen_ner")
    work: Counter[str] = Counter()
    net = pipe.run().predictor.model.inference_net
    net.register_forward_pre_hook(lambda _, inputs: work.update(words=inputs[0].mask.numel()))

    def count_work(length: int) -> Counter[str]:
        doc = Doc(nlp.vocab, words=["Anna", "went", "home"] * (length // 3))
        work.clear()
        sys.setprofile(lambda frame, event, argument: work.update([event]) if event.endswith("call") else None)
        try:
            pipe(doc)
        finally:
            sys.setprofile(None)
        return work.copy()

    count_work(300)
    short_work, long_work = count_work(1_500), count_work(12_000)
    assert short_work["words"] > 1_500 and short_work["c_call"] > 1_500
    assert all(long_work[kind] < 10 * short_work[kind] for kind in ("words", "call", "c_call"))


@pytest.mark.parametrize("factory", ["spen_ner", "spen_srl", "spen_multilabel"])
def test_small_nets_predict_on_one_thread(nlp: Language, text: str, factory: str) -> None:
    net = nlp.get_pipe(factory).run().predictor.model.inference_net
    threads = []
    hook = net.register_forward_pre_hook(lambda *_: threads.append(torch.get_num_threads()))
    thread_count = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        nlp(text)
        assert threads and set(threads) == {1} and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(thread_count)
        hook.remove()


def test_batches_are_cut_by_their_padded_size() -> None:
    lengths = [*np.random.default_rng(0).integers(1, 300, 2000).tolist(), 3 * PADDED, 0]
    batches = list(cut_batches(lengths))
    assert sorted(row for rows in batches for row in rows) == list(range(len(lengths)))
    for rows in batches:
        assert len(rows) == 1 or len(rows) * max(lengths[row] for row in rows) <= PADDED
        assert len(rows) <= EXAMPLES
    assert len(batches) < 2 * sum(lengths) / PADDED + 2


def test_one_bad_doc_is_handed_to_the_error_handler(
    nlp: Language, texts: list[str], expected_annotations: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = nlp.get_pipe("spen_ner")
    annotate = type(pipe).annotate

    def fails(self: Component, docs: list[Doc]) -> None:
        if any(doc.text == "Anna" for doc in docs):
            raise ValueError("no Anna here")
        annotate(self, docs)

    monkeypatch.setattr(type(pipe), "annotate", fails)
    with pytest.raises(ValueError, match="no Anna"):
        list(nlp.pipe(texts))
    handled = []
    nlp.set_error_handler(lambda name, proc, docs, error: handled.append((name, [doc.text for doc in docs])))
    try:
        docs = list(nlp.pipe(texts))
    finally:
        nlp.set_error_handler(spacy.util.raise_error)
    assert handled == [("spen_ner", ["Anna"])]
    remaining = [expected for text, expected in zip(texts, expected_annotations, strict=True) if text != "Anna"]
    assert all(is_close(collect(doc), expected) for doc, expected in zip(docs, remaining, strict=True))
