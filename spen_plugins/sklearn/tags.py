"""`SequenceTagger`: configs `tags` and `names` as an estimator of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from spen_plugins.data.schemes import BrokenTags, spans
from spen_plugins.loop.evaluation import evaluate
from spen_plugins.sklearn.base import Trained, value_errors
from spen_plugins.sklearn.sentences import Sentences, WrittenTags, object_array
from spen_plugins.task_parts import parse_all

SCHEMES = ("bio", "bioes", "iob1")
PREFIXES = ("B-", "I-", "E-", "S-")


class SequenceTagger(Trained):
    """Predicts a tag for every word of a sentence, by a net that an energy over tag sequences teaches.

    Parts of speech and the like use config `tags`; spans (names, chunks) use `names`.

    Parameters
    ----------
    method : str
        "compound" (an energy and two nets), "crf", "cross_entropy" and others: `spen-run --arguments names`.
    scheme : str
        How tags write spans: "bio", "bioes", "iob1", or "none"; "auto": the first scheme that the training tags obey.
    class_weight : "balanced", dict or None
        A dict {tag: weight}, or {type: weight} of spans, where O is a type; "balanced": n / (classes · n_c) words.
    validation_fraction, random_state, device, verbose
        As in `Trained`. The validation part picks the epoch and the temperature of the probabilities.
    **overrides
        Other arguments and dotted keys of the config: `encoder="bert-base-cased", **{"trainer.epochs": 30}`.

    Attributes
    ----------
    classes_ : array of str
        The tags of y. For a span longer than any in y, `predict` may return another tag of the type, such as I-PER.
    scheme_ : str
        How tags write spans.
    predictor_ : Predictor
        As in `Trained`.
    """

    def __init__(
        self,
        method: str = "compound",
        *,
        scheme: str = "auto",
        class_weight: Any = None,
        validation_fraction: float = 0.2,
        random_state: Any = 0,
        device: str | None = None,
        verbose: bool = False,
        **overrides: Any,
    ) -> None:
        super().__init__(method, class_weight, validation_fraction, random_state, device, verbose, overrides)
        self.scheme = scheme

    def fit(
        self,
        X: Sequence[Sequence[str]],
        y: Sequence[Sequence[str]],
        validation: tuple[Any, Any] | None = None,
        sample_weight: Any = None,
    ) -> SequenceTagger:
        """Train.

        Parameters
        ----------
        X : list of lists of str
            The words of each sentence.
        y : list of lists of str
            A tag for each word.
        validation : pair (X, y) or None
            Sentences to validate on; None: `validation_fraction` of the others.
        sample_weight : array of shape (n_sentences,) or None
            Weights of the training sentences; their scale doesn't matter, and 0 leaves a sentence out. Scores on the
            validation part are not weighted.

        Raises
        ------
        ValueError
            A sentence has no words or another number of tags; tags break the scheme; an argument or tag is unknown; a
            CRF gets `class_weight`; weights are negative, all 0 or of the wrong number.
        """
        if y is None:
            raise ValueError("SequenceTagger requires y to be passed, but the target y is None")
        check_consistent_length(X, y)
        parts = {"train": self._add_weights(X, y, sample_weight)}
        if validation is not None:
            parts["validation"] = validation
        if self.scheme not in ("auto", "none", *SCHEMES):
            schemes = ", ".join(map(repr, ("auto", "none", *SCHEMES)))
            raise ValueError(f"scheme: found {self.scheme!r}; expected one of {schemes}")
        scheme = find_scheme(y) if self.scheme == "auto" else self.scheme
        config, arguments = ("tags", {}) if scheme == "none" else ("names", {"task.scheme": scheme})
        self._train(config, parts, arguments)
        self.scheme_ = scheme
        self.classes_ = np.unique([tag for sentence in y for tag in sentence])
        return self

    def predict(self, X: Sequence[Sequence[str]]) -> np.ndarray:
        """The tags of each sentence as a list, in an array of shape (n_sentences,) and dtype object.

        `predict(X) == y` compares sentence by sentence. Raises a ValueError for anything but a list of sentences.
        """
        with value_errors():
            return Sentences.from_lists(answer["tags"] for answer in self.predictor_.predict(X))

    def predict_proba(self, X: Sequence[Sequence[str]]) -> np.ndarray:
        """Marginal probabilities of each word's tags, calibrated like the scores of `predictor_.predict`.

        An array of shape (n_sentences,) and dtype object, of arrays of shape (n_words, n_classes): columns as in
        `classes_`; rows sum to 1. A CRF's marginals are exact sums over all tag sequences; other nets' tags are
        independent, by softmax. If y uses another scheme, the net's tags count as they are written there; a tag that y
        lacks counts as another of its type: I-PER as B-PER if all persons of y are single words. `predict` decides on
        whole sentences, so its tag needn't be the likeliest one here.

        Raises a ValueError for anything but a list of sentences.
        """
        predictor = self.predictor_
        with value_errors():
            examples = parse_all(predictor.task, X)
        written_tags = WrittenTags(predictor.task.space.tags, self.scheme_, self.classes_.tolist())
        probabilities: list[np.ndarray] = [np.empty(0)] * len(examples)
        for proposal, _, rows in predictor.proposals(examples):
            lengths = [len(examples[row].entry.words) for row in rows]
            for row, p in zip(rows, written_tags(proposal, lengths, predictor.task.temperature), strict=True):
                probabilities[row] = p
        return object_array(probabilities)

    def score(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str]]) -> float:
        """F1 of spans, which are right if type, start and end are; for tags without spans, the share of right tags.

        Raises
        ------
        ValueError
            y has another number of sentences, or a sentence another number of tags; an item is no sentence.
        """
        check_consistent_length(X, y)
        predictor, task = self.predictor_, self.predictor_.task
        with value_errors():
            examples = parse_all(
                task, [{"words": _convert_to_list(w), "tags": _convert_to_list(t)} for w, t in zip(X, y, strict=True)]
            )
            metric = evaluate(predictor.model, task, examples, predictor.batch_size, predictor.device)
        return float(metric.compute()[task.selection])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string = False, True
        tags.target_tags.required = True
        return tags


def _convert_to_list(values: Any) -> Any:
    """An array as a list."""
    return values.tolist() if hasattr(values, "tolist") else values


def find_scheme(sentences: Sequence[Sequence[str]]) -> str:
    """The first scheme of spans that all tags obey; "none" if a tag neither has a scheme's prefix nor is O."""
    tags = {str(tag) for sentence in sentences for tag in sentence}
    if tags <= {"O"} or not all(tag == "O" or tag.startswith(PREFIXES) for tag in tags):
        return "none"
    errors = []
    for scheme in SCHEMES:
        try:
            for sentence in sentences:
                spans(sentence, scheme)
            return scheme
        except BrokenTags as error:
            errors.append(error)
    raise ValueError(
        f"the tags look like spans but follow none of {', '.join(SCHEMES)}; under bio: found {errors[0].found}, "
        f"expected {errors[0].expected.replace('task.scheme', 'scheme')}. scheme='none' reads tags without spans"
    )
