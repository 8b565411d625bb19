"""The factories that spaCy finds by entry points, with the settings of docs/spacy.md. Components are imported when the
first is created."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypedDict, Unpack, get_type_hints

from spacy.language import Language
from spacy.tokens import Doc, Token

Precision = Literal["no", "bf16", "int8"]
DEFAULTS = {"sentences": "auto", "window": 200, "energy": False, "rerank": 0, "device": None, "precision": "no"}


class WordSettings(TypedDict):
    """Settings of all components that read words.

    Attributes:
        sentences: unit of input. "auto": the doc's sentences; without them `spen_ner` reads the whole doc, as tweets
            are in training, and the others split as "rule" does; all split at blank lines and tabs; "doc": the whole
            doc; "rule": split after final punctuation, at blank lines and at tabs.
        window: most words per window; longer units are read in windows that overlap by 40 words, and for roles in
            windows around each predicate.
        energy: if true, `doc._.spen_energy`, and frames, get the energy of the analysis; the run must have an energy.
        rerank: number of the net's best outputs from which the run's energy chooses; 0: the net alone.
        device: where the run predicts, such as "cuda:1" or "cpu"; None: where spaCy computes, which is a GPU after
            `spacy.prefer_gpu()`.
        precision: "no": float32; "int8": pretrained encoders multiply in int8, and LSTMs in bfloat16 if the processor
            supports it, faster on processors with AVX512-VNNI; "bf16": all nets multiply in bfloat16, faster on a GPU
            or a processor that supports it (AMX, AVX512-BF16).
    """

    sentences: Literal["auto", "doc", "rule"]
    window: int
    energy: bool
    rerank: int
    device: str | None
    precision: Precision


def _expand_reading(factory: Callable[..., Any]) -> Callable[..., Any]:
    """Puts the keys of `WordSettings` in place of `**reading` in a signature: spaCy takes a config's keys from it."""
    *parameters, _ = inspect.signature(factory).parameters.values()
    keys = get_type_hints(WordSettings)
    reading_parameters = [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY) for key in keys]
    factory.__signature__ = inspect.Signature([*parameters, *reading_parameters])  # type: ignore[attr-defined]
    factory.__annotations__ |= keys
    return factory


@Language.factory(
    "spen_ner",
    assigns=["doc.ents", "doc.spans", "token.ent_iob", "token.ent_type", "span._.spen_score"],
    default_config={"model": None, "overwrite": False, "spans_key": None, **DEFAULTS},
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
@_expand_reading
def spen_ner(
    nlp: Language, name: str, model: str | None, overwrite: bool, spans_key: str | None, **reading: Unpack[WordSettings]
) -> Any:
    """Named entities, without those that overlap blocked tokens or earlier entities. With `overwrite`, they replace
    earlier entities. `SpenError` if the model does not exist, or it does not fit this component."""
    from spen_spacy.ner import SpenNer

    return _load(SpenNer(name, {"model": model, "overwrite": overwrite, "spans_key": spans_key, **reading}), nlp)


@Language.factory(
    "spen_pos",
    assigns=["token.tag", "token.pos", "token._.spen_score"],
    default_config={"model": None, "attribute": "auto", **DEFAULTS},
    default_score_weights={"tag_acc": 0.5, "pos_acc": 0.5},
)
@_expand_reading
def spen_pos(
    nlp: Language,
    name: str,
    model: str | None,
    attribute: Literal["auto", "pos", "tag"],
    **reading: Unpack[WordSettings],
) -> Any:
    """Tags; `SpenError` if the model does not exist, or it does not fit this component."""
    from spen_spacy.pos import SpenPos

    return _load(SpenPos(name, {"model": model, "attribute": attribute, **reading}), nlp)


@Language.factory(
    "spen_parser",
    assigns=["doc.spans", "doc._.tree", "span._.tree", "doc._.noun_phrases"],
    default_config={"model": None, **DEFAULTS},
)
@_expand_reading
def spen_parser(nlp: Language, name: str, model: str | None, **reading: Unpack[WordSettings]) -> Any:
    """Constituents; `SpenError` if the model does not exist, or it does not fit this component."""
    from spen_spacy.parsing.component import SpenParser

    return _load(SpenParser(name, {"model": model, **reading}), nlp)


@Language.factory(
    "spen_srl",
    assigns=["doc.spans", "doc._.srl", "token._.srl_frame", "span._.spen_score"],
    default_config={
        "model": None,
        "predicates": "model",
        "predicates_model": None,
        "senses_model": None,
        "spans_key": None,
        **DEFAULTS,
    },
    default_score_weights={"srl_f": 1.0, "srl_p": 0.0, "srl_r": 0.0, "srl_per_type": None},
)
@_expand_reading
def spen_srl(
    nlp: Language,
    name: str,
    model: str | None,
    predicates: Literal["model", "verbs"] | Callable[[Doc], Iterable[Token | int]],
    predicates_model: str | None,
    senses_model: str | None,
    spans_key: str | None,
    **reading: Unpack[WordSettings],
) -> Any:
    """Semantic roles; `SpenError` if the model does not exist, or it does not fit this component."""
    from spen_spacy.srl import SpenSrl

    models = {"model": model, "predicates_model": predicates_model, "senses_model": senses_model}
    return _load(SpenSrl(name, {**models, "predicates": predicates, "spans_key": spans_key, **reading}), nlp)


@Language.factory(
    "spen_multilabel",
    assigns=["doc.cats"],
    default_config={"model": None, "threshold": None, "energy": False, "device": None, "precision": "no"},
    default_score_weights={"cats_score": 1.0, "cats_micro_f": None, "cats_macro_f": None, "cats_macro_auc": None},
)
def spen_multilabel(
    nlp: Language,
    name: str,
    model: str | None,
    threshold: float | None,
    energy: bool,
    device: str | None,
    precision: Precision,
) -> Any:
    """Labels of texts; `SpenError` if the model does not exist, or it does not fit this component."""
    from spen_spacy.multilabel import SpenMultilabel

    settings: Mapping[str, Any] = {"model": model, "threshold": threshold, "energy": energy}
    return _load(SpenMultilabel(name, {**settings, "device": device, "precision": precision}), nlp)


@Language.factory(
    "spen_task",
    assigns=["doc._.spen_predictions"],
    default_config={"model": None, "energy": False, "device": None, "precision": "no"},
)
def spen_task(
    nlp: Language, name: str, model: str | None, energy: bool, device: str | None, precision: Precision
) -> Any:
    """Predictions of a task of another plugin; `SpenError` if the model does not exist, or its task reads no docs."""
    from spen_spacy.other_task import SpenTask

    return _load(SpenTask(name, {"model": model, "energy": energy, "device": device, "precision": precision}), nlp)


def _load(component: Any, nlp: Language) -> Any:
    """Returns the component with its models, or without them if a saved pipeline is read: `from_disk` loads them."""
    # A pipeline that was read has a path: a component added to it is the user's, even under a saved one's name.
    is_read = nlp.path is None and component.name in nlp._meta.get("components", ())
    if not is_read or component.name in nlp.component_names:
        component.load()
    return component
