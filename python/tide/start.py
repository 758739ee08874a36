# SPDX-License-Identifier: Apache-2.0
"""The first and the last thing that `tide` does: quiet while it loads and when it is over, whatever interrupts it."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Until a command has something to tidy up, and after it has, Ctrl-C ends the process as it ends any other: a
    KeyboardInterrupt in the middle of an import would only print where that was."""
    _end_at_once()
    status: object = 1
    try:
        from tide.main import app

        app()
    except SystemExit as ending:
        status = ending.code
        raise
    finally:
        _end_at_once()
        _flush(status)


def _end_at_once() -> None:
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _flush(status: object) -> None:
    """What could not be printed is an error too, which Python would tell as an ignored exception."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"standard output: cannot be written: {error.strerror}; choose another place", file=sys.stderr)
        if status in (0, None):
            raise SystemExit(2) from None
