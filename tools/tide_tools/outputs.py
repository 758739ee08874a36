# SPDX-License-Identifier: Apache-2.0
"""Files and folders that a command writes. Before any work, the command tests whether it can write them. Until it is
complete, output has a temporary name, so that a failure or an interruption leaves the previous file unchanged."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import fnmatch
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import typer

from tide_tools.errors import UsageError
from tide_tools.interrupts import interruptible, shielded

UNFINISHED = "unfinished"
SYSTEM, RESULTS = "system.toml", "results.json"  # in the folder of a run or recording
_PROBE = bytes(4096)
_REMEDIES = {
    errno.ENOSPC: "free some space, or choose another place",
    errno.EDQUOT: "free some space, or choose another place",
    errno.EISDIR: "name a file in it",
    errno.ENAMETOOLONG: "choose a shorter name",
}
_OF_THE_PLACE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO)


class OutputError(UsageError):
    """A path cannot be written. The text says which path, why, and what to do."""


def require_file(path: Path | None) -> None:
    """Raises OutputError if the file cannot be written; leaves no file behind. path None: nothing is to be written, and
    nothing is tested."""
    if path is None or str(path) == "-":
        return
    with _told(path):
        if _is_special(path):
            _require_access(path)
        else:
            _probe(_target(path).parent)


def require_folder(folder: Path) -> None:
    """Like `require_file`, for files in a folder."""
    with _told(folder):
        made = _make_folders(folder)
        try:
            _probe(folder)
        finally:
            _remove_empty(made)


@contextlib.contextmanager
def written(path: Path, synchronise: bool = True) -> Iterator[Path]:
    """Yields a temporary name next to `path`, with the same suffix; if the block succeeds, the file replaces `path`.
    For a device or pipe it yields `path` itself. synchronise: wait until the data is on disk, because some file systems
    report only then that the disk is full. Raises OutputError."""
    if _is_special(path):
        with _told(path):
            yield path
        return
    with interruptible(), _told(path):
        target = _target(path)
        beside = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
        try:
            os.close(os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o666))
            if target.exists():
                shutil.copymode(target, beside)
            yield beside
            if synchronise:
                _synchronise(beside)
            beside.replace(target)
        finally:
            with contextlib.suppress(OSError):
                beside.unlink()


def write_text(path: Path, text: str) -> None:
    """Writes the text in UTF-8, in the way of `written`."""
    with written(path) as beside:
        beside.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def new_folder(path: Path, made: list[Path]) -> Iterator[Path]:
    """Yields a temporary folder that becomes `path` if the block succeeds; otherwise nothing is left. Missing folders
    above `path` are created; `made` receives them, the deepest first. Raises OutputError."""
    with interruptible(), _told(path):
        made += _make_folders(path.parent)
        try:
            with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as beside:
                work = Path(beside) / path.name
                work.mkdir()
                yield work
                work.rename(path)
        finally:
            _remove_empty(made)


@contextlib.contextmanager
def results_folder(
    folder: Path, replaces: Collection[str] = (), keep: tuple[type[Exception], ...] = ()
) -> Iterator[Path]:
    """Yields a folder for the results of one command. If the block succeeds (a typer.Exit counts as success), all its
    contents move into `folder` together. replaces: names or patterns of files of an earlier run, which are then
    removed. keep: after these errors, the partial results and the logs that explain the error stay in
    `folder`/unfinished until the next run. Only one command at a time may write to a folder. Raises OutputError."""
    with interruptible(), contextlib.ExitStack() as stack:
        with _told(folder):
            made = _make_folders(folder)
            stack.callback(_remove_empty, made)
            _lock(folder, stack)
            place = folder / UNFINISHED
            shutil.rmtree(place, ignore_errors=True)
            _probe(folder)
            place.mkdir()
        kept = False
        try:
            with _told(folder, lambda error: _is_of(error, place)):
                yield place
        except typer.Exit:
            _take_place(place, folder, replaces)
            raise
        except keep:
            kept = any(place.iterdir())
            raise
        else:
            _take_place(place, folder, replaces)
        finally:
            if not kept:
                with shielded():
                    shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def growing_folder(folder: Path) -> Iterator[None]:
    """Creates a folder for files that grow while the block runs. No other command can write to it in this time. Raises
    OutputError."""
    with interruptible(), contextlib.ExitStack() as stack:
        with _told(folder):
            made = _make_folders(folder)
            stack.callback(_remove_empty, made)
            _lock(folder, stack)
            _probe(folder)
        yield


class GrowingFile:
    """A file that consists of whole pieces. When `append` returns, the operating system has the piece; a piece that
    cannot be written completely is removed again. Raises OutputError."""

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, 0
        with _told(path):
            self._file = path.open("wb", buffering=0)

    def append(self, piece: bytes) -> None:
        with shielded(), _told(self.path):
            try:
                left = memoryview(piece)
                while left:
                    left = left[self._file.write(left) or 0 :]
            except OSError:
                with contextlib.suppress(OSError):
                    self._file.truncate(self.size)
                    self._file.seek(self.size)
                raise
            self.size += len(piece)

    def close(self) -> None:
        """Waits until the data is on disk, because some file systems report only then that the disk is full."""
        with _told(self.path), self._file:
            os.fsync(self._file.fileno())


def _take_place(place: Path, folder: Path, replaces: Collection[str]) -> None:
    names = sorted(entry.name for entry in place.iterdir())
    old = place / ".old"
    gone = [
        entry.name
        for entry in folder.iterdir()
        if entry.name != UNFINISHED
        and (entry.name in names or any(fnmatch.fnmatch(entry.name, one) for one in replaces))
    ]
    with _told(folder), shielded():
        old.mkdir()
        moved: list[tuple[Path, Path]] = []
        try:
            for source, target, every in ((folder, old, gone), (place, folder, names)):
                for name in every:
                    (source / name).rename(target / name)
                    moved.append((target / name, source / name))
        except OSError:
            for there, back in reversed(moved):
                there.rename(back)
            raise


def _lock(folder: Path, stack: contextlib.ExitStack) -> None:
    """Locks the folder until the stack is closed; after a crash, the operating system releases the lock. On a file
    system without locks, this does nothing."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    stack.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OutputError(
            f"{folder}: another command is writing there; wait until it ends, or choose another --out"
        ) from None
    except OSError:
        return


def _make_folders(folder: Path) -> list[Path]:
    """Creates the folder and missing folders above it, and returns those that it has created, the innermost first."""
    missing: list[Path] = []
    at = folder
    while not at.exists() and at != at.parent:
        missing.append(at)
        at = at.parent
    made: list[Path] = []
    try:
        for one in reversed(missing):
            one.mkdir(exist_ok=True)
            made.insert(0, one)
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    except OSError:
        _remove_empty(made)
        raise
    return made


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _probe(folder: Path) -> None:
    """Raises OSError if no file can be created and written in this folder."""
    probe = folder / f".probe.{os.getpid()}"
    try:
        probe.write_bytes(_PROBE)
        _synchronise(probe)
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


def _synchronise(path: Path) -> None:
    """Waits until the data is on disk, because some file systems report only then that the disk is full."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _target(path: Path) -> Path:
    """The file to which `path` leads through symbolic links. Raises OSError if the file exists and may not be
    replaced."""
    target = path.resolve()
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if target.exists():
        _require_access(target)
    return target


def _require_access(path: Path) -> None:
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _is_special(path: Path) -> bool:
    """True for a device, a pipe or a socket."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _is_of(error: OSError, place: Path) -> bool:
    """True if the error, which comes from the caller's block, is about the output path `place`."""
    name = error.filename if isinstance(error.filename, str | os.PathLike) else ""
    return error.errno in _OF_THE_PLACE or Path(name).is_relative_to(place)


@contextlib.contextmanager
def _told(path: Path, about: Callable[[OSError], bool] | None = None) -> Iterator[None]:
    try:
        yield
    except shutil.Error as error:  # from copytree: (from, to, text) for each file, where the text contains the errno
        number = re.match(r"\[Errno (\d+)\]", error.args[0][0][2])
        first = OSError(int(number[1]), os.strerror(int(number[1]))) if number else error
        raise OutputError(_line(path, first)) from None
    except OSError as error:
        if error.errno is None or (about is not None and not about(error)):
            raise
        raise OutputError(_line(path, error)) from None


def _line(path: Path, error: OSError) -> str:
    cause = (error.strerror or str(error)).lower()
    if error.errno == errno.ENOENT and not path.parent.exists():
        return f"{path}: cannot be written: there is no folder '{path.parent}'; create it, or choose another place"
    remedy = _REMEDIES.get(error.errno or 0, "choose another place")
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        blocking = next((one for one in (path, *path.parents) if one.exists() and not one.is_dir()), path)
        return f"{path}: cannot be written: '{blocking}' is not a folder; {remedy}"
    return f"{path}: cannot be written: {cause}; {remedy}"
