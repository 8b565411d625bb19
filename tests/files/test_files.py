"""Files are complete or absent, no other file is written to, and a folder has one writer."""

from __future__ import annotations

import errno
import json
import os
import secrets
import signal
import stat
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from spen_plugins.errors import ConfigError, RunError
from spen_plugins.files import (
    is_free,
    no_file,
    remove_partial,
    save_bytes,
    save_json,
    save_text,
    writing,
    writing_folder,
)
from spen_plugins.files.lock import check_unused, locked
from spen_plugins.files.unfinished import LOCK


def run_and_kill(code: str, folder: Path) -> int:
    """The id of a process that ran this code and killed itself."""
    lines = ["import os, sys", "from pathlib import Path", "folder = Path(sys.argv[1])", code]
    process = subprocess.Popen([sys.executable, "-c", "\n".join([*lines, "os.kill(os.getpid(), 9)"]), str(folder)])
    assert process.wait() == -signal.SIGKILL
    return process.pid


@pytest.fixture
def guess_name(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Path]:
    """The temporary name of a file if its random part could be guessed."""
    monkeypatch.setattr(secrets, "token_hex", lambda count: "0" * 2 * count)
    machine = zlib.crc32(os.uname().nodename.encode())
    return lambda path: path.with_name(f"{path.name}.{machine:08x}-{os.getpid()}-{'0' * 16}.partial")


@pytest.mark.parametrize("kind", ["link", "file", "dangling"])
def test_a_file_at_a_guessed_name_is_left_alone(kind: str, tmp_path: Path, guess_name: Callable[[Path], Path]) -> None:
    victim, target = tmp_path / "victim", tmp_path / "a.json"
    temporary = guess_name(target)
    if kind == "file":
        temporary.write_text("mine")
    else:
        temporary.symlink_to(victim)
    if kind == "link":
        victim.write_text("mine")
    with pytest.raises(RunError, match=r"a\.json can't be written: File exists"):
        save_json({}, target)
    assert not target.exists()
    assert kind == "dangling" or temporary.read_text() == "mine"
    assert victim.exists() == (kind == "link")


def test_a_link_at_the_target_is_replaced_and_its_victim_untouched(tmp_path: Path) -> None:
    victim, other = tmp_path / "victim", tmp_path / "other"
    victim.write_text("mine")
    other.mkdir()
    (other / "kept").write_text("mine")
    for target, owner in ((tmp_path / "a", victim), (tmp_path / "b", other)):
        target.symlink_to(owner)
    save_text("ours", tmp_path / "a")
    with writing_folder(tmp_path / "b") as folder:
        (folder / "new").write_text("ours")
    assert victim.read_text() == "mine" and [path.name for path in other.iterdir()] == ["kept"]
    assert (tmp_path / "a").read_text() == (tmp_path / "b/new").read_text() == "ours"
    assert not (tmp_path / "a").is_symlink() and not (tmp_path / "b").is_symlink()


@pytest.mark.parametrize("mask", [0o022, 0o027])
def test_permissions_follow_the_mask(mask: int, tmp_path: Path) -> None:
    old_mask = os.umask(mask)
    try:
        save_bytes(b"", tmp_path / "file")
        with writing_folder(tmp_path / "folder"):
            pass
    finally:
        os.umask(old_mask)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("file", "folder")]
    assert modes == [0o666 & ~mask, 0o777 & ~mask]


def test_names_may_be_as_long_as_the_system_allows(tmp_path: Path) -> None:
    name = "é" * 127
    save_text("", tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_folder_that_fails_keeps_the_previous_one(tmp_path: Path) -> None:
    target = tmp_path / "pipeline"
    for text in ("first", "second"):
        with writing_folder(target) as folder:
            (folder / "file").write_text(text)
    with pytest.raises(RunError, match="No space left"), writing_folder(target) as folder:
        (folder / "file").write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert (target / "file").read_text() == "second" and list(tmp_path.iterdir()) == [target]


def test_a_folder_that_cannot_be_put_in_place_keeps_the_previous_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of three renames fails: the old folder aside, the new one in its place, the old one back."""
    target, rename, calls = tmp_path / "pipeline", os.rename, iter((True, False, True))
    target.mkdir()
    (target / "file").write_text("first")

    def refuse(old: Path, new: Path) -> None:
        if not next(calls):
            raise KeyboardInterrupt
        rename(old, new)

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(KeyboardInterrupt), writing_folder(target) as folder:
        (folder / "file").write_text("second")
    assert (target / "file").read_text() == "first" and list(tmp_path.iterdir()) == [target]


def test_only_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "run", tmp_path / "outside"
    (folder / "checkpoint").mkdir(parents=True)
    outside.mkdir()
    code = "from spen_plugins.files import writing, writing_folder\n"
    code += "one, two = writing(folder / 'checkpoint/a.json'), writing_folder(folder / 'b')\n"
    code += "one.__enter__().write_text('half'), (two.__enter__() / 'c').touch()"
    run_and_kill(code, folder)
    [unfinished] = (folder / "checkpoint").iterdir()
    assert unfinished.read_text() == "half" and is_free(folder / "checkpoint") and not is_free(folder)
    for name in ("notes.partial", "a.json.partial", "config.json"):
        (folder / name).write_text("mine")
    victim = outside / unfinished.name
    victim.write_text("mine")
    (folder / "linked").symlink_to(outside)  # somebody else's folder
    (folder / f"x{unfinished.name}").symlink_to(victim)
    with writing(folder / "d.json"), writing_folder(folder / "e") as fresh:
        (fresh / unfinished.name).write_text("mine")
        paths = set(folder.rglob("*"))
        remove_partial(folder)
        removed = {path.relative_to(folder).as_posix() for path in paths - set(folder.rglob("*"))}
    assert sorted(removed) == sorted(
        {f"checkpoint/{unfinished.name}", *(name for name in removed if name.startswith("b."))}
    )
    assert len(removed) == 3 and victim.read_text() == "mine" and (folder / "e" / unfinished.name).exists()


def test_files_of_another_machine_are_left_alone(tmp_path: Path) -> None:
    code = "from spen_plugins.files import writing\none = writing(folder / 'a.json')\none.__enter__()"
    process = run_and_kill(f"import socket\nsocket.gethostname = lambda: 'elsewhere'\n{code}", tmp_path)
    [unfinished] = tmp_path.iterdir()
    remove_partial(tmp_path)
    assert f"-{process}-" in unfinished.name and unfinished.exists() and is_free(tmp_path)


def test_a_folder_is_free_unless_it_holds_something(tmp_path: Path) -> None:
    assert is_free(tmp_path / "new") and is_free(tmp_path)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / LOCK).touch()
    assert not is_free(tmp_path) and not is_free(tmp_path / "dangling") and is_free(tmp_path / "folder")
    (tmp_path / "folder/mine").mkdir()
    assert not is_free(tmp_path / "folder")


def test_a_folder_has_one_holder_who_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    with locked(folder):
        message = (
            rf"run is in use by process {os.getpid()} on {os.uname().nodename}, since 2\d\d\d-\d\d-\d\d \d\d:.*stop it"
        )
        with pytest.raises(ConfigError, match=message), locked(folder):
            pass
        with pytest.raises(ConfigError, match=message):
            check_unused(folder)
        assert (folder / LOCK).exists()
        (folder / LOCK).write_text("{")  # it is just being written
        with pytest.raises(ConfigError, match="in use by another process"), locked(folder):
            pass
    assert not any(folder.iterdir())
    check_unused(folder)
    assert not any(folder.iterdir())
    with locked(folder):
        pass


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    run_and_kill("from spen_plugins.files.lock import locked\nholding = locked(folder)\nholding.__enter__()", tmp_path)
    assert (tmp_path / LOCK).exists() and is_free(tmp_path)
    with locked(tmp_path):
        pass
    assert not any(tmp_path.iterdir())


def test_a_holder_that_is_waited_for_may_be_killed(tmp_path: Path) -> None:
    code = "import sys, time\nfrom pathlib import Path\nfrom spen_plugins.files.lock import locked\n"
    code += "with locked(Path(sys.argv[1])): print(flush=True), time.sleep(600)"
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdout.readline()
    messages: list[str] = []

    def kill(sentence: str) -> None:
        messages.append(sentence)
        holder.kill()

    with locked(tmp_path, kill):
        assert json.loads((tmp_path / LOCK).read_text())["process"] == os.getpid()
    holder.communicate()
    assert f"process {holder.pid} on" in messages[0]


def test_a_holder_can_be_waited_for(tmp_path: Path) -> None:
    """Six threads in turn: a thread that waits on a file which the previous holder removes takes a new one."""
    holders, most_holders, messages = 0, 0, []

    def work() -> None:
        nonlocal holders, most_holders
        for _ in range(10):
            with locked(tmp_path, messages.append):
                holders += 1
                most_holders = max(most_holders, holders)
                time.sleep(0)
                holders -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    with locked(tmp_path):
        for thread in threads:
            thread.start()
        while not messages:
            time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert most_holders == 1 and f"in use by process {os.getpid()}" in messages[0] and not any(tmp_path.iterdir())


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_nothing_is_held_on_systems_without_locks(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(tmp_path), locked(tmp_path):
        pass


@pytest.mark.parametrize("kind", ["link", "name", "pipe", "folder"])
def test_a_lock_writes_to_no_file_but_its_own(kind: str, tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "run"
    victim.write_text("mine")
    folder.mkdir()
    {
        "link": lambda path: path.symlink_to(victim),
        "name": lambda path: path.hardlink_to(victim),
        "pipe": os.mkfifo,
        "folder": os.mkdir,
    }[kind](folder / LOCK)
    with pytest.raises(ConfigError, match=r"can't be written|not our lock file"), locked(folder):
        pass
    assert victim.read_text() == "mine" and os.path.lexists(folder / LOCK)


def test_a_folder_that_cannot_be_synced_is_not_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def refuse(number: int) -> None:
        if stat.S_ISDIR(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(number)

    monkeypatch.setattr(os, "fsync", refuse)
    save_json({}, tmp_path / "a.json")


def test_a_file_that_cannot_be_synced_is_not_put_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    save_json({"first": 1}, tmp_path / "a.json")
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(RunError, match="Input/output error; the previous file is intact"):
        save_json({}, tmp_path / "a.json")
    with pytest.raises(RunError, match=r"Input/output error$"):
        save_json({}, tmp_path / "b.json")
    assert "first" in (tmp_path / "a.json").read_text() and len(list(tmp_path.iterdir())) == 1


def test_a_name_with_a_null_byte_is_a_missing_file() -> None:
    with pytest.raises(FileNotFoundError):
        no_file("a\0b")


def test_an_open_file_is_written_to_through_its_link(tmp_path: Path) -> None:
    """Like /dev/stdout when redirected to a file. A link that names a file is replaced."""
    link = tmp_path / "link"
    with (tmp_path / "redirected").open("w") as file:
        link.symlink_to(f"/dev/fd/{file.fileno()}")
        save_text("x", link)
        save_text("x", link)
    assert link.is_symlink() and (tmp_path / "redirected").read_text() == "xx"
    link.unlink()
    link.symlink_to("redirected")
    save_text("y", link)
    assert not link.is_symlink() and (tmp_path / "redirected").read_text() == "xx"


def test_the_next_folder_replaces_the_remains_of_a_killed_process(tmp_path: Path) -> None:
    code = (
        "from spen_plugins.files import writing_folder\none, two = (writing_folder(folder / name) for name in 'ab')\n"
    )
    run_and_kill(code + "one.__enter__(), two.__enter__()", tmp_path)
    with writing_folder(tmp_path / "a"):
        pass
    assert [path.name.partition(".")[0] for path in sorted(tmp_path.iterdir())] == ["a", "b"]
    assert (tmp_path / "a").is_dir()
