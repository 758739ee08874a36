# SPDX-License-Identifier: Apache-2.0
"""Finds the positions of keys and tables in a TOML text, because errors name the line and the standard parser has no
positions.

The text must have been accepted by the TOML parser; this reader does not validate it."""

from __future__ import annotations

import re
from dataclasses import dataclass

Path = tuple[str | int, ...]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]\}\s#]+(?: [0-9][^,\]\}\s#]*)?")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)


def locate(text: str) -> dict[Path, int]:
    """The line (counted from 1) of every key, table and array element, by its path."""
    return _Reader(text.replace("\r\n", "\n")).read()


@dataclass(frozen=True)
class Values:
    """The offsets (begin, end) of the values in a text, by path, and the paths of inline tables."""

    spans: dict[Path, tuple[int, int]]
    inline: frozenset[Path]


def locate_values(text: str) -> Values:
    """Finds the values in a text without carriage returns."""
    reader = _Reader(text)
    reader.read()
    return Values(reader.spans, frozenset(reader.inline))


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.counted = (0, 1)  # an offset, and the number of the line at this offset
        self.lines: dict[Path, int] = {(): 1}
        self.array_lengths: dict[Path, int] = {}
        self.spans: dict[Path, tuple[int, int]] = {}
        self.inline: set[Path] = set()

    def read(self) -> dict[Path, int]:
        table: Path = ()
        while self._skip_blank():
            if self.text.startswith("[", self.at):
                table = self._header()
            else:
                self._key_value(table)
        return self.lines

    def _line(self) -> int:
        upto, line = self.counted
        self.counted = (self.at, line + self.text.count("\n", upto, self.at))
        return self.counted[1]

    def _note(self, path: Path, line: int) -> None:
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _skip_blank(self) -> bool:
        """Skips white space, line ends and comments. Returns false at the end of the text."""
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif character in " \t\r\n":
                self.at += 1
            else:
                return True
        return False

    def _header(self) -> Path:
        line = self._line()
        is_array = self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        keys = self._dotted_key()
        self._skip_blank()
        self.at += 2 if is_array else 1
        path: Path = ()
        for number, key in enumerate(keys):
            path = (*path, key)
            last = number == len(keys) - 1
            if last and is_array:
                self._note(path, line)
                index = self.array_lengths.get(path, 0)
                self.array_lengths[path] = index + 1
                path = (*path, index)
            elif path in self.array_lengths:
                path = (*path, self.array_lengths[path] - 1)
        self._note(path, line)
        return path

    def _key_value(self, table: Path) -> None:
        line = self._line()
        path = (*table, *self._dotted_key())
        self._note(path, line)
        self._skip_blank()
        self.at += 1  # skips the equals sign
        self._skip_blank()
        self._value(path)

    def _dotted_key(self) -> list[str]:
        keys = []
        while self._skip_blank():
            if self.text[self.at] in "\"'":
                keys.append(self._string())
            else:
                match = _BARE_KEY.match(self.text, self.at)
                if match is None:
                    break
                keys.append(match.group())
                self.at = match.end()
            self._skip_blank()
            if not self.text.startswith(".", self.at):
                break
            self.at += 1
        return keys

    def _value(self, path: Path) -> None:
        begin = self.at
        self._past_value(path)
        self.spans[path] = (begin, self.at)

    def _past_value(self, path: Path) -> None:
        character = self.text[self.at : self.at + 1]
        if character and character in "\"'":
            self._string()
        elif character == "[":
            self._elements(path, "]")
        elif character == "{":
            self.inline.add(path)
            self._elements(path, "}")
        else:
            match = _SCALAR.match(self.text, self.at)
            self.at = match.end() if match else len(self.text)

    def _elements(self, path: Path, closing: str) -> None:
        self.at += 1
        index = 0
        while self._skip_blank() and self.text[self.at] != closing:
            if self.text[self.at] == ",":
                self.at += 1
            elif closing == "}":
                self._key_value(path)
            else:
                self._note((*path, index), self._line())
                self._value((*path, index))
                index += 1
        self.at += 1

    def _string(self) -> str:
        quote = self.text[self.at]
        delimiter = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        start = self.at + len(delimiter)
        end = start
        while end < len(self.text) and not self.text.startswith(delimiter, end):
            end += 2 if quote == '"' and self.text[end] == "\\" else 1
        self.at = end + len(delimiter)
        while len(delimiter) == 3 and self.text.startswith(quote, self.at):  # quotes at the end that belong to the text
            self.at += 1
        body = self.text[start:end]
        return _ESCAPE.sub(_unescape, body) if quote == '"' else body


def _unescape(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] in "uU":
        return chr(int(code[1:], 16))
    return {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}.get(code, code)
