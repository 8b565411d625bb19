"""The factories that spaCy finds by entry points. Components are imported when the first is created."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from spacy.language import Language
from spacy.tokens import Doc, Token

Sentences = Literal["auto", "doc", "rule"]
Precision = Literal["no", "bf16"]
READING = {"sentences": "auto", "window": 200, "energy": False, "rerank": 0, "device": None, "precision": "no"}


@Language.factory(
    "spen_ner",
    assigns=["doc.ents", "doc.spans", "token.ent_iob", "token.ent_type", "span._.spen_score"],
    default_config={"model": None, "overwrite": False, "spans_key": None, **READING},
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
def spen_ner(
    nlp: Language,
    name: str,
    model: str | None,
    overwrite: bool,
    spans_key: str | None,
    sentences: Sentences,
    window: int,
    energy: bool,
    rerank: int,
    device: str | None,
    precision: Precision,
) -> Any:
    """Named entities.

    Args:
        model: a run of task `tagging` whose tags write spans: its folder, a saved component's, or the
            name of an installed model; None: the installed one of this factory.
        overwrite: if true, existing entities and blocked tokens are replaced; otherwise predicted entities are added
            that overlap neither.
        spans_key: key of `doc.spans` under which all predicted entities are stored with their probabilities; None: the
            component's name.
        sentences: unit of input. "auto": the doc's sentences, or the whole doc if it has none, as tweets do; "doc": the
            whole doc; "rule": split after final punctuation and at blank lines.
        window: most words per window; longer units are read in windows that overlap by 40 words.
        energy: if true, `doc._.spen_energy` gets the energy of the analysis; the run must have an energy.
        rerank: number of the net's best outputs from which the run's energy chooses; 0: the net alone.
        device: where the run predicts, such as "cuda:1" or "cpu"; None: where spaCy computes, which is a GPU after
            `spacy.prefer_gpu()`.
        precision: "bf16" to multiply in bfloat16, faster on a GPU or a processor that does that (AMX, AVX512-BF16).

    Raises:
        SpenError: the model does not exist, or it does not fit this component.
    """
    settings = _settings(locals())
    from spen_spacy.ner import SpenNer

    return _loaded(SpenNer(name, settings), nlp)


@Language.factory(
    "spen_pos",
    assigns=["token.tag", "token.pos", "token._.spen_score"],
    default_config={"model": None, "attribute": "auto", **READING},
    default_score_weights={"tag_acc": 0.5, "pos_acc": 0.5},
)
def spen_pos(
    nlp: Language,
    name: str,
    model: str | None,
    attribute: Literal["auto", "pos", "tag"],
    sentences: Sentences,
    window: int,
    energy: bool,
    rerank: int,
    device: str | None,
    precision: Precision,
) -> Any:
    """Tags.

    Args:
        model: a run of task `tagging` whose tags write no spans: its folder, a saved component's, or the
            name of an installed model; None: the installed one of this factory.
        attribute: attribute to set. "auto": `token.pos_` for Universal POS tags, both for tags such as NOUN+NNS, else
            `token.tag_`; "pos", "tag": this one alone.
        sentences: unit of input. "auto": the doc's sentences, or, if it has none, as "rule": split after final
            punctuation and at blank lines; "doc": the whole doc.
        window, energy, rerank, device, precision: as of `spen_ner`.

    Raises:
        SpenError: the model does not exist, or it does not fit this component.
    """
    settings = _settings(locals())
    from spen_spacy.pos import SpenPos

    return _loaded(SpenPos(name, settings), nlp)


@Language.factory(
    "spen_srl",
    assigns=["doc.spans", "doc._.srl", "token._.srl_frame", "span._.spen_score"],
    default_config={
        "model": None,
        "predicates": "model",
        "predicates_model": None,
        "senses_model": None,
        "spans_key": None,
        **READING,
    },
    default_score_weights={"srl_f": 1.0, "srl_p": 0.0, "srl_r": 0.0, "srl_per_type": None},
)
def spen_srl(
    nlp: Language,
    name: str,
    model: str | None,
    predicates: Literal["model", "verbs"] | Callable[[Doc], Iterable[Token | int]],
    predicates_model: str | None,
    senses_model: str | None,
    spans_key: str | None,
    sentences: Sentences,
    window: int,
    energy: bool,
    rerank: int,
    device: str | None,
    precision: Precision,
) -> Any:
    """Semantic roles.

    Args:
        model: a run of task `srl`: its folder, a saved component's, or the name of an installed model; None:
            the installed one of this factory.
        predicates: "model": a run tags them; "verbs": tokens whose `pos_` is VERB; or a registered function that
            returns a doc's predicates, as tokens or indices.
        predicates_model: the run that tags them, of task `tagging` with `format: predicates`; None: the one saved with
            the model.
        senses_model: a run of task `propbank.senses`, which gives each frame its sense; None: the one saved with the
            model, or none, and frames have no senses.
        spans_key: key of `doc.spans` for predicates (as V) and arguments; None: the component's name.
        sentences: as of `spen_pos`.
        window: most words per window; in a longer sentence, those around the predicate.
        energy: if true, frames and `doc._.spen_energy` get their energies; the run must have an energy.
        rerank, device, precision: as of `spen_ner`.

    Raises:
        SpenError: the model does not exist, or it does not fit this component.
    """
    settings = _settings(locals())
    from spen_spacy.srl import SpenSrl

    return _loaded(SpenSrl(name, settings), nlp)


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
    """Labels of texts.

    Args:
        model: a run of task `text`: its folder, a saved component's, or the name of an installed model; None:
            the installed one of this factory.
        threshold: the probability above which a label counts as predicted in scores; None: the run's own, or
            its sets of highest expected F1. All labels are in `doc.cats` in any case.
        energy: if true, `doc._.spen_energy` gets the energy of the predicted labels; the run must have an energy.
        device, precision: as of `spen_ner`.

    Raises:
        SpenError: the model does not exist, or it does not fit this component.
    """
    settings = _settings(locals())
    from spen_spacy.multilabel import SpenMultilabel

    return _loaded(SpenMultilabel(name, settings), nlp)


def _settings(arguments: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if key not in ("nlp", "name")}


def _loaded(component: Any, nlp: Language) -> Any:
    """The component with its models; without, if a saved pipeline is being read, as `from_disk` loads them."""
    # A pipeline that was read has a path: a component added to it is the user's, even under a saved one's name.
    reading = nlp.path is None and component.name in nlp._meta.get("components", ())
    if not reading or component.name in nlp.component_names:
        component.load()
    return component
