# SPDX-License-Identifier: Apache-2.0
"""Reads a system.toml. All problems are reported together, each in a line `file:line: what; what to do`."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Collection
from decimal import Decimal
from pathlib import Path as FilePath
from typing import Any, get_args

import tomli
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tide_tools.errors import UsageError
from tide_tools.system.check import check, not_played
from tide_tools.system.locate import Path, locate
from tide_tools.system.model import System
from tide_tools.system.sizes import check_types, with_sizes

MOST_BYTES = 512 * 2**20
MOST_LINES = 20  # most problems that are reported together


class SystemFileError(UsageError):
    """A description cannot be used. `lines` has one line for each problem, in the order of the file."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def load(file: str | FilePath) -> System:
    """The system that the file describes. Raises SystemFileError."""
    file = FilePath(file)
    try:
        with file.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        other = f", or write it with tide new system {file}" if isinstance(error, FileNotFoundError) else ""
        raise SystemFileError([f"{file}: cannot be read: {error.strerror}; check the path{other}"]) from None
    if len(data) > MOST_BYTES:
        raise SystemFileError([f"{file}: has more than {MOST_BYTES // 2**20} MB; give a system.toml"])
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SystemFileError([f"{file}:{line}: is not UTF-8 text; save the file as UTF-8"]) from None
    return parse(text, str(file))


def parse(text: str, name: str = "system.toml") -> System:
    """Like load, but reads a text. `name` is used as the file name in messages."""
    if text.startswith("\ufeff"):
        raise SystemFileError([f"{name}:1: begins with a byte order mark; save the file as UTF-8 without it"])
    system, findings = with_sizes(_read(text, name))
    findings = findings or [*check_types(system), *check(system)]
    if findings:
        raise _report(name, locate(text), [(finding.path, finding.what, finding.remedy) for finding in findings])
    return system


def _number(text: str) -> Decimal:
    """The exact number, without an exponent: 2e6 becomes 2000000."""
    number = Decimal(text)
    is_short = number.is_finite() and -30 < number.adjusted() < 30
    return Decimal(format(number, "f")) if is_short else number


def _read(text: str, name: str) -> System:
    try:
        data = tomli.loads(text, parse_float=_number)
    except tomli.TOMLDecodeError as error:
        raise SystemFileError([_syntax_line(str(error), text, name)]) from None
    try:
        return System.model_validate(data)
    except ValidationError as error:
        details = [one for one in error.errors() if not _is_echo(one)]
        misspelt = _misspelt(details, data)
        problems = [_shape_problem(one, data) for one in details if _real_path(one["loc"], data) not in misspelt]
        raise _report(name, locate(text), problems) from None


def require_played(file: str | FilePath, system: System, given: Collection[str] | None = None) -> None:
    """Raises SystemFileError if a part of the description cannot be played. given: names of the executors in a run that
    are programs of the user; None: the description is for the simulator."""
    if problems := [(one.path, one.what, one.remedy) for one in not_played(system, given)]:
        raise SystemFileError(problem_lines(file, problems))


def problem_lines(file: str | FilePath, problems: list[tuple[Path, str, str]]) -> list[str]:
    """Formats problems that a command finds after loading like those that load reports."""
    lines = locate(FilePath(file).read_text(encoding="utf-8"))
    return _report(str(file), lines, problems).lines


# The analysis names the part of a chain on one board by the chain's name, '#' and a number.
_ENTRY = re.compile(r"chain '(?P<chain>[^'#]*)(?P<number>[^']*)'(?:, callback '(?P<callback>[^']*)')?: ")


def placed_lines(file: str | FilePath, problems: list[str]) -> list[str]:
    """The lines of the analysis about a refused description, each with the file and the line number in front."""
    text = FilePath(file).read_text(encoding="utf-8")
    chains = tomli.loads(text).get("chains", [])
    places = locate(text)
    placed = []
    for line in problems:
        match = _ENTRY.match(line)
        index = next((n for n, one in enumerate(chains) if match and one["name"] == match["chain"]), None)
        if match is None or index is None:
            placed.append(f"{file}: {line}")
            continue
        callbacks = chains[index]["callbacks"]
        place = next((n for n, one in enumerate(callbacks) if one["name"] == match["callback"]), None)
        path = ("chains", index) if place is None else ("chains", index, "callbacks", place)
        named = line[: match.start("number")] + line[match.end("number") :]
        placed.append(f"{file}:{places[path]}: {named}")
    return placed


def _report(name: str, lines: dict[Path, int], problems: list[tuple[Path, str, str]]) -> SystemFileError:
    placed = sorted({(_line_of(path, lines), what, remedy) for path, what, remedy in problems})
    told = [f"{name}:{line}: {what}; {remedy}" for line, what, remedy in placed[:MOST_LINES]]
    more = placed[MOST_LINES:]
    if more:
        told.append(f"{name}:{more[0][0]}: {len(more)} more problems from here on; correct those above first")
    return SystemFileError(told)


def _line_of(path: Path, lines: dict[Path, int]) -> int:
    """The line of the entry, or of the nearest entry that contains it."""
    while path not in lines:
        path = path[:-1]
    return lines[path]


def _syntax_line(message: str, text: str, name: str) -> str:
    match = re.search(r"\(at line (\d+), column \d+\)", message)
    line = int(match.group(1)) if match else text.count("\n") + 1
    what = re.sub(r"\s*\(at (line \d+, column \d+|end of document)\)", "", message)
    what = re.sub(r"\((('[^']*',? ?)+)\)", lambda found: f"[{'.'.join(re.findall(_QUOTED, found[1]))}]", what)
    for wording, ours in _TOML_WORDS.items():
        what = re.sub(wording, ours, what)
    what = what[:1].lower() + what[1:]
    remedy = "remove one of the two" if "twice" in what else "correct the TOML syntax"
    remedy += "; each entry of a list begins with [[...]]" if "declared twice" in what else ""
    return f"{name}:{line}: {what}; {remedy}"


_QUOTED = "'([^']*)'"
_TOML_WORDS = {  # by message of the TOML parser: this module's words for it
    "Cannot declare (.*) twice": r"\1 is declared twice",
    "Cannot overwrite a value": "a key is set twice",
    "Cannot mutate immutable namespace (.*)": r"\1 is set twice, and the first time completely",
    "Duplicate inline table key (.*)": r"key \1 is set twice",
}


def _real_path(location: tuple[str | int, ...], data: Any) -> Path:
    """The path of an entry in the file, from pydantic's location. This may contain the tag of a union, so only steps
    that exist in the data are kept."""
    path: list[str | int] = []
    for number, step in enumerate(location):
        inside_list = isinstance(data, list) and isinstance(step, int)
        inside_table = isinstance(data, dict) and (step in data or number == len(location) - 1)
        if inside_list or inside_table:
            path.append(step)
            data = data[step] if inside_list or step in data else None
    return tuple(path)


def _misspelt(details: list[ErrorDetails], data: Any) -> set[Path]:
    """The missing keys for which there is a similar unknown key. Both errors are caused by one misspelt key, and are
    reported only as the unknown key."""
    paths: dict[str, list[Path]] = {"missing": [], "extra_forbidden": []}
    for one in details:
        paths.setdefault(one["type"], []).append(_real_path(one["loc"], data))
    return {
        missing
        for missing in paths["missing"]
        for unknown in paths["extra_forbidden"]
        if missing[:-1] == unknown[:-1] and _near(str(unknown[-1]), sorted(_known_keys(missing[:-1]))) == missing[-1]
    }


def _near(key: str, known: list[str]) -> str | None:
    return next(iter(difflib.get_close_matches(key, known, n=1)), None)


def _is_echo(details: ErrorDetails) -> bool:
    """True for an error that only follows from others: pydantic reports a list with invalid entries also as too
    short."""
    return details["type"] == "too_short" and bool(details["input"])


def _shape_problem(details: ErrorDetails, data: dict[str, Any]) -> tuple[Path, str, str]:
    path = _real_path(details["loc"], data)
    key = path[-1] if path else "the file"
    kind = details["type"]
    context = details.get("ctx", {})
    if kind == "extra_forbidden":
        return path, f"unknown key '{key}'{_place(path)}", _nearest_key(path, str(key))
    if kind == "missing":
        return path, f"{_place(path).removeprefix(' in ') or 'the file'} lacks '{key}'", f"add {_written(path)}"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        what = "a link's kind must be 'serial', 'usb_cdc', 'udp' or 'tcp'"
        remedy = (
            'write kind = "serial", for example; the agent does not support CAN FD, and a bus behind a board is part '
        )
        return path, what, remedy + "of execution_ms"
    if kind == "literal_error":
        return path, f"'{key}' is {_shown(details['input'])}", f"write {context['expected']}"
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal"):
        limit = next(context[name] for name in ("gt", "ge", "lt", "le") if name in context)
        words = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}
        word = next(words[name] for name in words if name in context)
        return path, f"'{key}' is {_shown(details['input'])}", f"it must be {word} {limit}"
    if kind == "value_error":
        return path, f"'{key}' is {_shown(details['input'])}", f"it {context['error']!s}"
    if kind == "too_short":
        return path, f"'{key}' is empty", "add at least one entry"
    if kind == "too_long":
        return path, f"'{key}' has {context['actual_length']} entries", f"at most {context['max_length']} are possible"
    if kind == "string_too_long":
        return path, f"'{key}' has {len(details['input'])} letters", f"at most {context['max_length']} are possible"
    if kind == "string_pattern_mismatch":
        return path, f"'{key}' is {_shown(details['input'])}", _pattern_advice(path)
    if kind in ("int_type", "int_from_float"):
        return path, f"'{key}' is {_shown(details['input'])}", "write a whole number"
    if kind in ("model_type", "model_attributes_type", "tuple_type"):
        wanted = "a list of tables" if kind == "tuple_type" else "a table"
        if len(path) == 1:
            wanted += f", each below a line [[{key}]]" if kind == "tuple_type" else f", [{key}]"
        return path, f"{_place((*path, ''))[4:] or repr(key)} is {_shown(details['input'])}", f"write {wanted}"
    expected = details["msg"].removeprefix("Input should be ").lower()
    return path, f"'{key}' is {_shown(details['input'])}", f"write {expected}"


def _written(path: Path) -> str:
    """What the line of the entry looks like in a file: `[[chains]]` for a table, `name = ...` for a key."""
    key = str(path[-1])
    if len(path) > 1:
        return f"[[chains.{key}]]" if path[0] == "chains" and key == "callbacks" else f"{key} = ..."
    return f"[{key}]" if key == "system" else f"[[{key}]]"


def _pattern_advice(path: Path) -> str:
    key = str(path[-1])
    if key == "type" and path[-2] in ("requests", "replies"):
        return "write it as package/srv/Name, for example std_srvs/srv/Trigger"
    if key == "type":
        return "write it as package/msg/Name, for example std_msgs/msg/String"
    if key not in ("topic", "service"):
        return "it must be a lower-case name: letters, digits and _, with a letter first"
    return "write letters, digits and _ in parts joined by /, for example brake/request"


def _place(path: Path) -> str:
    words = {
        "executors": "executor",
        "loads": "load",
        "links": "link",
        "groups": "group",
        "chains": "chain",
        "callbacks": "callback",
    }
    parts = [
        f"{words[str(step)]} {index + 1}"
        for step, index in itertools.pairwise(path)
        if step in words and isinstance(index, int)
    ]
    named = [step for step in path[-3:-1] if step in ("publishes", "requests", "replies", "system")]
    if named:
        parts.append(f"'{named[-1]}'")
    return " in " + " of ".join(reversed(parts)) if parts else ""


def _nearest_key(path: Path, key: str) -> str:
    known = sorted(_known_keys(path[:-1]))
    near = _near(key, known)
    return f"did you mean '{near}'?" if near else f"remove it, or use one of: {', '.join(known)}"


def _known_keys(path: Path) -> set[str]:
    models: list[type[BaseModel]] = [System]
    for step in path:
        if isinstance(step, str):
            models = [inner for model in models for inner in _models_in(model, step)]
    return {key for model in models for key in model.model_fields}


def _models_in(model: type[BaseModel], key: str) -> list[type[BaseModel]]:
    field = model.model_fields.get(key)
    found: list[type[BaseModel]] = []
    waiting: list[Any] = [field.annotation] if field else []
    while waiting:
        annotation = waiting.pop()
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            found.append(annotation)
        waiting.extend(get_args(annotation))
    return found


def _shown(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (dict, list)):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
