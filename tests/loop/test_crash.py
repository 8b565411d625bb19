"""Crashes of the machine, after which the disk has only synced content: runs resume exactly."""

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
from tests.loop.test_loop import make_noisy_loop, stop_after

RESULTS = ("weights.safetensors", "history.jsonl")

Image = dict[Path, bytes | None]
"""The content of a disk: bytes of files, None for folders."""


class Disk:
    """The content of a disk if the machine died before one of the calls that change names or sync.

    Content that was not synced is lost, or cut in the middle. File names are the current ones, or those of the last
    sync of their folder. Synced files stay open, so that their inode numbers are not reused.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.images, self.off = root, [], False
        self.content: dict[int, bytes] = {}
        self.names: dict[int, dict[str, tuple[int, bool]]] = {}
        self.descriptors: list[int] = []
        self._fsync = self._watch("fsync", monkeypatch)
        for name in ("replace", "rename", "unlink", "mkdir"):
            self._watch(name, monkeypatch)

    def _watch(self, name: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
        call = getattr(os, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            self.die()
            result = call(*args, **kwargs)
            if name == "fsync":
                self._sync(args[0])
            return result

        monkeypatch.setattr(os, name, watched)
        return call

    def _sync(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        self.descriptors.append(os.dup(descriptor))
        if S_ISDIR(status.st_mode):
            with os.scandir(descriptor) as entries:
                self.names[status.st_ino] = {e.name: (e.inode(), e.is_dir()) for e in entries}
        else:
            self.content[status.st_ino] = os.pread(descriptor, status.st_size, 0)

    def die(self) -> None:
        for image in (*self._list_current(), self._list_synced()):
            if image not in self.images[-3:]:
                self.images.append(image)

    def _list_current(self) -> tuple[Image, Image]:
        """Two images with the current names: content that was not synced is lost in the first, cut in the second."""
        lost: Image = {}
        torn: Image = {}
        for folder, folders, names in os.walk(self.root):
            parent = Path(folder).relative_to(self.root)
            for name in folders:
                lost[parent / name] = torn[parent / name] = None
            for name in names:
                with (Path(folder) / name).open("rb") as file:
                    inode, data = os.fstat(file.fileno()).st_ino, file.read()
                lost[parent / name] = self.content.get(inode, b"")
                torn[parent / name] = self.content.get(inode, data[: len(data) // 2])
        return lost, torn

    def _list_synced(self) -> Image:
        image: Image = {}

        def walk(folder: int, parent: Path) -> None:
            for name, (inode, is_folder) in self.names.get(folder, {}).items():
                image[parent / name] = None if is_folder else self.content.get(inode, b"")
                if is_folder:
                    walk(inode, parent / name)

        walk(self.root.stat().st_ino, Path())
        return image

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)


def write_image(image: Image, folder: Path) -> Path:
    """Writes an image into a folder and returns the run's folder in it."""
    folder.mkdir()
    for path, content in image.items():
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)
    return folder / "run"


def make_loop(folder: Path, **callbacks: Any) -> Loop:
    return make_noisy_loop(folder, checkpoint_seconds=0.0, **callbacks)[0]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[Image]]]:
    """A run, and every disk image that a crash of it could leave."""
    root = tmp_path_factory.mktemp("disk")
    with pytest.MonkeyPatch.context() as monkeypatch:
        disk = Disk(root, monkeypatch)
        make_loop(root / "run").run()
        disk.die()
    disk.close()
    yield root / "run", disk.images


def check_resumed(image: Image, path: Path, uninterrupted: Path) -> bool:
    """Checks that an image's run ends like the uninterrupted one; returns false if it had not begun."""
    folder = write_image(image, path)
    has_begun = (folder / "config.json").exists()
    if has_begun:
        assert (folder / "config.json").read_text() == "{}\n"
        make_loop(folder).run(resume=True)
    else:
        assert is_free(folder)
        make_loop(folder).run()
    for name in RESULTS:
        assert (folder / name).read_bytes() == (uninterrupted / name).read_bytes(), name
    return has_begun


@pytest.mark.parametrize("share", [pytest.param(40, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)])
def test_a_run_resumes_exactly_after_a_crash(trained: tuple[Path, list[Image]], tmp_path: Path, share: int) -> None:
    uninterrupted, images = trained
    have_begun = [
        check_resumed(image, tmp_path / str(i), uninterrupted) for i, image in enumerate(images) if i % share == 0
    ]
    assert len(images) > 100 and not have_begun[0] and have_begun == sorted(have_begun)


def test_without_syncs_a_crash_would_cost_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The previous test fails without syncs."""
    monkeypatch.setattr("spen_plugins.files.unfinished.sync", lambda path: None)
    disk = Disk(tmp_path, monkeypatch)
    make_loop(tmp_path / "run").run()
    disk.die()
    lost = [image for image in disk.images if Path("run/config.json") in image]
    assert lost and all(image[Path("run/config.json")] != b"{}\n" for image in lost)


@pytest.mark.parametrize("damage", ["empty", "torn", "zeros", "empty index", "torn index", "no tensors"])
def test_a_damaged_state_is_reported_and_the_previous_one_is_loaded(
    damage: str, trained: tuple[Path, list[Image]], tmp_path: Path
) -> None:
    with pytest.raises(Interrupted):
        make_loop(tmp_path / "run", stop=stop_after(6)).run()
    checkpoints = tmp_path / "run/checkpoint"
    index = max(checkpoints.glob("*.json"))
    tensors = index.with_suffix(".safetensors")
    assert len(list(checkpoints.iterdir())) == 4
    spoil(index if "index" in damage else tensors, damage)
    loop, messages = make_loop(tmp_path / "run"), []
    loop.reporter.say = messages.append
    loop.run(resume=True)
    assert (
        index.name in messages[0]
        and "resuming from the previous one" in messages[0]
        and "can't be read" not in str(messages[1:])
    )
    for name in RESULTS:
        assert (tmp_path / "run" / name).read_bytes() == (trained[0] / name).read_bytes(), name


def spoil(path: Path, damage: str) -> None:
    data = path.read_bytes()
    if "no" in damage:
        path.unlink()
    else:
        size = {"empty": 0, "torn": len(data) // 2, "zeros": len(data) - 100}[damage.split()[0]]
        path.write_bytes(data[:size] + (b"\0" * 100 if damage == "zeros" else b""))


def test_two_states_are_kept_within_a_stage_and_one_at_its_end(tmp_path: Path) -> None:
    """A state of the previous stage would take the weights that this stage has written for its best."""
    listings, save = [], Checkpoint.save

    def save_and_list(self: Checkpoint, state: dict[str, Any], alone: bool = False) -> None:
        save(self, state, alone)
        listings.append(sorted(path.name for path in self.folder.iterdir()))

    loop = make_loop(tmp_path / "run")
    loop.folder.checkpoint.save = save_and_list.__get__(loop.folder.checkpoint)
    loop.run()
    assert [len(names) for names in listings] == [2, *[4] * 7, 2, *[4] * 8, 2]  # on eight batches a stage
    assert listings[-1] == ["state-18.json", "state-18.safetensors"]


def test_an_unreadable_checkpoint_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
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


def test_files_that_are_not_states_are_left_alone(tmp_path: Path) -> None:
    for name in ("statement.txt", "state-of-mind.csv", "states.json"):
        (tmp_path / name).touch()
    checkpoint = Checkpoint(tmp_path)
    for number in range(3):
        checkpoint.save({"number": number}, removes_previous=True)
    names = {"statement.txt", "state-of-mind.csv", "states.json"}
    assert {path.name for path in tmp_path.iterdir()} == {*names, "state-3.json", "state-3.safetensors"}
