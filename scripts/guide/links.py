# SPDX-License-Identifier: Apache-2.0
"""Converts the links of a page from the repository to its place in the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+(?:\([^()]*\))?)\)")
_FENCE = re.compile(r"^(```|~~~)")


class BrokenLinkError(Exception):
    """A page names a file that does not exist."""


def rewritten(text: str, page: str, places: Mapping[str, str], root: Path) -> str:
    """`page` is a path in the repository. `places` gives the place of every page and picture in the site, by its path
    in the repository.

    Links to files that are not part of the site, such as source files, become plain names."""
    lines, fenced = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        lines.append(line if fenced else _LINK.sub(lambda found, at=number: _link(found, page, places, root, at), line))
    return "\n".join(lines) + "\n"


def _link(found: re.Match[str], page: str, places: Mapping[str, str], root: Path, line: int) -> str:
    picture, words, target = found.groups()
    path, hash_mark, anchor = target.partition("#")
    if "://" in target or target.startswith("mailto:") or not path:
        return found[0]
    file = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
    if not (root / file).exists() and file not in places:
        raise BrokenLinkError(f"{page}:{line}: there is no {file}")
    inside = places.get(file) or places.get(f"{file}/README.md")
    if inside is None:
        return f"{words} (`{file}`)" if words.strip("`") != file else f"`{file}`"
    here = posixpath.dirname(places[page])
    return f"{picture}[{words}]({posixpath.relpath(inside, here or '.')}{hash_mark}{anchor})"
