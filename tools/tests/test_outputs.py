# SPDX-License-Identifier: Apache-2.0
"""Files and folders that commands write: commands check before the work whether they can write them, write them beside
their place and rename them, and never leave them half-written."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from commands import tide
from tide_tools.outputs import OutputError, require_file, require_folder, results_folder, write_text, written

ROOT = Path(__file__).parents[2]
EXAMPLE = "examples/three_chains/system.toml"
FOLDERS = (f"run {EXAMPLE} --out", f"simulate {EXAMPLE} --out", "generate std_msgs --out")
FILES = (
    f"trace times {EXAMPLE} examples/README.md --out",
    f"footprint {EXAMPLE} --header",
    f"check {EXAMPLE} --plot",
    f"optimise {EXAMPLE} --write",
    "trace describe tools/tests/data/describe --out",
    f"trace export {EXAMPLE} --to csv --out",
)


@contextlib.contextmanager
def full_disk(left_bytes: int = 0) -> Iterator[None]:
    """During the block, no file can grow beyond this size, which for programs is like a full disk. Python must not
    store compiled modules then: it would store half of one, and every later import of it would fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (left_bytes, hard))
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def refused(command: str, place: Path | str) -> str:
    """Checks that the command refuses its arguments, and returns the one line that it prints."""
    status, output = tide(*command.split(), place)
    assert status == 2, f"{command}: {output}"
    (line,) = output.splitlines()
    assert line.startswith(f"{place}") and ": cannot be written: " in line and "; " in line.rpartition(": ")[2], line
    return line


def test_every_command_tries_its_output_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_work(*_: object, **__: object) -> None:
        raise AssertionError("work began")

    monkeypatch.setattr(subprocess.Popen, "__init__", no_work)
    monkeypatch.chdir(ROOT)
    file = tmp_path / "file.toml"
    file.write_text("mine", encoding="utf-8")
    for command in (*FOLDERS, *FILES):
        assert f"'{file}' is not a folder" in refused(command, file / "x.png"), command
        with full_disk():
            assert "file too large" in refused(command, tmp_path / "x.png"), command
    for command in FOLDERS:
        with full_disk():
            refused(command, tmp_path / "deep" / "results")  # the command removes the folders that it has created
    assert [one.name for one in tmp_path.iterdir()] == ["file.toml"] and file.read_text(encoding="utf-8") == "mine"


def test_each_reason_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for require, place, what in (
        (require_folder, file, "is not a folder"),
        (require_folder, Path("/proc/none"), "no such file or directory"),
        (require_file, tmp_path, "is a directory; name a file in it"),
        (require_file, Path("/proc/none.png"), "no such file or directory"),
        (require_file, tmp_path / "none/x.png", f"there is no folder '{tmp_path}/none'; create it"),
    ):
        with pytest.raises(OutputError, match="cannot be written") as error:
            require(place)
        assert what in str(error.value), error.value


def test_a_disk_that_gets_full_leaves_the_old_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    picture = tmp_path / "x.svg"
    picture.write_bytes(b"old")
    with full_disk(2000):
        status, result = tide("check", EXAMPLE, "--plot", picture)
    assert status == 2 and f"{picture}: cannot be written: file too large" in result
    assert picture.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.svg"]


def test_a_disk_that_gets_full_leaves_the_old_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (tmp_path / "results.json").write_text("old", encoding="utf-8")
    with full_disk(2000):
        status, output = tide("simulate", EXAMPLE, "--runs", "2", "--out", tmp_path)
    assert status == 2 and f"{tmp_path}: cannot be written: file too large" in output, output
    assert {entry.name: entry.read_text(encoding="utf-8") for entry in tmp_path.iterdir()} == {"results.json": "old"}


def test_what_was_printed_in_vain_is_one_line() -> None:
    for words in (["show", "--as", "schema"], ["check", EXAMPLE], ["check", "--help"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            command = [sys.executable, "-m", "tide_tools.main", *words]
            environment = {**os.environ, "PYTHONPATH": f"{ROOT}/tools:{ROOT}/ros"}
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
        assert done.returncode == 2
        assert done.stderr == "standard output: cannot be written: no space left on device; choose another place\n"


def test_a_new_project_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    """The sources are copied as trees. The message about a failed copy must name the cause, too."""
    place, other = tmp_path / "deep/down", tmp_path / "mine"
    for size in (0, 20_000):  # with 0, no file fits; with the other, some sources do
        with full_disk(size):
            status, output = tide("new", "firmware", "robot", "--in", place)
        assert status == 2 and output.startswith(f"{place}/robot: cannot be written: file too large; "), output
        assert not any(tmp_path.iterdir())
    status, output = tide("new", "firmware", "robot", "--in", place, COLUMNS="1000")
    assert status == 0 and f"(folders created: {place.parent}, {place})" in output, output
    assert (
        tide("new", "firmware", "robot", "--in", place)[1]
        == f"{place}/robot exists; choose another name, or remove it\n"
    )
    other.mkdir()
    assert "created" not in tide("new", "firmware", "robot", "--in", other)[1]
    (tmp_path / "file").touch()
    assert f"'{tmp_path}/file' is not a folder" in tide("new", "firmware", "robot", "--in", tmp_path / "file")[1]


def test_a_failure_in_the_middle_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    with pytest.raises(RuntimeError), written(file) as beside:
        beside.write_text("half", encoding="utf-8")
        raise RuntimeError
    assert not list(tmp_path.iterdir())
    write_text(file, "whole")
    file.chmod(0o640)
    with pytest.raises(KeyboardInterrupt), written(file) as beside:
        beside.write_text("half", encoding="utf-8")
        raise KeyboardInterrupt
    assert [entry.name for entry in file.parent.iterdir()] == ["file.txt"]
    assert file.read_text(encoding="utf-8") == "whole"
    write_text(file, "new")
    assert (file.read_text(encoding="utf-8"), file.stat().st_mode & 0o777) == ("new", 0o640)


def test_a_link_and_a_pipe_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old", encoding="utf-8")
    (tmp_path / "link").symlink_to("target")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_text(encoding="utf-8") == "new"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    require_file(pipe)
    write_text(pipe, "told")
    reader.join(10)
    assert said == ["told"] and pipe.is_fifo()


def entries(folder: Path) -> dict[str, str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in found}


def test_results_take_their_place_together(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    with results_folder(folder, ("*.png", "tide")) as place:
        (place / "results.json").write_text("1", encoding="utf-8")
        (place / "tide").mkdir()
        (place / "tide" / "log").write_text("1", encoding="utf-8")
        (place / "a.png").write_text("1", encoding="utf-8")
        assert entries(folder).keys() == {f"unfinished/{name}" for name in ("results.json", "tide/log", "a.png")}
    first = entries(folder)
    assert first == {"results.json": "1", "tide/log": "1", "a.png": "1"}
    (folder / "mine.txt").write_text("mine", encoding="utf-8")
    for failure in (KeyboardInterrupt, ValueError):
        with pytest.raises(failure), results_folder(folder, ("*.png", "tide")) as place:
            (place / "results.json").write_text("2", encoding="utf-8")
            raise failure
        assert entries(folder) == {**first, "mine.txt": "mine"}
    with pytest.raises(typer.Exit), results_folder(folder, ("*.png", "tide")) as place:
        (place / "results.json").write_text("3", encoding="utf-8")
        raise typer.Exit(3)  # this exit status is a verdict, not a failure
    assert entries(folder) == {"results.json": "3", "mine.txt": "mine"}


def test_logs_of_a_failure_stay_until_the_next_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="why"), results_folder(tmp_path, keep=(ValueError,)) as place:
        (place / "log").write_text("why", encoding="utf-8")
        raise ValueError("why")
    assert entries(tmp_path) == {"unfinished/log": "why"}
    with results_folder(tmp_path) as place:
        assert not list(place.iterdir())
    assert entries(tmp_path) == {}


def test_one_command_at_a_time_writes_to_a_folder(tmp_path: Path) -> None:
    with results_folder(tmp_path) as place:
        (place / "mine").touch()
        with pytest.raises(OutputError, match="another command is writing there; wait"), results_folder(tmp_path):
            raise AssertionError("both write")
        assert (place / "mine").exists()
    assert (tmp_path / "mine").exists()
