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


def said(doc: Doc) -> dict[str, Any]:
    """All that components leave in a doc, as numbers that are compared with `same`."""
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


def same(a: Any, b: Any) -> bool:
    """Equal but for the noise of floats."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == pytest.approx(b, abs=2e-4) if isinstance(a, float) else a == b


@pytest.fixture(scope="module")
def texts(text: str) -> list[str]:
    sentences = text.split(". ")
    return [text, "", *sentences, " ", "x", " ".join(sentences[::-1]), "\n\n", text * 3, "Anna", "😀"]


@pytest.fixture(scope="module")
def alone(nlp: Language, texts: list[str]) -> list[dict[str, Any]]:
    found = [said(nlp(text)) for text in texts]
    assert any(one["ents"] for one in found) and any(one["frames"] for one in found)
    return found


@pytest.mark.parametrize("batch_size", [1, 2, 5, 1000])
def test_streams_say_what_single_calls_say(
    nlp: Language, texts: list[str], alone: list[dict[str, Any]], batch_size: int
) -> None:
    docs = list(nlp.pipe(texts, batch_size=batch_size))
    assert [doc.text for doc in docs] == texts
    assert all(same(said(doc), one) for doc, one in zip(docs, alone, strict=True))


def test_two_processes_say_the_same(nlp: Language, texts: list[str], alone: list[dict[str, Any]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that a process with threads forks
        docs = list(nlp.pipe(texts, batch_size=3, n_process=2))
    assert all(same(said(doc), one) for doc, one in zip(docs, alone, strict=True))


def test_docs_carry_all_of_it_through_bytes(nlp: Language, text: str) -> None:
    doc = nlp(text)
    assert same(said(Doc(nlp.vocab).from_bytes(doc.to_bytes())), said(doc))
    whole = DocBin(store_user_data=True, docs=[doc])
    [read] = DocBin().from_bytes(whole.to_bytes()).get_docs(spacy.blank("en").vocab)
    assert {key: value for key, value in said(read).items() if key != "tags"} == {
        key: value for key, value in said(doc).items() if key != "tags"
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
        taken = [i for argument in frame.arguments for i in range(argument.span.start, argument.span.end)]
        assert len(taken) == len(set(taken))
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
    """Far from its windows' edges, a doc of one endless sentence says what one of its windows says."""
    words = [token.text for token in nlp.make_doc(text) if not token.is_space] * 130
    doc = nlp(Doc(nlp.vocab, words=words, sent_starts=[True] + [False] * (len(words) - 1)))
    assert len(doc) > 5000 and all(token.pos_ for token in doc) and len(doc.ents) > 100 and len(doc._.srl) > 100
    window = list(windows(0, len(words), 200))[7]
    piece = nlp(Doc(nlp.vocab, words=words[window.start : window.end], sent_starts=[True] + [False] * 199))
    own = slice(window.own_start, window.own_end)
    inner = slice(window.own_start - window.start, window.own_end - window.start)
    assert [token.pos_ for token in doc[own]] == [token.pos_ for token in piece[inner]]
    at = window.start
    expected = {(e.start + at, e.end + at, e.label_) for e in piece.ents if inner.start + 3 < e.start < inner.stop - 3}
    found = {(e.start, e.end, e.label_) for e in doc.ents if inner.start + 3 < e.start - at < inner.stop - 3}
    assert found == expected != set()


def test_work_grows_with_the_length(runs: dict[str, Path]) -> None:
    """Work is counted: words that the net reads, padding included, and calls of functions, Python's and C's."""
    nlp = piped("spen_ner", model=runs["ner"])
    pipe = nlp.get_pipe("spen_ner")
    work: Counter[str] = Counter()
    net = pipe.run().predictor.model.inference_net
    net.register_forward_pre_hook(lambda _, inputs: work.update(words=inputs[0].mask.numel()))

    def done(length: int) -> Counter[str]:
        doc = Doc(nlp.vocab, words=["Anna", "went", "home"] * (length // 3))
        work.clear()
        sys.setprofile(lambda frame, event, argument: work.update([event]) if event.endswith("call") else None)
        try:
            pipe(doc)
        finally:
            sys.setprofile(None)
        return work.copy()

    done(300)
    short, long = done(1_500), done(12_000)
    assert short["words"] > 1_500 and short["c_call"] > 1_500
    assert all(long[kind] < 10 * short[kind] for kind in ("words", "call", "c_call"))


@pytest.mark.parametrize("factory", ["spen_ner", "spen_srl", "spen_multilabel"])
def test_small_nets_predict_on_one_thread(nlp: Language, text: str, factory: str) -> None:
    net = nlp.get_pipe(factory).run().predictor.model.inference_net
    threads = []
    hook = net.register_forward_pre_hook(lambda *_: threads.append(torch.get_num_threads()))
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        nlp(text)
        assert threads and set(threads) == {1} and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
        hook.remove()


def test_batches_are_cut_by_their_padded_size() -> None:
    lengths = [*np.random.default_rng(0).integers(1, 300, 2000).tolist(), 3 * PADDED, 0]
    found = list(cut_batches(lengths))
    assert sorted(row for rows in found for row in rows) == list(range(len(lengths)))
    for rows in found:
        assert len(rows) == 1 or len(rows) * max(lengths[row] for row in rows) <= PADDED
        assert len(rows) <= EXAMPLES
    assert len(found) < 2 * sum(lengths) / PADDED + 2


def test_one_bad_doc_is_handed_to_the_error_handler(
    nlp: Language, texts: list[str], alone: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
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
    left = [one for text, one in zip(texts, alone, strict=True) if text != "Anna"]
    assert all(same(said(doc), one) for doc, one in zip(docs, left, strict=True))
