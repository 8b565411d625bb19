"""The synthetic corpora."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict

import pytest

from spen_plugins.data.sentences.columns import TaggedSentence
from spen_plugins.samples import labels, srl, tagged
from spen_plugins.samples.tagged import sample_corpus

pytestmark = pytest.mark.usefixtures("whole_samples")

KINDS = ("pos", "ner")


def list_sentences(kind: str) -> list[TaggedSentence]:
    return [sentence for part in sample_corpus(kind).values() for sentence in part]


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_and_unique_sentences(kind: str) -> None:
    corpus = sample_corpus(kind)
    assert {part: len(sentences) for part, sentences in corpus.items()} == tagged.SIZES
    sentences = list_sentences(kind)
    assert len({sentence.words for sentence in sentences}) == len(sentences)
    for sentence in sentences:
        assert len(sentence.tags) == len(sentence.words) and all(sentence.words) and all(sentence.tags)


@pytest.mark.parametrize(("kind", "digest"), [("pos", "ac1a832a6891"), ("ner", "b016214fe69f")])
def test_sentences_are_the_same_everywhere(kind: str, digest: str) -> None:
    text = "\n".join(f"{s.words} {s.tags} {sorted(s.columns.items())}" for s in list_sentences(kind))
    assert hashlib.sha256(text.encode()).hexdigest().startswith(digest)


def test_roles_and_labels_are_the_same_everywhere() -> None:
    roles = {
        part: [(s.words, [(p.predicate, p.lemma, p.tags) for p in s.propositions]) for s in examples]
        for part, examples in srl.sample_corpus().items()
    }
    texts = {part: [(text, gold.tolist()) for text, gold in examples] for part, examples in labels.texts().items()}
    bags = {
        part: [(x.tolist(), y.tolist()) for x, y in zip(*arrays, strict=True)] for part, arrays in labels.bags().items()
    }
    for corpus, digest in (
        (roles, "c84e5b93ce83"),
        ([labels.labels(), texts], "9309dfdc4eba"),
        ([labels.words(), bags], "3cba89107168"),
    ):
        assert hashlib.sha256(str(corpus).encode()).hexdigest().startswith(digest)


@pytest.mark.parametrize("kind", KINDS)
def test_each_tag_of_later_parts_is_in_training(kind: str) -> None:
    corpus = sample_corpus(kind)
    tags = {part: {tag for s in sentences for tag in s.tags} for part, sentences in corpus.items()}
    assert tags["validation"] | tags["test"] <= tags["train"]
    assert len(tags["train"]) == {"pos": 14, "ner": 7}[kind]


def score_most_frequent(corpus: dict[str, list[TaggedSentence]]) -> tuple[float, float, float]:
    """Shares of test words: right by the most frequent training tag, ambiguous in training, not in training."""
    counts: dict[str, Counter] = defaultdict(Counter)
    for sentence in corpus["train"]:
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            counts[word.lower()][tag] += 1
    pairs = [(w.lower(), t) for s in corpus["test"] for w, t in zip(s.words, s.tags, strict=True)]
    right = sum(word in counts and counts[word].most_common(1)[0][0] == tag for word, tag in pairs)
    ambiguous = sum(len(counts.get(word, ())) > 1 for word, _ in pairs)
    return right / len(pairs), ambiguous / len(pairs), sum(word not in counts for word, _ in pairs) / len(pairs)


@pytest.mark.parametrize("kind", KINDS)
def test_words_alone_do_not_determine_tags(kind: str) -> None:
    right, ambiguous, unknown = score_most_frequent(sample_corpus(kind))
    assert right < 0.87 and ambiguous > 0.18 and unknown > 0.03


def test_names_are_whole_and_stand_for_several_kinds() -> None:
    kinds: dict[str, set[str]] = defaultdict(set)
    for sentence in list_sentences("ner"):
        for previous, tag in zip(("O", *sentence.tags), sentence.tags, strict=False):
            assert not tag.startswith("I-") or previous[2:] == tag[2:], sentence
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            kinds[word].add(tag[2:])
    assert sum({"PER", "LOC", "ORG"} <= names for names in kinds.values()) > 10


def test_columns_of_names() -> None:
    for sentence in list_sentences("ner"):
        assert set(sentence.columns) == {"pos", "chunk"}
        assert all(len(values) == len(sentence.words) for values in sentence.columns.values())
        for previous, chunk in zip(("O", *sentence.columns["chunk"]), sentence.columns["chunk"], strict=False):
            assert not chunk.startswith("I-") or previous[2:] == chunk[2:], sentence
    assert all(not sentence.columns for sentence in list_sentences("pos"))
