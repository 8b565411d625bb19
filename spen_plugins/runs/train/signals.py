"""Signals and errors that stop a run, and how to go on then."""

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
    """The first Ctrl-C (or SIGTERM) asks the loop to save and stop; a second one stops at once."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in handlers.items() if handler is not None}  # None: not Python's own

    def ask(number: int, _: Any) -> None:
        stop.set()
        signal.signal(number, before[number])

    for number in before:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def training(afterwards: str) -> Iterator[threading.Event]:
    """As `interrupts`, for a loop that trains: an error that stops it ends in a sentence on how to go on, `afterwards`,
    and memory that runs out, or a mistake in a component, is an error, too."""
    try:
        with interrupts() as stop, translate_memory_errors("training"), translate_mistakes():
            yield stop
    except (Interrupted, ProcessLost, PluginError) as error:
        raise type(error)(f"{error}. {afterwards}") from error


@contextmanager
def last_evaluation(afterwards: str) -> Iterator[None]:
    """Inside, Ctrl-C is an error that says how to go on: training is done."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"stopped during the last evaluation; training is done and saved. {afterwards}") from None
