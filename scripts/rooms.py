# SPDX-License-Identifier: Apache-2.0
"""The rooms of the house as the code has them: lines, and who uses whom by #include, import and link list.

    .venv/bin/python scripts/rooms.py             a table, and every arrow that scripts/rooms.toml does not allow
    .venv/bin/python scripts/rooms.py --mermaid   the pictures in docs/internals/README.md

Exit status 1 if an arrow is not allowed, or if packages of Python or folders of C++ use each other in a circle."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import tomli

ROOT = Path(__file__).resolve().parents[1]
_CODE = {".c", ".h", ".cpp", ".py", ".pyi"}
_INCLUDE = re.compile(r'^\s*#include\s+(?:"([^"]+)"|<([^">]+/[^">]+)>)', re.MULTILINE)
_COMMAND = re.compile(r"^\s*(\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)", re.MULTILINE)
_TARGET_MAKERS = {
    "add_library": 0, "add_executable": 0, "add_custom_target": 0, "tide_room": 0, "tide_runtime": 0, "tide_image": 0,
    "tide_example": 0, "tide_generate_messages": 0, "nanobind_add_module": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Arrow:
    """One file that uses another."""

    source: str
    target: str


@dataclass
class House:
    """allowed: folder to what it may use. inside: of a room, its folders and what each may use. files: every tracked
    file of code, by room."""

    allowed: dict[str, list[str]]
    inside: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    arrows: list[Arrow] = field(default_factory=list)

    def room_of(self, path: str) -> str | None:
        """The innermost room that has the file; tests are rooms of their own, which may use everything of theirs."""
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
    """What a file of C or C++ includes: the file that ends so, beside it, in its room, or the only one."""
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
    """What a file of Python imports, at its head or within a function."""
    modules = {}
    for name in files:
        if name.endswith((".py", ".pyi")):
            module = re.sub(r"^(tools|ros|lab)/", "", name.rsplit(".", 1)[0]).removesuffix("/__init__")
            modules[module.replace("/", ".")] = name
    for source in [name for name in files if name.endswith(".py")]:
        for node in ast.walk(ast.parse(read(source))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [f"{node.module}.{one.name}" for one in node.names]
            for name in names:
                found = modules.get(name) or modules.get(name.rpartition(".")[0])
                if found is not None and found != source:
                    yield Arrow(source, found)


def links(files: list[str]) -> Iterator[Arrow]:
    """What a CMakeLists.txt links, and which files of other rooms it compiles."""
    lists = [name for name in files if name.endswith("CMakeLists.txt")]
    makers = {}
    texts = {name: re.sub(r"#.*", "", read(name)) for name in lists}
    for name, text in texts.items():
        for command, words in _COMMAND.findall(text):
            if command in _TARGET_MAKERS and words.split():
                target = words.split()[0]
                makers[f"tide_{target}" if command == "tide_room" else target] = name
    for name, text in texts.items():
        for command, words in _COMMAND.findall(text):
            wanted = words.split()
            if command in ("target_link_libraries", "tide_test", "tide_image", "tide_mutants"):
                for target in wanted[1:]:
                    if target in makers and makers[target] != name:
                        yield Arrow(name, makers[target])
            for path in re.findall(r"\$\{(?:TIDE_RUNTIME|PROJECT_SOURCE_DIR)\}/([\w/.]+\.c(?:pp)?)", words):
                whole = path if (ROOT / path).exists() else f"runtime/{path}"
                if (ROOT / whole).exists():
                    yield Arrow(name, whole)


def house() -> House:
    said = tomli.loads((ROOT / "scripts/rooms.toml").read_text(encoding="utf-8"))
    found = House(said["rooms"], said["inside"])
    files = tracked()
    for name in files:
        room = found.room_of(name)
        if room is None and is_test(name):  # of several rooms together, as tools/tests
            room = name.split("/tests/")[0]
        if room is not None and Path(name).suffix in _CODE:
            found.files[room].append(name)
    found.arrows = [*includes(files), *imports(files), *links(files)]
    return found


def between_rooms(found: House) -> dict[tuple[str, str], list[Arrow]]:
    """Arrows from one room to another, those of tests apart."""
    result = defaultdict(list)
    for arrow in found.arrows:
        source, target = found.room_of(arrow.source), found.room_of(arrow.target)
        if source and target and source != target and not is_test(arrow.source):
            result[source, target].append(arrow)
    return result


def within(found: House, room: str) -> dict[tuple[str, str], list[Arrow]]:
    """Arrows from one folder of a room to another, those of tests and of lists of CMake apart."""
    result = defaultdict(list)
    for arrow in found.arrows:
        source, target = (_folder(room, name) for name in (arrow.source, arrow.target))
        if source and target and source != target and not is_test(arrow.source):
            result[source, target].append(arrow)
    return result


def _folder(room: str, path: str) -> str | None:
    """The folder right below the room; none: of a file beside these folders."""
    rest = path.removeprefix(f"{room}/")
    return rest.split("/")[0] if rest != path and "/" in rest else None


def forbidden(found: House) -> list[str]:
    """One line for each arrow that scripts/rooms.toml does not have."""
    lines = []
    for (source, target), arrows in sorted(between_rooms(found).items()):
        if target not in found.allowed[source]:
            lines.append(_told(source, target, arrows))
    for room, allowed in found.inside.items():
        for (source, target), arrows in sorted(within(found, room).items()):
            if target not in allowed.get(source, []):
                lines.append(_told(f"{room}/{source}", f"{room}/{target}", arrows))
    return lines


def _told(source: str, target: str, arrows: list[Arrow]) -> str:
    return f"{source} uses {target}: {arrows[0].source} uses {arrows[0].target} ({len(arrows)} in all)"


def circles(found: House) -> list[str]:
    """Folders that use each other in a circle: packages of Python, and folders of C and C++ within a room."""
    graph: dict[str, set[str]] = defaultdict(set)
    for arrow in found.arrows:
        source, target = arrow.source.rsplit("/", 1)[0], arrow.target.rsplit("/", 1)[0]
        if source != target and not is_test(arrow.source) and not arrow.source.endswith("CMakeLists.txt"):
            graph[source].add(target)
    return [" -> ".join((*one, one[0])) for one in _components(graph)]


def _components(graph: dict[str, set[str]]) -> Iterator[list[str]]:
    """Strongly connected parts of more than one folder (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part: list[str] = []
            while not part or part[-1] != node:
                part.append(stack.pop())
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return iter(found)


def lines_by_room(found: House) -> list[tuple[str, int, int, int]]:
    """Room, files, lines without tests, lines of tests."""
    rows = []
    for room in sorted(found.files, key=[*found.allowed, *found.files].index):
        count: Counter[bool] = Counter()
        for name in found.files[room]:
            count[is_test(name)] += read(name).count("\n")
        rows.append((room, len(found.files[room]), count[False], count[True]))
    return rows


def mermaid_within(found: House, room: str) -> str:
    """The picture of one room: its folders, each with the arrows to what it uses."""
    lines = ["flowchart BT"]
    used: dict[str, list[str]] = defaultdict(list)
    for source, target in sorted(within(found, room)):
        used[source].append(target)
    lines += [f"  {source} --> {' & '.join(used[source])}" for source in found.inside[room] if used[source]]
    return "\n".join(lines)


def mermaid(found: House) -> str:
    """The picture: an arrow from who uses to what is used, drawn once; what follows from other arrows is left out."""
    arrows = {pair for pair in between_rooms(found) if pair[0] not in ("tests", "lab")}
    names = {room: room.replace("/", "_") for room in found.allowed}
    lines = ["flowchart TD"]
    lines += [f'  {names[room]}["{room}"]' for room in found.allowed if room not in ("tests", "lab")]
    lines += [f"  {names[source]} --> {names[target]}" for source, target in sorted(arrows)]
    return "\n".join(lines)


def _print(rows: Iterable[tuple[str, int, int, int]]) -> None:
    print(f"{'room':<16} {'files':>6} {'lines':>8} {'of tests':>9}")
    for room, files, code, tests in rows:
        print(f"{room:<16} {files:>6} {code:>8} {tests:>9}")


def main() -> int:
    found = house()
    if "--mermaid" in sys.argv:
        print(mermaid(found), *(mermaid_within(found, room) for room in found.inside), sep="\n\n")
        return 0
    _print(lines_by_room(found))
    wrong = [*forbidden(found), *(f"circle: {one}" for one in circles(found))]
    for (source, target), arrows in sorted(between_rooms(found).items()):
        print(f"{source} -> {target}: {len(arrows)}")
    for line in wrong:
        print(f"not allowed: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
