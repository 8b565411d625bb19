"""Base classes of the components: loading, serialisation, minibatches, errors."""

from __future__ import annotations

import shutil
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NoReturn

from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.util import load_config
from thinc.util import get_torch_default_device

from spen_plugins import ConfigError, PluginError, RunError, RunFolder, writing_folder
from spen_spacy.extensions import ENERGY, set_extensions
from spen_spacy.frame import rounded
from spen_spacy.places import PARTS, SETTINGS, advise_training, find_folders
from spen_spacy.predicting import Run, cut_groups
from spen_spacy.storage import pack, unpack

WORDS = 50_000
"""Maximal number of words in a minibatch of docs."""
PACKED = "component"
"""Folder of the parts among the files of `to_bytes`, beside their encoders."""


class Component(Pipe):
    """A spaCy component made of one or several runs. Subclasses check the runs and write predictions to docs. Its
    settings are the factory's arguments, by name."""

    factory: ClassVar[str]
    optional: ClassVar[tuple[str, ...]] = ()
    """Names of the runs that it may lack."""
    unassigned: frozenset[str] = frozenset()
    """The attributes of the factory's `assigns` that its run does not set."""

    def __init__(self, name: str, settings: Mapping[str, Any]) -> None:
        self.name = name
        self.settings = dict(settings)
        self._runs: dict[str, Run] = {}
        set_extensions()

    @abstractmethod
    def check(self, part: str, run: Run) -> None:
        """Raises `ConfigError` if this run can't be the part's."""

    @abstractmethod
    def annotate(self, docs: Sequence[Doc]) -> None:
        """Writes the predictions to the docs; all are computed before the first doc is changed."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the component's runs."""
        return ("model",)

    def places(self) -> dict[str, Path]:
        """The folder of each part, from the settings."""
        return self._find_named(["model"])

    def _find_named(self, settings: Iterable[str]) -> dict[str, Path]:
        """The folders that these settings name: `model` those of all parts, the others that of their part."""
        folders: dict[str, Path] = {}
        for setting in settings:
            places = find_folders(self.name, self.factory, self.settings[setting], setting)
            part = SETTINGS[setting]
            folders |= places if part == "model" else {part: places.get(part, places["model"])}
        return {part: folder for part, folder in folders.items() if part in (*self.parts, *self.optional)}

    def run(self, part: str = "model") -> Run:
        """A part's run, loaded at the first call."""
        if not self._runs:
            self.load()
        return self._runs[part]

    def load(self, places: Mapping[str, Path] | None = None) -> None:
        """Loads and checks the run of each part, from these folders or as the settings say; `SpenError` if a run is
        missing, damaged, of another task, or needs a plugin or a device that isn't there."""
        places = self.places() if places is None else places
        self._runs = {part: self.load_part(part, place) for part, place in places.items()}

    def load_part(self, part: str, place: Path) -> Run:
        """A part's run from this folder, checked; errors as in `load`."""
        device = self.settings["device"] or str(get_torch_default_device())
        options = {key: self.settings.get(key, 0) for key in ("energy", "rerank")} if part == "model" else {}
        precision = self.settings["precision"]
        try:
            try:
                run = Run(place, device=device, precision=precision, **options)
            except ConfigError:
                if part == "model" or precision != "int8":
                    raise
                run = Run(place, device=device)  # a part without an encoder, beside one that has one
        except (ConfigError, PluginError, RunError) as error:
            raise type(error)(f"{self.name}: {error}") from error
        self.check(part, run)
        if columns := getattr(run.task.config, "columns", None):
            warnings.warn(
                f"{self.name}: its run was trained with the columns {', '.join(columns)}, which docs do not have; "
                "train one without (columns={})",
                stacklevel=2,
            )
        return run

    def update(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raises `ConfigError`, with the command that trains a run, and how to leave the component as it is."""
        raise ConfigError(
            f"{self.name}: spaCy can't train this component. {advise_training(self.factory)} and set model to its "
            "folder, or name the component in training.frozen_components; in Python, disable it by nlp.select_pipes"
        )

    def add_label(self, label: str) -> NoReturn:
        """Raises `ConfigError`, with the command that trains a run."""
        raise ConfigError(
            f"{self.name}: found add_label({label!r}); the labels are those that the run was trained on. "
            f"{advise_training(self.factory)} and set model to its folder"
        )

    def keep_energy(self, doc: Doc, answers: Sequence[Mapping[str, Any]]) -> None:
        """Stores the sum of the energies of a doc's pieces, if the setting `energy` is on."""
        if self.settings["energy"]:
            total = sum(answer["energy"] for answer in answers)
            doc.user_data.setdefault(ENERGY, {})[self.name] = rounded(total)

    def __call__(self, doc: Doc) -> Doc:
        self._try(doc)
        return doc

    def _try(self, doc: Doc) -> bool:
        """Annotates a doc; false if it fails, and the error handler raises nothing."""
        try:
            self.annotate([doc])
        except Exception as error:
            self.get_error_handler()(self.name, self, [doc], error)
            return False
        return True

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotated docs, in order; a doc that fails goes to the error handler, and the others are yielded."""
        for docs in cut_groups(stream, len, WORDS, batch_size):
            try:
                self.annotate(docs)
            except Exception:
                docs = [doc for doc in docs if self._try(doc)]
            yield from docs

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Writes each part's run to a folder of its name, and removes the parts of an earlier save.

        In a pipeline's folder the components' equal pretrained encoders are written once, and a link in the place of
        the component's folder is replaced: its target may be another pipeline's.
        """
        path = Path(path)
        in_pipeline = _read_saved(path) is not None
        if in_pipeline and path.is_symlink():
            path.unlink()
        self._write(path, apart=in_pipeline)
        if in_pipeline:
            RunFolder.remove_unused(path.parent)

    def _write(self, path: Path, apart: bool) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.run()
        for part in PARTS:
            if part in self._runs:
                with writing_folder(path / part) as folder:
                    self._runs[part].save(folder, apart)
            elif (path / part).is_symlink():
                (path / part).unlink()
            else:
                shutil.rmtree(path / part, ignore_errors=True)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Component:
        """The inverse of `to_disk`. Files are JSON, safetensors, and a tokeniser's own; none can run code.

        While a saved pipeline is read, models whose names in its config have changed since the save are loaded by name.
        `RunError` if the folder does not hold this component, `ConfigError` if there is no model of a name.
        """
        self._read(Path(path), {} if self._runs else self._find_named(self._list_changed(Path(path))))
        return self

    def _read(self, path: Path, others: Mapping[str, Path]) -> None:
        """Loads the parts that `to_disk` wrote, and others from their own folders."""
        places = {part: path / part for part in (*self.parts, *self.optional) if (path / part).is_dir()} | dict(others)
        if missing := [part for part in self.parts if part not in places]:
            raise RunError(
                f"{self.name}: {path} holds no folder {missing[0]!r}; expected the files of a component of this config"
            )
        self.load(places)

    def _list_changed(self, path: Path) -> list[str]:
        """The settings that name other models than the config of the saved pipeline that the component is in."""
        if (saved := _read_saved(path)) is None:
            return []
        keys = [key for key in SETTINGS if key == "model" or self.settings.get(key) is not None]
        return [key for key in keys if self.settings[key] != saved.get(key)]

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The files of `to_disk` as bytes, with an encoder of several parts only once."""
        with TemporaryDirectory() as folder:
            self._write(Path(folder) / PACKED, apart=True)
            return pack(Path(folder))

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Component:
        """The inverse of `to_bytes`; `RunError` if the bytes are damaged, or name files outside the folder."""
        with TemporaryDirectory() as folder:
            unpack(data, Path(folder))
            packed = Path(folder) / PACKED
            self._read(packed if packed.exists() else Path(folder), {})  # earlier versions packed the parts alone
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (type(self), self.name, self.settings, self.to_bytes(), self.__dict__.get("error_handler"))


def _unpickle(
    cls: type[Component], name: str, settings: Mapping[str, Any], data: bytes, handler: Callable[..., Any] | None
) -> Component:
    component = cls(name, settings).from_bytes(data)
    if handler is not None:
        component.set_error_handler(handler)
    return component


def _read_saved(path: Path) -> Mapping[str, Any] | None:
    """The settings of the component in this folder by its pipeline's config; None if it is in no pipeline."""
    config = path.parent / "config.cfg"
    components = load_config(config, interpolate=True)["components"] if config.exists() else {}
    return components.get(path.name)
