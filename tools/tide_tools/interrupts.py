# SPDX-License-Identifier: Apache-2.0
"""Handles Ctrl-C and SIGTERM: both end a command, after its clean-up. A shielded block delays them until it ends; none
is lost.

A command without clean-up keeps the default of the system: the signal ends it at once."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_AGAIN_S = 0.01
_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class _State:
    shields = 0  # number of open shielded blocks
    waiting = False  # true if an interruption arrived within a shielded block
    raised = False  # true if an interruption was raised since the outermost block began


def _interrupt(*_: object) -> None:
    if _State.shields:
        _State.waiting = True
        return
    _State.raised = True
    if not _is_ending():
        raise KeyboardInterrupt


def _is_ending() -> bool:
    """True while an earlier interruption is being handled. A second one would disturb the clean-up, for example a
    condition that takes its lock again, and so appear as another error."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _is_ours() -> bool:
    return signal.getsignal(signal.SIGINT) is _interrupt or signal.getsignal(signal.SIGTERM) is _interrupt


def _is_caused_by_interruption(error: BaseException | None) -> bool:
    """True if C code has turned an interruption into this error (for example into a SystemError), whose __cause__ is
    then the interruption. An error during clean-up has no __cause__."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return _State.raised
        error = error.__cause__
    return False


@contextmanager
def interruptible() -> Iterator[None]:
    """In this block, SIGINT and SIGTERM raise KeyboardInterrupt. If a finalizer or a library swallows it, it is raised
    again, at the end of the block at the latest. If a library turns it into an error of its own, KeyboardInterrupt
    replaces this error. A signal that was ignored before, as under nohup, remains ignored. Use this only in the main
    thread: only this thread can set the handlers, and they run in it."""
    if threading.current_thread() is not threading.main_thread() or _is_ours():
        yield
        return
    before = {number: signal.getsignal(number) for number in _NUMBERS}
    hook = sys.unraisablehook

    def again(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            threading.Timer(
                _AGAIN_S, _thread.interrupt_main
            ).start()  # a moment later, because the interpreter would swallow an exception of this hook, too
        else:
            hook(unraisable)

    _State.raised = False
    try:
        sys.unraisablehook = again
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, _interrupt)
        yield
    except Exception as error:
        if not _is_caused_by_interruption(error):
            raise
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)
    if _State.raised:
        raise KeyboardInterrupt


@contextmanager
def shielded() -> Iterator[None]:
    """An interruption in this block is raised at its end. For steps that must not stop halfway, such as starting and
    registering a child, ending all children, or writing several files that belong together."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with interruptible():
        _State.shields += 1
        try:
            yield
        finally:
            _State.shields -= 1
            if _State.waiting and not _State.shields:
                _State.waiting = False
                _interrupt()
