"""Label sets written as sequences of labels, and labels read as words after the text."""

from __future__ import annotations

from spen_plugins import Classes, hookimpl


@hookimpl
def spen_feature_network() -> Classes:
    return {
        "words": "spen_decoders.reading:TextWords",
        "labels_as_words": "spen_decoders.reading:LabelsAsWords",
    }


@hookimpl
def spen_inference_net() -> Classes:
    return {
        "sequence": "spen_decoders.sequence:SequenceNet",
        "seqtag": "spen_decoders.seqtag:SeqTag",
        "laco": "spen_decoders.laco:Laco",
    }


@hookimpl
def spen_trainer() -> Classes:
    return {
        "ocd": "spen_decoders.completion:Completion",
        "laco": "spen_decoders.occurrence:Occurrence",
    }
