# SPDX-License-Identifier: Apache-2.0
"""Changes values in the text of a description. Comments, order and formatting are kept."""

from __future__ import annotations

from collections.abc import Iterable

from tide_tools.system.locate import Path, locate_values

# path of the entry, key, new value as text, and the key after which a missing key is inserted
Edit = tuple[Path, str, str, str]


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Returns the text with the changed values. `text` must be a description without errors. Missing keys are inserted,
    also in inline tables."""
    newline = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    for entry, key, value, behind in edits:
        text = _set(text, entry, key, value, behind)
    return text.replace("\n", newline)


def commented(text: str, entry: Path, key: str, comment: str) -> str:
    """Returns the text, without carriage returns, with this comment at the end of the line of a value, in place of any
    other."""
    _, end = locate_values(text).spans[(*entry, key)]
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    rest = text[end:line_end].partition("#")[0].rstrip()
    return f"{text[:end]}{rest} # {comment}{text[line_end:]}"


def _set(text: str, entry: Path, key: str, value: str, behind: str) -> str:
    values = locate_values(text)
    span = values.spans.get((*entry, key))
    if span is not None:
        return text[: span[0]] + value + text[span[1] :]
    end = values.spans[(*entry, behind)][1]
    if entry in values.inline:
        return f"{text[:end]}, {key} = {value}{text[end:]}"
    line_end = text.find("\n", end)
    head = text + "\n" if line_end < 0 else text[: line_end + 1]
    return f"{head}{key} = {value}\n{'' if line_end < 0 else text[line_end + 1 :]}"
