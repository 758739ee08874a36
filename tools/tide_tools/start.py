# SPDX-License-Identifier: Apache-2.0
"""Start and end of `tide`. An interruption while it loads or ends prints nothing."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # the import of signal takes longer


def _end_at_once() -> None:
    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


_end_at_once()

import errno  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402


def main() -> None:
    """Runs `tide`. Before a command needs clean-up, and after that, Ctrl-C ends the process at once, because a
    KeyboardInterrupt during an import would only print a traceback."""
    _end_at_once()
    status: object = 1
    try:
        from tide_tools.main import app

        app()
    except SystemExit as ending:
        status = ending.code
        raise
    except OSError as error:
        if error.errno not in _OF_THE_OUTPUT or error.filename is not None:
            status = _tell_defect()
            raise SystemExit(status) from None
        status = _refuse(error)
        raise SystemExit(status) from None
    except Exception:
        status = _tell_defect()
        raise SystemExit(status) from None
    finally:
        _end_at_once()
        _flush(status)


DEFECT = 70  # EX_SOFTWARE, an exit status that no verdict uses


def _tell_defect() -> int:
    sys.excepthook(*sys.exc_info())
    print("this is a defect of tide, not of your input: please report it with the text above", file=sys.stderr)
    return DEFECT


_OF_THE_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _flush(status: object) -> None:
    """Flushes the output. If it cannot be printed, this is an error, too; Python would only report an ignored
    exception."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _silence()
    except OSError as error:
        new = _refuse(error)
        if status in (0, None):
            raise SystemExit(new) from None


def _refuse(error: OSError) -> int:
    _silence()
    print(
        f"standard output: cannot be written: {(error.strerror or '').lower()}; choose another place", file=sys.stderr
    )
    return 2


def _silence() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
