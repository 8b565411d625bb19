"""Tasks over sentences: vocabulary, batches, role and tag files, span scores; public names for plugins.

Names are imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spen_plugins.lazy import lazy_names

__getattr__, __all__ = lazy_names(globals())

if TYPE_CHECKING:
    from spen_plugins.data.equal_inputs import shared_inputs
    from spen_plugins.data.formats import Format, Head
    from spen_plugins.data.parts.file_parts import (
        EncodedConfig,
        FileParts,
        FilesConfig,
        name_files,
        named_files,
        note_unseen,
        read_file_parts,
        with_file_encoding,
    )
    from spen_plugins.data.parts.gold import WithoutGold
    from spen_plugins.data.sentences.columns import TaggedSentence
    from spen_plugins.data.sentences.conllu import read_conllu
    from spen_plugins.data.sentences.items import FORMS, parse_one_predicate, parse_raw_text, sentence_of
    from spen_plugins.data.sentences.roles import FileExamples, read_roles, role_files
    from spen_plugins.data.sentences.srl import Proposition, Sentence, kind_of
    from spen_plugins.data.text import RawText
    from spen_plugins.scores.calibration import SpanConfidences, rounded
    from spen_plugins.scores.spans import CORE, Argument, SpanCounts, find_arguments, find_spans, join
    from spen_plugins.sentences.batches import (
        PADDING,
        UNKNOWN,
        Entry,
        SentenceBatch,
        TaggedExample,
        Vocabulary,
        collate_sentences,
        collate_words,
        one_hot_gold,
        padded,
    )
    from spen_plugins.sentences.tag_parts import SentencesConfig, hide_tags
    from spen_plugins.sentences.tasks import (
        PredicateTask,
        SenseTask,
        SentenceTask,
        collect_roles,
        hide_roles,
        kept,
        read_parts,
        role_formats,
        unseen_roles,
    )
