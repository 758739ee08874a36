# SPDX-License-Identifier: Apache-2.0
"""The modules of the repository ("rooms" in the code): their lines, and which module uses which by #include and import.

    .venv/bin/python scripts/rooms.py             all uses, those that scripts/rooms.toml forbids, and circles
    .venv/bin/python scripts/rooms.py --mermaid   the picture in docs/internals/README.md
    .venv/bin/python scripts/rooms.py --lines [COMMIT]   lines by module, then (or the day before) and now

Exit status 1 if a use is not allowed, or if files or folders use each other in a circle."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import tomli

ROOT = Path(__file__).resolve().parents[1]
_PARTED = ("runtime", "tools", "tests")  # modules of which each folder gets a line of its own
_CODE = {".c", ".h", ".cpp", ".py", ".pyi"}
_INCLUDE = re.compile(r'^\s*#include\s+(?:"([^"]+)"|<([^">]+/[^">]+)>)', re.MULTILINE)


@dataclass(frozen=True)
class Arrow:
    """One file that uses another file."""

    source: str
    target: str


@dataclass
class House:
    """The repository's modules. `allowed` gives the modules that each module may use. `files` gives every source file
    that git
    does not ignore, by module."""

    allowed: dict[str, list[str]]
    files: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    arrows: list[Arrow] = field(default_factory=list)

    def room_of(self, path: str) -> str | None:
        """The innermost module that contains the file."""
        parts = path.split("/")
        for count in range(len(parts) - 1, 0, -1):
            if "/".join(parts[:count]) in self.allowed:
                return "/".join(parts[:count])
        return None


def tracked() -> list[str]:
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def is_test(path: str) -> bool:
    return "tests" in path.split("/")[:-1]


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def includes(files: list[str]) -> Iterator[Arrow]:
    """The headers that each C or C++ file includes. If the paths of several headers end with the text of an #include,
    the one that shares the most folders with the file is meant."""
    headers = [name for name in files if name.endswith(".h")]
    by_name = defaultdict(list)
    for name in headers:
        by_name[name.rsplit("/", 1)[-1]].append(name)
    for source in files:
        if not source.endswith((".c", ".h", ".cpp")):
            continue
        for quoted, angled in _INCLUDE.findall(read(source)):
            wanted = quoted or angled
            found = [name for name in by_name[wanted.rsplit("/", 1)[-1]] if f"/{name}".endswith(f"/{wanted}")]
            nearest = max(found, key=lambda name: _shared(name, source), default=None)
            if nearest is not None:
                yield Arrow(source, nearest)


def _shared(left: str, right: str) -> int:
    count = 0
    for one, other in zip(left.split("/"), right.split("/"), strict=False):
        if one != other:
            break
        count += 1
    return count


def imports(files: list[str]) -> Iterator[Arrow]:
    """The files that each Python file imports, at its top or within a function."""
    modules = {}
    for name in files:
        if name.endswith((".py", ".pyi")):
            module = re.sub(r"^(tools|ros|lab)/", "", name.rsplit(".", 1)[0]).removesuffix("/__init__")
            modules[module.replace("/", ".")] = name
    for source in [name for name in files if name.endswith(".py")]:
        tree = ast.parse(read(source))
        tree.body = [one for one in tree.body if not ast.unparse(one).startswith("if __name__ == '__main__'")]
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [f"{node.module}.{one.name}" for one in node.names]
            for name in names:
                found = modules.get(name) or modules.get(name.rpartition(".")[0])
                if found is not None and found != source:
                    yield Arrow(source, found)


def house() -> House:
    said = tomli.loads((ROOT / "scripts/rooms.toml").read_text(encoding="utf-8"))
    found = House(said["rooms"])
    files = tracked()
    for name in files:
        room = found.room_of(name)
        if room is None and is_test(name):  # tests of several modules together, such as tools/tests
            room = name.split("/tests/")[0]
        if room is not None and Path(name).suffix in _CODE:
            found.files[room].append(name)
    found.arrows = [*includes(files), *imports(files)]
    return found


def between_rooms(found: House) -> dict[tuple[str, str], list[Arrow]]:
    """Dependencies between modules, except those of tests."""
    result = defaultdict(list)
    for arrow in found.arrows:
        source, target = found.room_of(arrow.source), found.room_of(arrow.target)
        if source and target and source != target and not is_test(arrow.source):
            result[source, target].append(arrow)
    return result


def forbidden(found: House) -> list[str]:
    """One line for each dependency that scripts/rooms.toml does not allow."""
    lines = []
    for (source, target), arrows in sorted(between_rooms(found).items()):
        if target not in found.allowed[source]:
            lines.append(_told(source, target, arrows))
    return lines


def _told(source: str, target: str, arrows: list[Arrow]) -> str:
    return f"{source} uses {target}: {arrows[0].source} uses {arrows[0].target} ({len(arrows)} in all)"


def circles(found: House) -> list[str]:
    """A cycle of folders, and one of files within a folder. Files that form a cycle must be merged into one."""
    folders: dict[str, set[str]] = defaultdict(set)
    files: dict[str, set[str]] = defaultdict(set)
    for arrow in found.arrows:
        if is_test(arrow.source):
            continue
        source, target = arrow.source.rsplit("/", 1)[0], arrow.target.rsplit("/", 1)[0]
        if source != target:
            folders[source].add(target)
        elif arrow.source != arrow.target:
            files[arrow.source].add(arrow.target)
    lines = []
    for graph in (folders, files):
        try:
            TopologicalSorter({name: sorted(graph[name]) for name in sorted(graph)}).prepare()
        except CycleError as error:
            lines.append(" -> ".join(reversed(error.args[1])))  # each node precedes those that use it
    return lines


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def lines(commit: str = "") -> dict[str, int]:
    """Lines of code by module, in a commit or in this tree. Data and pages do not count."""
    counted = ["*.c", "*.h", "*.cpp", "*.hpp", "*.py", "*.sh", "*.cmake", "*CMakeLists.txt", "*Makefile"]
    empty = _git("hash-object", "-t", "tree", "/dev/null")
    done = _git("diff", "--numstat", "--no-renames", empty, *([commit] if commit else []), "--", *counted)
    count: Counter[str] = Counter()
    for row in done.splitlines():
        added, _, name = row.split("\t")
        parts = name.split("/")
        count["/".join(parts[: 2 if len(parts) > 2 and parts[0] in _PARTED else 1]) if len(parts) > 1 else "."] += int(
            added
        )
    return count


def _the_day_before() -> str:
    """The newest commit on the main branch that is at least a day older than this one; in a shallow clone, the oldest
    commit."""
    committed = int(_git("log", "-1", "--format=%ct"))
    older = _git("rev-list", "-1", "--first-parent", f"--before={committed - 86_400}", "HEAD")
    return older or _git("rev-list", "--first-parent", "HEAD").split()[-1]


def print_lines(commit: str) -> None:
    """Prints a line for each module, the ones that grew most first."""
    now, before = lines(), lines(commit)
    head = _git("log", "-1", "--format=%cd %h", "--date=format:%m-%d", commit)
    print(f"{'lines of code':<15} {'now':>8} {head:>16} {'grew by':>8}")
    for name in sorted({*now, *before}, key=lambda one: (before.get(one, 0) - now.get(one, 0), one)):
        print(
            f"{name:<15} {now.get(name, 0):>8} {before.get(name, 0):>16} {now.get(name, 0) - before.get(name, 0):>+8}"
        )
    all_now, all_before = sum(now.values()), sum(before.values())
    print(f"{'in all':<15} {all_now:>8} {all_before:>16} {all_now - all_before:>+8}")


def mermaid(found: House) -> str:
    """The picture: an arrow leads from each module to each module that it uses. The modules tests and lab are left
    out."""
    arrows = {pair for pair in between_rooms(found) if pair[0] not in ("tests", "lab")}
    names = {room: room.replace("/", "_") for room in found.allowed}
    lines = ["flowchart TD"]
    lines += [f'  {names[room]}["{room}"]' for room in found.allowed if room not in ("tests", "lab")]
    lines += [f"  {names[source]} --> {names[target]}" for source, target in sorted(arrows)]
    return "\n".join(lines)


def main() -> int:
    if "--lines" in sys.argv:
        print_lines(next(iter(sys.argv[2:]), "") or _the_day_before())
        return 0
    found = house()
    if "--mermaid" in sys.argv:
        print(mermaid(found))
        return 0
    wrong = [*forbidden(found), *(f"circle: {one}" for one in circles(found))]
    for (source, target), arrows in sorted(between_rooms(found).items()):
        print(f"{source} -> {target}: {len(arrows)}")
    for line in wrong:
        print(f"not allowed: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
