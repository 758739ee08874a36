# SPDX-License-Identifier: Apache-2.0
"""The reference of the C interface, made from its headers: each declaration with the comment before it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_GUARD = re.compile(r"^#(?:ifndef|define) TIDE_\w+_H\b.*$")
_CPLUSPLUS = re.compile(r'#ifdef __cplusplus\n(?:extern "C" \{|\})\n#endif\n')
_NAME = (
    re.compile(r"^\s*#define (\w+)"),
    re.compile(r"\}\s*(\w+);\s*$"),
    re.compile(r"\b(\w+)\s*\("),
    re.compile(r"^typedef .*?\b(\w+);", re.S),
    re.compile(r"^(?:enum|struct|union) (\w+)"),
)


@dataclass(frozen=True)
class Declaration:
    name: str
    code: str
    comment: str


def _plain(comment: str) -> str:
    lines = comment.removeprefix("/*").removesuffix("*/").strip().splitlines()
    return "\n".join(re.sub(r"^\s*\* ?", "", line).rstrip() for line in lines)


def _blocks(text: str) -> Iterator[str]:
    """Comments and declarations, each with all of its lines."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        end = _end_of(text, at)
        yield text[at:end]
        at = end


def _end_of(text: str, start: int) -> int:
    if text.startswith("/*", start):
        return text.index("*/", start) + 2
    if text.startswith("#", start):
        end = start
        while True:
            end = text.find("\n", end)
            if end < 0:
                return len(text)
            if text[end - 1] != "\\":
                return end
            end += 1
    depth, at = 0, start
    while at < len(text):
        if text.startswith("/*", at):
            at = text.index("*/", at) + 2
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        closes = text[at] == "}" and depth == 0 and re.match(r"\}\s*\n", text[at : at + 8]) is not None
        at += 1
        if depth == 0 and (text[at - 1] == ";" or closes):
            break
    rest = re.match(r"[ \t]*/\*.*?\*/", text[at:], re.S)  # a comment behind the declaration, in the same line
    return at + rest.end() if rest else at


def _name_of(code: str) -> str | None:
    bare = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
    for pattern in _NAME:
        found = pattern.search(bare)
        if found:
            return found[1]
    return None


def read(header: Path) -> tuple[str, list[Declaration]]:
    """The header's own description, and the header's declarations."""
    text = _CPLUSPLUS.sub("", header.read_text(encoding="utf-8"))
    blocks = [block for block in _blocks(text) if not _GUARD.match(block) and "SPDX-License" not in block]
    intro, comment = "", ""
    found: list[Declaration] = []
    begun = False
    for block in blocks:
        if block.startswith("/*"):
            words = _plain(block)
            if not begun and not intro:
                intro = words
            else:
                comment = "" if words.startswith("----") else words
            continue
        if block.startswith("#"):
            begun = begun or block.startswith(("#include", "#define"))
            if not block.startswith("#define"):
                comment = "" if block.startswith("#include") else comment
                continue
        begun = True
        name = _name_of(block)
        if name is not None and not name.endswith("_H"):
            found.append(Declaration(name, _shortened(block), comment))
        comment = ""
    return intro, found


def _shortened(code: str) -> str:
    """An inline function, without its body."""
    if code.startswith(("static inline", "inline")):
        return code[: code.index("{")].rstrip() + ";"
    return code


def prose(comment: str) -> str:
    """A comment as text of the site: it contains no markup, and its indented lines are code."""
    lines, code = [], False
    for line in comment.splitlines():
        indented = line.startswith("  ")
        if indented != code and (indented or line):
            lines += ["", "```c"] if indented else ["```", ""]
            code = indented
        lines.append(line if code else re.sub(r"([*_<\[\]#|])", r"\\\1", line))
    return "\n".join([*lines, *(["```"] if code else [])])


def page(header: Path, title: str) -> str:
    intro, declarations = read(header)
    lines = [f"# {title}", "", prose(intro), ""]
    group: list[Declaration] = []
    for declaration in declarations:
        if group and (declaration.comment or _is_type(declaration) or _is_type(group[0])):
            lines += _entry(group)
            group = []
        group.append(declaration)
    return "\n".join([*lines, *(_entry(group) if group else [])]) + "\n"


def _is_type(declaration: Declaration) -> bool:
    return declaration.code.startswith(("typedef", "enum", "struct", "union"))


def _entry(group: list[Declaration]) -> list[str]:
    """The section for declarations that share one comment."""
    code = "\n".join(each.code for each in group)
    return [f"## {group[0].name}", "", "```c", code, "```", "", prose(group[0].comment), ""]
