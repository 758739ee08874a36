# SPDX-License-Identifier: Apache-2.0
"""Compares the chains that a firmware's C source declares with the description: level, period and deadline. Only values
that can be read with certainty are compared; all others are reported. Values that the source takes from the header of
`tide footprint --header` come from the description and need no comparison."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tide_tools.errors import UsageError
from tide_tools.system.levels import levels_of_boards
from tide_tools.system.model import Chain, System

_CALL = re.compile(r"\btide_chain_init\s*\(")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# Matches values of macros and of members of an enum.
_CONSTANT = re.compile(r"#\s*define\s+(\w+)[ \t]+(\S+)|\b(\w+)\s*=\s*(\w+)\s*[,}]")
_UNITS = {"": 1, "RCL_US_TO_NS": 1_000, "RCL_MS_TO_NS": 1_000_000, "RCL_S_TO_NS": 1_000_000_000}
_DURATION = re.compile(rf"(?:({'|'.join(filter(None, _UNITS))})\s*\(\s*)?(\w+)\s*\)?")
_NUMBER = re.compile(r"(0x[0-9a-fA-F]+|\d+)[uUlL]*")


@dataclass(frozen=True)
class _Declared:
    line: int
    name: str | None
    level: int | str  # the source text, if the value is not a number
    period_ns: int | str
    deadline_ns: int | str


def differences(system: System, source: Path) -> list[str]:
    """A line for each number that differs or cannot be read, and for each chain that only the source or only the
    description has."""
    try:
        text = source.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"--firmware {source}: cannot be read: {error.strerror}; give a C source") from None
    if text.startswith("\x7fELF"):
        raise UsageError(
            f"--firmware {source}: is a compiled program without readable numbers; give the C source, or include the "
            "constants of tide footprint --header"
        )
    declared = list(_declared(_COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)))
    if not declared:
        return [f"{source}: no tide_chain_init"]
    lines: list[str] = []
    levels = levels_of_boards(system)
    chains = {chain.name: chain for chain in system.chains}
    for one in declared:
        where = f"{source}:{one.line}: "
        if one.name is None:
            lines.append(f"{where}the name of this chain is no string, so it cannot be compared")
        elif one.name not in chains:
            lines.append(f"{where}chain '{one.name}' is not described")
        else:
            known = {of[one.name] for of in levels.values() if one.name in of}
            lines += [where + line for line in _compared(system, chains[one.name], one, known)]
    boards = {board.name for board in system.boards()}
    names = {one.name for one in declared}
    lines += [
        f"{source}: chain '{chain.name}' is not declared"
        for chain in system.chains
        if chain.name not in names and any(one.executor in boards for one in chain.callbacks)
    ]
    return lines


def _compared(system: System, chain: Chain, one: _Declared, levels: set[int]) -> Iterator[str]:
    wanted = (
        ("level", one.level, levels, str, ""),
        ("period", one.period_ns, {system.timer_of(chain).period_ns}, _ms, "_NS"),
        ("deadline", one.deadline_ns, {chain.deadline_ns}, _ms, "_NS"),
    )
    for what, found, known, words, unit in wanted:
        its, told = f"chain '{chain.name}': its {what}", " or ".join(map(words, sorted(known)))
        if isinstance(found, int) and found not in known:
            yield f"{its} is {words(found)}, the description has {told}"
        elif isinstance(found, str) and found != f"CHAIN_{chain.name.upper()}_{what.upper()}{unit}":
            yield f"{its} '{found}' cannot be read here; the description has {told}"


def _ms(value_ns: int) -> str:
    return f"{value_ns / 1e6:g} ms"


def _declared(text: str) -> Iterator[_Declared]:
    constants = {found[1] or found[3]: found[2] or found[4] for found in _CONSTANT.finditer(text)}
    for call in _CALL.finditer(text):
        words = _arguments(text, call.end())
        if len(words) != 5 or words[0].startswith("tide_chain_t"):  # the declaration of tide_chain_init, not a call
            continue
        name = re.fullmatch(r'"([^"]*)"', words[1])
        line = text.count("\n", 0, call.start()) + 1
        times = (_time(word, constants) for word in words[3:])
        yield _Declared(line, name[1] if name else None, _number(words[2], constants), *times)


def _arguments(text: str, at: int) -> list[str]:
    found, depth, begin = [], 1, at
    for place in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0 or (depth == 1 and text[place] == ","):
            found.append(text[begin:place].strip())
            begin = place + 1
        if depth == 0:
            break
    return found


def _number(word: str, constants: dict[str, str]) -> int | str:
    """The value of a number or of a named constant; otherwise the word itself."""
    value = _NUMBER.fullmatch(constants.get(word, word))
    return int(value[1], 0) if value else word


def _time(word: str, constants: dict[str, str]) -> int | str:
    found = _DURATION.fullmatch(word)
    value = _number(found[2], constants) if found else word
    return value if isinstance(value, str) or found is None else value * _UNITS[found[1] or ""]
