"""The factories that spaCy finds by entry points. What they make is imported when the first one is made."""

from __future__ import annotations

from typing import Any, Literal

from spacy.language import Language


@Language.factory(
    "spen_ner",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type", "doc.spans"],
    default_config={
        "model": None,
        "overwrite": False,
        "spans_key": None,
        "sentences": "auto",
        "window": 200,
        "energy": False,
        "rerank": 0,
    },
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0, "ents_per_type": None},
)
def spen_ner(
    nlp: Language,
    name: str,
    model: str | None,
    overwrite: bool,
    spans_key: str | None,
    sentences: Literal["auto", "doc", "rule"],
    window: int,
    energy: bool,
    rerank: int,
) -> Any:
    """Named entities.

    Args:
        model: a run of task `tagging` whose tags write spans: its folder, or a saved component's; None: the installed
            one.
        overwrite: whether entities that are there already are replaced; else those are added that don't overlap them.
        spans_key: where in `doc.spans` the entities stand with their probabilities; None: under the component's name.
        sentences: what is read in one piece. "auto": the doc's sentences, or where it has none the whole doc, as tweets
            are; "doc": the whole doc; "rule": cut after final marks and at blank lines.
        window: words read at once; longer pieces are read in windows that overlap by 40 words.
        energy: whether `doc._.spen_energy` gets the energy of the analysis; the run must have one.
        rerank: how many of the net's best outputs the run's energy chooses from; 0: the net alone.

    Raises:
        SpenError: there is no such model, or it can't be this component's.
    """
    from spen_spacy.ner import SpenNer

    settings = _settings(locals())
    return _loaded(SpenNer(name, settings), nlp)


def _settings(arguments: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if key not in ("nlp", "name", "SpenNer")}


def _loaded(component: Any, nlp: Language) -> Any:
    """The component with its models, unless the pipeline is being read from a folder, where `from_disk` brings them."""
    saved = nlp._meta.get("components", ())
    if component.name not in saved or component.name in nlp.component_names:
        component.load(component.places())
    return component
