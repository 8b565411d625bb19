"""Sentences with tags or semantic roles: columns, CoNLL formats, CoNLL-U, JSON, DocBin."""
