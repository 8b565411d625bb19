"""Signals and errors that stop a run, with advice on how to continue."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from spen_plugins.errors import Interrupted, PluginError
from spen_plugins.loop.mistakes import translate_mistakes
from spen_plugins.loop.processes import ProcessLost
from spen_plugins.loop.torch_modes import translate_memory_errors


@contextmanager
def interrupts() -> Iterator[threading.Event]:
    """Makes the first Ctrl-C (or SIGTERM) ask the loop to save and stop; a second one stops at once."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # A handler that Python did not set is None, and can't be restored.
    restorable = {number: handler for number, handler in handlers.items() if handler is not None}

    def request_stop(number: int, _: Any) -> None:
        stop.set()
        signal.signal(number, restorable[number])

    for number in restorable:
        signal.signal(number, request_stop)
    try:
        yield stop
    finally:
        for number, handler in restorable.items():
            signal.signal(number, handler)


@contextmanager
def training(afterwards: str) -> Iterator[threading.Event]:
    """`interrupts` for a training loop: errors that stop it end in `afterwards`, a sentence on how to continue. Also
    translates running out of memory, and mistakes in components, to errors."""
    try:
        with interrupts() as stop, translate_memory_errors("training"), translate_mistakes():
            yield stop
    except (Interrupted, ProcessLost, PluginError) as error:
        raise type(error)(f"{error}. {afterwards}") from error


@contextmanager
def last_evaluation(afterwards: str) -> Iterator[None]:
    """Translates Ctrl-C to an error that says how to continue, because training is done."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"stopped during the last evaluation; training is done and saved. {afterwards}") from None
