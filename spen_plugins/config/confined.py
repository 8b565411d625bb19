"""Functions called in a process that may take only so much time and memory, and that can be interrupted.

A config file is a program (jsonnet), or may stand for a table that is exponentially larger (YAML), and what reads it
can't be stopped from inside. The process is a bare interpreter, started at the first call, used for the next ones, and
ended after `IDLE` seconds without one. Nothing is forked, so the caller may have threads.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from spen_plugins.errors import ConfigError

SECONDS = 3
"""Most processor time of a call, where the system can limit it."""
WAIT = 60
"""Seconds after which a call has failed in any case."""
MEMORY = 2**30
"""Bytes of addresses that the process may take, where the system can limit them."""
LONGEST = 2**22
"""Characters of an answer."""
DEEPEST = 200
"""Frames for writing an answer; each table in a table takes one."""
IDLE = 10

_lock = threading.Lock()
_kept: tuple[int, subprocess.Popen[str]] | None = None  # with the process that started it, whose forks have their own


def call(function: str, path: Path, *arguments: Any) -> Any:
    """The value of a function, computed in the process.

    Args:
        function: `module:name`.
        path: its first argument, the file that is at fault if a limit is reached.
        arguments: JSON values, its other arguments.

    Raises:
        ConfigError: as the function; or it takes too much time or memory, or its value is too large.
    """
    request = json.dumps([SECONDS, function, str(Path.cwd()), str(path), *arguments]) + "\n"
    with _lock:
        line, why = _asked(request)
        if _was_idle(why):  # it ended just when it was asked
            line, why = _asked(request)
    if not line:
        raise ConfigError(f"{path}: can't be evaluated: it takes more than {_limit_of(why)}")
    answer = json.loads(line)
    if "error" in answer:
        raise ConfigError(answer["error"])
    return answer["value"]


_TOO_LARGE = f"{MEMORY >> 30} GiB of memory, or is nested too deeply"


def _limit_of(status: int) -> str:
    """What the process took too much of, by its exit status."""
    if status == -getattr(signal, "SIGXCPU", 0):
        return f"{SECONDS} seconds"
    if status in (-getattr(signal, "SIGKILL", 0), 1):  # 1: on Windows
        return f"{WAIT} seconds"
    return _TOO_LARGE


def _was_idle(status: int) -> bool:
    return hasattr(signal, "SIGALRM") and status == -signal.SIGALRM


def _asked(request: str) -> tuple[str, int]:
    """The line answered, empty if the process ended, and its exit status then."""
    global _kept
    if _kept is None or _kept[0] != os.getpid() or _kept[1].poll() is not None:
        _kept = os.getpid(), _started()
    process = _kept[1]
    assert process.stdin is not None and process.stdout is not None
    timer = threading.Timer(WAIT, process.kill)
    timer.start()
    try:
        with suppress(BrokenPipeError):
            process.stdin.write(request)
            process.stdin.flush()
        line = process.stdout.readline()
    except BaseException:  # Ctrl-C among them
        process.kill()
        process.communicate()
        raise
    finally:
        timer.cancel()
    return line, 0 if line else process.wait()


def _started() -> subprocess.Popen[str]:
    # Without `site`, which would import what other packages want at start; so it is told where packages are.
    folders = [str(Path(__file__).parents[2]), *filter(None, sys.path)]
    code = f"import sys; sys.path += {folders!r}; import {__name__}; {__name__}._serve()"
    line = [sys.executable, "-I", "-S", "-c", code]
    # A session of its own gets no signals of the terminal.
    return subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=os.name == "posix"
    )


@atexit.register
def _end() -> None:
    if _kept is not None and _kept[0] == os.getpid():
        _kept[1].kill()
        _kept[1].communicate()


# In the process


def _serve() -> None:
    """Answer each line of standard input."""
    answers, sys.stdout = sys.stdout, sys.stderr
    _limit("RLIMIT_AS", MEMORY)
    _limit("RLIMIT_CORE", 0)
    while True:
        if hasattr(signal, "alarm"):
            signal.alarm(IDLE)
        line = sys.stdin.readline()
        if hasattr(signal, "alarm"):
            signal.alarm(0)
        if not line:
            return
        seconds, *request = json.loads(line)
        _limit("RLIMIT_CPU", int(time.process_time()) + seconds + 1)
        try:
            answers.write(_answer(*request) + "\n")
            answers.flush()
        except BrokenPipeError:  # who asked was killed
            os._exit(0)


def _limit(name: str, value: int) -> None:
    """Lower a soft limit, on systems that have it."""
    with suppress(ImportError, AttributeError, OSError, ValueError):
        import resource

        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        resource.setrlimit(number, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _answer(function: str, folder: str, path: str, *arguments: Any) -> str:
    module, _, name = function.partition(":")
    try:
        os.chdir(folder)
        value = getattr(importlib.import_module(module), name)(Path(path), *arguments)
        return "".join(_pieces({"value": value}, path))
    except ConfigError as error:
        said = str(error)
    except MemoryError:
        said = f"{path}: can't be evaluated: it takes more than {_TOO_LARGE}"
    except RecursionError:
        said = f"{path}: can't be evaluated: it is nested too deeply"
    except (OSError, ValueError, TypeError) as error:
        said = f"{path}: can't be evaluated: {error}"
    return json.dumps({"error": said})


def _pieces(value: Any, path: str) -> Iterator[str]:
    """JSON, which ends as soon as it is too long: a value may hold a table many times."""
    before, length = sys.getrecursionlimit(), 0
    sys.setrecursionlimit(DEEPEST)
    try:
        for piece in json.JSONEncoder().iterencode(value):
            length += len(piece)
            if length > LONGEST:
                raise ConfigError(f"{path}: found a config of more than {LONGEST:,} characters; expected a smaller one")
            yield piece
    finally:
        sys.setrecursionlimit(before)
