"""Numbers of the labels that a task of texts knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from spen_plugins.errors import DataError, did_you_mean


class KnownLabels:
    """Numbers of labels by their names, and of a file of names also by the number in it.

    Args:
        names: all labels, in order.
        numbered: if true, a label may be given by its number, from 0.

    Attributes:
        places: name or number of a label -> its index.
    """

    def __init__(self, names: Sequence[str], numbered: bool = False) -> None:
        self.names, self.numbered = list(names), numbered
        self.places = {str(i): i for i in range(len(self.names))} if numbered else {}
        self.places.update({name: i for i, name in enumerate(self.names)})

    def indices(self, names: Iterable[str], path: object, line: int | None) -> np.ndarray:
        """Indices of the labels of a text, sorted.

        Raises:
            DataError: a label is unknown; with file and line.
        """
        names = list(names)
        for name in names:
            if name not in self.places:
                expected = f"one of the {len(self.names)} labels known{', or its number' * self.numbered}"
                near = did_you_mean(name, self.names)
                raise DataError(path, line, f"label {name!r}", f"{expected}.{near}")
        return np.array(sorted({self.places[name] for name in names}), dtype=np.int32)
