"""Examples of task `e2e.arcs`, and batches of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spen_e2e.trees import Tree, make_tree
from spen_plugins import DataError, Indexer
from spen_plugins.sentences import (
    FORMS,
    Argument,
    Entry,
    Sentence,
    SentenceBatch,
    collate_words,
    find_arguments,
    find_spans,
    one_hot_gold,
    padded,
    sentence_of,
)


@dataclass(eq=False)
class Example:
    """A sentence with all its predicates."""

    entry: Entry
    predicates: np.ndarray
    """`(predicate,)` words."""
    candidates: np.ndarray
    """`(candidate, 2)` first and last word."""
    pairs: np.ndarray
    """`(pair, 2)` indices of predicate and candidate, predicate by predicate."""
    names: tuple[tuple[str, ...], ...] | None
    """Gold BIO tags of each predicate, if known."""
    roles: np.ndarray | None
    """`(pair,)` gold roles, 0 for none; -1 for one unseen in training."""

    @cached_property
    def arguments(self) -> list[list[Argument]]:
        """Gold arguments of each predicate, including those that are not candidates."""
        return [find_arguments(names) for names in self.names or ()]

    @cached_property
    def reached(self) -> list[list[Argument]]:
        """Gold arguments whose pieces are all candidates."""
        candidates = {(first, last) for first, last in self.candidates.tolist()}
        return [[a for a in arguments if candidates.issuperset(a.pieces)] for arguments in self.arguments]


def make_example(sentence: Sentence, candidates: np.ndarray, entry: Entry, number: dict[str, int]) -> Example:
    """A sentence with predicates as an example, given candidates as in `Example`, and each known role's index."""
    predicates = np.array([p.predicate for p in sentence.propositions], dtype=np.int64)
    first, last = candidates.T
    is_outside = (predicates[:, None] < first) | (last < predicates[:, None])
    pairs = np.stack(np.nonzero(is_outside), 1)
    tags = [p.tags for p in sentence.propositions if p.tags is not None]
    has_gold = len(tags) == len(predicates)
    spans = np.concatenate([pairs[:, :1], candidates[pairs[:, 1]]], 1)
    roles = find_gold_roles(tags, spans, number) if has_gold else None
    return Example(entry, predicates, candidates, pairs, tuple(tags) if has_gold else None, roles)


def find_gold_roles(names: Sequence[Sequence[str]], spans: np.ndarray, number: dict[str, int]) -> np.ndarray:
    """Gold roles of pairs, like `Example.roles`, by each predicate's BIO tags; spans are `(pair, 3)`: predicate, first
    and last word."""
    gold = {
        (i, first, last): number.get(role, -1)
        for i, tags in enumerate(names)
        for role, first, last in find_spans(tags)
        if role not in ("V", "C-V")
    }
    return np.array([gold.get((i, first, last), 0) for i, first, last in spans.tolist()], dtype=np.int64)


def collate_arcs(
    examples: Sequence[Example], rows: Sequence[int] | None, indexers: Mapping[str, Indexer], roles: int
) -> SentenceBatch:
    """A batch, as in `Task.collate`, with `roles` roles."""
    inputs, _ = collate_words([example.entry for example in examples], indexers)
    inputs["predicate_at"] = _make_table([example.predicates for example in examples], -1)
    for column, end in enumerate(("first", "last")):
        inputs[f"candidate_{end}"] = _make_table([example.candidates[:, column] for example in examples], -1)
    sizes = np.array([len(example.pairs) for example in examples])
    mask = np.arange(max(1, int(sizes.max(initial=0)))) < sizes[:, None]
    for column, name in enumerate(("predicate", "candidate")):
        inputs[f"pair_{name}"] = padded([example.pairs[:, column] for example in examples], mask)
    gold, labelled = one_hot_gold([example.roles for example in examples], mask, roles, 0)
    return SentenceBatch.of(inputs, torch.from_numpy(mask), gold, labelled, rows, examples=tuple(examples))


def _make_table(rows: Sequence[np.ndarray], fill: int) -> Tensor:
    """Rows of different lengths as `(row, longest)`, at least one column."""
    table = np.full((len(rows), max(1, *(len(row) for row in rows))), fill, dtype=np.int64)
    sizes = np.array([len(row) for row in rows])
    table[np.arange(table.shape[1]) < sizes[:, None]] = np.concatenate(rows)
    return torch.from_numpy(table)


def measure_reach(examples: Sequence[Example]) -> float:
    """Share of gold arguments whose pieces are all candidates; 1 without any."""
    gold = sum(len(arguments) for example in examples for arguments in example.arguments)
    reached = sum(len(arguments) for example in examples for arguments in example.reached)
    return round(reached / gold, 4) if gold else 1.0


def write_arguments(example: Example, arguments: Sequence[Sequence[Argument]]) -> Iterator[str]:
    """Pieces of arguments of each predicate, in words."""
    words = example.entry.words
    for predicate, predicate_arguments in zip(example.predicates.tolist(), arguments, strict=True):
        for role, (first, *others) in predicate_arguments:
            for name, (i, j) in [(role, first), *((f"C-{role}", place) for place in others)]:
                yield f"{words[predicate]} {name}: {' '.join(words[i : j + 1])}"


def parse_sentence(item: Any) -> tuple[Sentence, Tree | None]:
    """A user's sentence, as in `RoleArcs.parse`, and its tree, if it has one; `DataError` for another form."""
    if isinstance(item, Mapping) and item.get("predicates") is None:
        raise DataError("input", None, repr(item)[:80], FORMS)
    sentence = sentence_of(item)
    return sentence, _read_tree(item, len(sentence.words))


def _is_list_of(values: Any, kind: type) -> bool:
    """True for a list of values of one kind."""
    return isinstance(values, (list, tuple)) and all(isinstance(v, kind) and not isinstance(v, bool) for v in values)


def _read_tree(item: Mapping[str, Any], words: int) -> Tree | None:
    heads = item.get("heads")
    if heads is None:
        return None
    relations = item.get("relations", ["_"] * words)
    if not _is_list_of(heads, int) or not _is_list_of(relations, str) or not len(heads) == len(relations) == words:
        raise DataError("input", None, f"heads {heads!r:.60}, relations {relations!r:.60}", f"{words} of each")
    try:
        return make_tree(heads, relations)
    except ValueError as error:
        word, problem = error.args
        raise DataError(
            "input", None, f"{problem} at word {word}", "a tree, heads counted from 0, -1 for none"
        ) from None


def write_predictions(
    examples: Sequence[Example], width: int, arguments: Sequence[tuple[int, Argument]], scores: Sequence[float]
) -> list[dict[str, Any]]:
    """The predictions of a batch, as in `RoleArcs.predictions`. Each row has places for `width` predicates; arguments
    come with their predicate's number in the batch."""
    predictions: list[dict[str, Any]] = []
    for example in examples:
        words = example.entry.words
        predicates = [{"index": i, "word": words[i], "arguments": []} for i in example.predicates.tolist()]
        predictions.append({"words": list(words), "predicates": predicates})
    for (number, argument), score in zip(arguments, scores, strict=True):
        row, i = divmod(number, width)
        words = examples[row].entry.words
        predictions[row]["predicates"][i]["arguments"] += [
            {
                "role": argument.role if k == 0 else f"C-{argument.role}",
                "start": first,
                "end": last + 1,
                "text": " ".join(words[first : last + 1]),
                "score": score,
            }
            for k, (first, last) in enumerate(argument.pieces)
        ]
    for prediction in predictions:
        for predicate in prediction["predicates"]:
            predicate["arguments"].sort(key=lambda argument: argument["start"])
    return predictions
