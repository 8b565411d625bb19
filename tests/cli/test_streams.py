"""Standard streams of the commands: closed, full or of another encoding; control characters in names; memory."""

from __future__ import annotations

import ctypes
import io
import multiprocessing
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from rich.table import Table

from spen_plugins.cli import MMAP_THRESHOLD, return_large_blocks
from spen_plugins.cli.common import columns, report_errors
from spen_plugins.console import Console
from spen_plugins.errors import visible

FULL = Path("/dev/full")

PROGRAM = """
import sys, typer, warnings
from spen_plugins.cli.common import make_app, report_errors, run_program
from spen_plugins.errors import DataError

made = make_app()

@made.command()
@report_errors
def say(text: str, fail: str = ""):
    if fail == "memory":
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory")
    if fail == "data":
        raise DataError(text, 1, "this", "that")
    if fail == "warn":
        warnings.warn(text)
    if fail == "late":  # as it is written at the end alone
        sys.stdout.write(text)
        return
    typer.echo("read " + sys.stdin.read() if text == "-" else text)

run_program(made)
"""


def run(words: list[str | bytes], redirected: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Runs the program in a shell, as a user does."""
    line = ["sh", "-c", f'exec "$0" "$@" {redirected}', sys.executable, "-c", PROGRAM, *words]
    return subprocess.run(line, capture_output=True, env={**os.environ, **environment}, check=False)


def get_error(result: subprocess.CompletedProcess[bytes]) -> str:
    """Returns the only line on standard error."""
    [line] = result.stderr.decode().splitlines()
    return line


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["text"], ["text", "--fail=late"], ["--help"]], ids=" ".join)
def test_output_that_is_not_written_is_an_error(words, unbuffered):
    result = run(words, ">/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert result.returncode == 1
    assert get_error(result) == "error: No space left on device"


def test_a_closed_standard_error_does_no_harm():
    assert run(["text"], "2>&-").stdout == b"text\n"
    assert run(["text", "--fail=data"], "2>&-").returncode == 2


def test_output_nobody_reads_is_no_error():
    program = [sys.executable, "-c", PROGRAM, "x" * 100_000]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_output_is_utf_8_as_files_are(encoding):
    result = run(["中 ž"], PYTHONIOENCODING=encoding)
    assert (result.returncode, result.stdout, result.stderr) == (0, "中 ž\n".encode(), b"")


@pytest.mark.skipif(sys.platform != "linux", reason="names of other systems are UTF-8")
def test_the_bytes_of_a_file_name_are_kept():
    assert run([b"caf\xe9"]).stdout == b"caf\xe9\n"
    assert (
        get_error(run([b"caf\xe9\x1b[31m", "--fail=data"])) == r"error: caf\udce9\x1b[31m:1: found this; expected that"
    )


def test_a_warning_is_a_sentence():
    assert get_error(run([b"a\x1b[31mb", "--fail=warn"])) == r"warning: a\x1b[31mb"


def test_running_out_of_memory_is_reported_in_a_sentence():
    result = run(["text", "--fail=memory"])
    assert result.returncode == 1
    assert get_error(result).startswith("error: ran out of memory (") and "ulimit" in get_error(result)


@pytest.mark.parametrize(
    "error", [MemoryError(), OSError("no network"), PermissionError(13, "denied", "f.txt")], ids=repr
)
def test_errors_of_the_system_have_no_traceback(error, capsys):
    def fails():
        raise error

    with pytest.raises(typer.Exit) as error_info:
        report_errors(fails)()
    assert error_info.value.exit_code == 1
    message = capsys.readouterr().err
    assert message.startswith("error: ") and message.count("\n") == 1


def test_control_characters_in_names_are_escaped():
    assert visible("a\x1b[2J\x9b1mé\tb\n") == "a\\x1b[2J\\x9b1mé\tb\n"
    assert columns([["\x1b[31m", "b"]]) == ["\\x1b[31m  b"]
    stream = io.StringIO()
    console = Console(file=stream, width=100, force_terminal=True, color_system=None)
    table = Table(title="[/t]")
    table.add_column("[bold]label")
    table.add_row("\x1b[31mred :dog:")
    console.print(table)
    console.print("run [/folder] \x1b]0;title\x07")
    text = stream.getvalue()
    assert all(
        name in text for name in ("[/t]", "[bold]label", "\\x1b[31mred :dog:", "run [/folder] \\x1b]0;title\\x07")
    )
    assert "\x1b]0" not in text and "\x1b[31m" not in text


PRINTS = """
from rich.table import Table
from spen_plugins.console import Console

table = Table(title="scores of [a]", caption="a caption " * 20)
table.add_column("score")
for i in range(30):
    table.add_column(f"part {i}", justify="right")
table.add_row("f1", *(f"0.{i}" for i in range(30)))
Console().print(table)
Console().print("a long line " * 20)
"""


@pytest.mark.parametrize("columns", ["40", "200"])
def test_a_pipe_has_no_width(columns):
    """A table is printed at its full width, and no line is broken."""
    result = subprocess.run(
        [sys.executable, "-c", PRINTS],
        env={**os.environ, "COLUMNS": columns},
        capture_output=True,
        text=True,
        check=True,
    )
    title, head, row, caption, line = result.stdout.splitlines()
    assert title == "scores of [a]" and caption.strip() == "a caption " * 19 + "a caption" and len(line.split()) == 60
    assert head.split() == ["score", *(word for i in range(30) for word in ("part", str(i)))] and len(head) == len(row)
    assert row.split() == ["f1", *(f"0.{i}" for i in range(30))]


# The C library's allocator


class Mallinfo(ctypes.Structure):
    _fields_ = [(f"_{number}", ctypes.c_size_t) for number in range(10)]


@pytest.mark.parametrize("name", ["MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"])
def test_settings_of_the_user_are_kept(name):
    assert not return_large_blocks({name: "1"})


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="a matter of glibc 2.33"
)
def test_a_freed_large_block_goes_back_to_the_system():
    """In a new process, whose heap has no hole that is large enough."""
    process = multiprocessing.get_context("spawn").Process(target=check_large_blocks)
    process.start()
    process.join()
    assert process.exitcode == 0


def check_large_blocks():
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype, libc.malloc.restype, libc.free.argtypes = Mallinfo, ctypes.c_void_p, [ctypes.c_void_p]
    assert return_large_blocks({})
    for _ in range(3):  # by default, glibc keeps the second block of a size that was freed before
        size = libc.mallinfo2()._4  # bytes in mapped blocks
        block = libc.malloc(ctypes.c_size_t(2 * MMAP_THRESHOLD))
        assert libc.mallinfo2()._4 - size >= 2 * MMAP_THRESHOLD
        libc.free(block)
        assert libc.mallinfo2()._4 == size
