"""Tasks over sentences: vocabulary, batches, role and tag files, span scores; public names for plugins.

Names are imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spen_plugins.lazy import lazy_names

__getattr__, __all__ = lazy_names(
    globals(),
    {
        "builtin.tasks.file_parts": (
            "EncodedConfig",
            "FileParts",
            "FilesConfig",
            "files_of",
            "in_file_encoding",
            "named_files",
            "note_unseen",
            "read_file_parts",
        ),
        "builtin.tasks.role_parts": (
            "hide_roles",
            "kept",
            "read_parts",
            "role_formats",
            "roles_of",
            "unseen_roles",
        ),
        "builtin.tasks.sentence_task": (
            "PredicateTask",
            "SentenceTask",
        ),
        "builtin.tasks.sentences": (
            "PADDING",
            "UNKNOWN",
            "Entry",
            "SentenceBatch",
            "Vocabulary",
            "collate_sentences",
            "collate_words",
            "one_hot_gold",
            "padded",
        ),
        "builtin.tasks.tagging_files": (
            "SentencesConfig",
            "hide_tags",
        ),
        "builtin.tasks.tagging_metric": ("Example",),
        "datasets.equal_inputs": ("shared_inputs",),
        "readers.columns": ("TaggedSentence",),
        "readers.conllu": ("read_conllu",),
        "readers.formats": (
            "Format",
            "Head",
        ),
        "readers.irregular": ("irregular",),
        "readers.raw_text": ("RawText",),
        "readers.role_items": (
            "FORMS",
            "of_one_predicate",
            "sentence_of",
            "sentences_of_text",
        ),
        "readers.roles": (
            "read_roles",
            "role_files",
        ),
        "readers.srl": (
            "Proposition",
            "Sentence",
        ),
        "readers.write_roles": ("FileExamples",),
        "scores.calibration": (
            "SpanConfidences",
            "rounded",
        ),
        "scores.spans": (
            "CORE",
            "Argument",
            "SpanCounts",
            "arguments_of",
            "join",
            "spans_of",
        ),
    },
)


def __dir__() -> list[str]:
    return __all__


if TYPE_CHECKING:
    from spen_plugins.builtin.tasks.file_parts import (
        EncodedConfig,
        FileParts,
        FilesConfig,
        files_of,
        in_file_encoding,
        named_files,
        note_unseen,
        read_file_parts,
    )
    from spen_plugins.builtin.tasks.role_parts import hide_roles, kept, read_parts, role_formats, roles_of, unseen_roles
    from spen_plugins.builtin.tasks.sentence_task import PredicateTask, SentenceTask
    from spen_plugins.builtin.tasks.sentences import (
        PADDING,
        UNKNOWN,
        Entry,
        SentenceBatch,
        Vocabulary,
        collate_sentences,
        collate_words,
        one_hot_gold,
        padded,
    )
    from spen_plugins.builtin.tasks.tagging_files import SentencesConfig, hide_tags
    from spen_plugins.builtin.tasks.tagging_metric import Example
    from spen_plugins.datasets.equal_inputs import shared_inputs
    from spen_plugins.readers.columns import TaggedSentence
    from spen_plugins.readers.conllu import read_conllu
    from spen_plugins.readers.formats import Format, Head
    from spen_plugins.readers.irregular import irregular
    from spen_plugins.readers.raw_text import RawText
    from spen_plugins.readers.role_items import FORMS, of_one_predicate, sentence_of, sentences_of_text
    from spen_plugins.readers.roles import read_roles, role_files
    from spen_plugins.readers.srl import Proposition, Sentence
    from spen_plugins.readers.write_roles import FileExamples
    from spen_plugins.scores.calibration import SpanConfidences, rounded
    from spen_plugins.scores.spans import CORE, Argument, SpanCounts, arguments_of, join, spans_of
