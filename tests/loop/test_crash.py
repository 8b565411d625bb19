"""A machine that dies, and a disk that then has only what was synced: a run still resumes exactly."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from stat import S_ISDIR
from typing import Any

import pytest

from spen_plugins.errors import Interrupted, RunError
from spen_plugins.files import is_free
from spen_plugins.loop.checkpoint import Checkpoint
from spen_plugins.loop.loop import Loop
from tests.loop.test_loop import after, noisy

RESULTS = ("weights.safetensors", "history.jsonl")

Image = dict[Path, bytes | None]
"""The content of a disk: bytes of files, None for folders."""


class Disk:
    """The content of a disk if the machine died before one of the calls that change names or sync.

    Content that was not synced is lost, or torn in the middle; names are those of now, or those of the last sync of
    their folder. Synced files are kept open, so that their numbers are not given to others.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.images, self.off = root, [], False
        self.content: dict[int, bytes] = {}
        self.names: dict[int, dict[str, tuple[int, bool]]] = {}
        self.kept: list[int] = []
        self._synced = self._watch("fsync", monkeypatch)
        for name in ("replace", "rename", "unlink", "mkdir"):
            self._watch(name, monkeypatch)

    def _watch(self, name: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
        call = getattr(os, name)

        def watched(*given: Any, **more: Any) -> Any:
            self.die()
            done = call(*given, **more)
            if name == "fsync":
                self._sync(given[0])
            return done

        monkeypatch.setattr(os, name, watched)
        return call

    def _sync(self, number: int) -> None:
        found = os.fstat(number)
        self.kept.append(os.dup(number))
        if S_ISDIR(found.st_mode):
            with os.scandir(number) as entries:
                self.names[found.st_ino] = {e.name: (e.inode(), e.is_dir()) for e in entries}
        else:
            self.content[found.st_ino] = os.pread(number, found.st_size, 0)

    def die(self) -> None:
        for image in (*self._with_names(), self._as_synced()):
            if image not in self.images[-3:]:
                self.images.append(image)

    def _with_names(self) -> tuple[Image, Image]:
        """The names of now; what was not synced is lost in the first, torn in the second."""
        lost: Image = {}
        torn: Image = {}
        for folder, folders, names in os.walk(self.root):
            place = Path(folder).relative_to(self.root)
            for name in folders:
                lost[place / name] = torn[place / name] = None
            for name in names:
                with (Path(folder) / name).open("rb") as file:
                    number, written = os.fstat(file.fileno()).st_ino, file.read()
                lost[place / name] = self.content.get(number, b"")
                torn[place / name] = self.content.get(number, written[: len(written) // 2])
        return lost, torn

    def _as_synced(self) -> Image:
        found: Image = {}

        def walk(folder: int, place: Path) -> None:
            for name, (number, is_folder) in self.names.get(folder, {}).items():
                found[place / name] = None if is_folder else self.content.get(number, b"")
                if is_folder:
                    walk(number, place / name)

        walk(self.root.stat().st_ino, Path())
        return found

    def close(self) -> None:
        for number in self.kept:
            os.close(number)


def put(image: Image, folder: Path) -> Path:
    """The run's folder of an image."""
    folder.mkdir()
    for path, content in image.items():
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)
    return folder / "run"


def make(folder: Path, **callbacks: Any) -> Loop:
    return noisy(folder, checkpoint_seconds=0.0, **callbacks)[0]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[Image]]]:
    """A run, and every disk that a crash in it would leave."""
    root = tmp_path_factory.mktemp("disk")
    with pytest.MonkeyPatch.context() as monkeypatch:
        disk = Disk(root, monkeypatch)
        make(root / "run").run()
        disk.die()
    disk.close()
    yield root / "run", disk.images


def resumed(image: Image, place: Path, whole: Path) -> bool:
    """Check that an image's run ends as the whole one; false if it had not begun."""
    folder = put(image, place)
    begun = (folder / "config.json").exists()
    if begun:
        assert (folder / "config.json").read_text() == "{}\n"
        make(folder).run(resume=True)
    else:
        assert is_free(folder)
        make(folder).run()
    for name in RESULTS:
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name
    return begun


@pytest.mark.parametrize("share", [pytest.param(40, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)])
def test_a_run_resumes_exactly_from_what_a_crash_leaves(
    trained: tuple[Path, list[Image]], tmp_path: Path, share: int
) -> None:
    whole, images = trained
    begun = [resumed(image, tmp_path / str(i), whole) for i, image in enumerate(images) if i % share == 0]
    assert len(images) > 100 and not begun[0] and begun == sorted(begun)


def test_without_syncs_a_crash_would_cost_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disks of the other test can fail it."""
    monkeypatch.setattr("spen_plugins.files.unfinished.sync", lambda path: None)
    disk = Disk(tmp_path, monkeypatch)
    make(tmp_path / "run").run()
    disk.die()
    lost = [image for image in disk.images if Path("run/config.json") in image]
    assert lost and all(image[Path("run/config.json")] != b"{}\n" for image in lost)


@pytest.mark.parametrize("damage", ["empty", "torn", "zeros", "empty index", "torn index", "no tensors"])
def test_a_damaged_state_is_said_and_the_one_before_taken(
    damage: str, trained: tuple[Path, list[Image]], tmp_path: Path
) -> None:
    with pytest.raises(Interrupted):
        make(tmp_path / "run", stop=after(6)).run()
    states = tmp_path / "run/checkpoint"
    index = max(states.glob("*.json"))
    tensors = index.with_suffix(".safetensors")
    assert len(list(states.iterdir())) == 4
    spoil(index if "index" in damage else tensors, damage)
    again, said = make(tmp_path / "run"), []
    again.reporter.say = said.append
    again.run(resume=True)
    assert (
        index.name in said[0] and "resuming from the previous one" in said[0] and "can't be read" not in str(said[1:])
    )
    for name in RESULTS:
        assert (tmp_path / "run" / name).read_bytes() == (trained[0] / name).read_bytes(), name


def spoil(path: Path, damage: str) -> None:
    data = path.read_bytes()
    if "no" in damage:
        path.unlink()
    else:
        kept = {"empty": 0, "torn": len(data) // 2, "zeros": len(data) - 100}[damage.split()[0]]
        path.write_bytes(data[:kept] + (b"\0" * 100 if damage == "zeros" else b""))


def test_two_states_are_kept_within_a_stage_and_one_at_its_end(tmp_path: Path) -> None:
    """A state of the stage before would take the weights that this one has written for its best."""
    kept, save = [], Checkpoint.save

    def count(self: Checkpoint, state: dict[str, Any], alone: bool = False) -> None:
        save(self, state, alone)
        kept.append(sorted(path.name for path in self.folder.iterdir()))

    loop = make(tmp_path / "run")
    loop.folder.checkpoint.save = count.__get__(loop.folder.checkpoint)
    loop.run()
    assert [len(names) for names in kept] == [2, *[4] * 7, 2, *[4] * 8, 2]  # on eight batches a stage
    assert kept[-1] == ["state-18.json", "state-18.safetensors"]


def test_nothing_that_can_be_read_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    with pytest.raises(RunError, match=r"can't be read \(no state-\*\.json\)"):
        checkpoint.load()
    for number in (1, 2):
        checkpoint.save({"number": number})
    assert checkpoint.load() == {"number": 2} and checkpoint.exists()
    for path in tmp_path.glob("*.json"):
        path.write_text("")
    with pytest.raises(
        RunError, match=r"state-2\.json: .*; state-1\.json: .*To train from the beginning, remove that folder"
    ):
        checkpoint.load()


def test_files_that_are_no_states_stay(tmp_path: Path) -> None:
    for name in ("statement.txt", "state-of-mind.csv", "states.json"):
        (tmp_path / name).touch()
    checkpoint = Checkpoint(tmp_path)
    for number in range(3):
        checkpoint.save({"number": number}, alone=True)
    names = {"statement.txt", "state-of-mind.csv", "states.json"}
    assert {path.name for path in tmp_path.iterdir()} == {*names, "state-3.json", "state-3.safetensors"}
