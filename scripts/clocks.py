# SPDX-License-Identifier: Apache-2.0
"""Finds tests that read a clock they do not own: sleeps, fixed settling times, and upper bounds on time that passed.

    .venv/bin/python scripts/clocks.py         exit status 1 if a test of the gate has one
    .venv/bin/python scripts/clocks.py --all   also 1 if another test has one without a reason

A test that runs only in make test-all gives its reason in the same line or in the line above it: `# clock: REASON` or
`// clock: REASON`. The helper of tests/support that waits gives its reason in the same way. A pace of sending is
allowed anywhere; it is marked `clock: a pace`."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FULL = ("tests/ros2/", "tests/packages/", "tests/fuzz/", "ros/tide_rclcpp/", "lab/")
_FULL += ("tests/conformance/real.c", "tests/conformance/peer.py")  # because their clients are not in virtual time
_WAITERS = ("tests/support/",)
_REASON = re.compile(r"(?:#|//|/\*) clock: \S")
_PACE = re.compile(r"(?:#|//|/\*) clock: a pace")  # a sender's pause, whose length decides nothing
_CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time", "time_ns", "process_time"}
_PASSED = re.compile(r"(^|_)(took|elapsed|duration|waited)(_|$)", re.IGNORECASE)
_SLEEP = re.compile(r"\bthis_thread::sleep_\w+\s*\(|\b(?:usleep|nanosleep|clock_nanosleep)\s*\(|(?<![\w.:])sleep\(\d")
_SETTLE = re.compile(r"\b\w*settl(?:e|ing)_?(?:s|ms|ns|us|time)\b", re.IGNORECASE)
_SETTLE_CPP = re.compile(r"\bconst\w* .*\bk?[Ss]ettl\w* =")
_BOUND = re.compile(
    r"\b(?:EXPECT|ASSERT)_(?:LT|LE)\((?P<less>[^,]*),|\b(?:EXPECT|ASSERT)_(?:GT|GE)\([^,]*,(?P<greater>.*)"
    r"|\b(?:EXPECT|ASSERT)_TRUE\((?P<true>[^<]*)<"
)
_PASSED_CPP = re.compile(r"steady_clock|system_clock|_clock::now|\b(?:took|elapsed|waited)(?:_\w*)?\b")

Finding = tuple[int, str]  # line, and kind of clock


class _Python(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.full_lines: set[int] = set()  # lines of tests with the mark `full`

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        is_yield = node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
        if name == "sleep" and not is_yield:
            self.found.append((node.lineno, "sleep"))
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(one, ast.Name) and _SETTLE.search(one.id) for one in node.targets):
            self.found.append((node.lineno, "settling time"))
        self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        for one in ast.walk(node.test):
            if not isinstance(one, ast.Compare):
                continue
            sides = [one.left, *one.comparators]
            for before, operator, after in zip(sides, one.ops, sides[1:], strict=False):
                less = before if isinstance(operator, (ast.Lt, ast.LtE)) else after
                if isinstance(operator, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) and _is_passed(less):
                    self.found.append((node.lineno, "upper bound"))
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if any(_is_full(one) for one in node.decorator_list):
            self.full_lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        self.generic_visit(node)


def _is_full(mark: ast.expr) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "full" for one in ast.walk(mark))


def _is_passed(value: ast.expr) -> bool:
    """True if the expression is a clock or, by its name, an elapsed time."""
    for one in ast.walk(value):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
            owner = one.func.value
            if one.func.attr in _CLOCKS and isinstance(owner, ast.Name) and owner.id == "time":
                return True
        if isinstance(one, ast.Name) and _PASSED.search(one.id):
            return True
    return False


def of_python(text: str) -> tuple[list[Finding], set[int]]:
    """The findings in a Python file, and the lines of it that run only in make test-all."""
    tree = ast.parse(text)
    visitor = _Python()
    visitor.visit(tree)
    is_full = any(
        isinstance(one, ast.Assign) and getattr(one.targets[0], "id", "") == "pytestmark" and _is_full(one.value)
        for one in tree.body
    )
    return visitor.found, set(range(1, text.count("\n") + 2)) if is_full else visitor.full_lines


def of_cpp(text: str) -> Iterator[Finding]:
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0]
        if _SLEEP.search(code):
            yield number, "sleep"
        if _SETTLE_CPP.search(code):
            yield number, "settling time"
        bound = _BOUND.search(code)
        if bound and _PASSED_CPP.search(next(one for one in bound.groups() if one is not None)):
            yield number, "upper bound"


def _full_files(names: list[str]) -> set[str]:
    """Stems of C++ files in calls such as tide_test(... FULL), and folders in which such a call is in a loop."""
    found: set[str] = set()
    for name in names:
        if name.endswith("CMakeLists.txt"):
            for call in re.findall(r"^\s*tide_test\w*\(([^)]*\bFULL\b[^)]*)\)", (ROOT / name).read_text(), re.M):
                found |= {str(Path(name).parent)} if "${" in call else {Path(word).stem for word in call.split()}
    return found


def _is_full_cpp(name: str, full: set[str]) -> bool:
    """True if the file's program runs only in make test-all. A part of a program is in NAME_test_PART.cpp."""
    stem = Path(name).stem
    return str(Path(name).parent) in full or stem in full or stem.partition("_test_")[0] + "_test" in full


def main() -> int:
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    names = [name for name in done.stdout.split() if (ROOT / name).is_file()]
    full_files = _full_files(names)
    reasons: Counter[str] = Counter()
    in_gate: list[str] = []
    elsewhere: list[str] = []
    for name in names:
        if "tests/" not in name or "/data/" in name or not name.endswith((".py", ".cpp", ".h", ".c")):
            continue
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        found, full_lines = of_python(text) if name.endswith(".py") else (list(of_cpp(text)), set())
        is_full = name.startswith(_FULL) or _is_full_cpp(name, full_files)
        lines = text.splitlines()
        for number, kind in found:
            around = "\n".join(lines[max(0, number - 2) : number])
            may_be = is_full or number in full_lines or name.startswith(_WAITERS)
            if kind == "sleep" and _PACE.search(around):
                reasons["pace"] += 1
            elif may_be and _REASON.search(around):
                reasons[kind] += 1
            else:
                (elsewhere if may_be else in_gate).append(f"{name}:{number}: {kind}: {lines[number - 1].strip()[:90]}")
    wrong = in_gate + (elsewhere if "--all" in sys.argv else [])
    print("\n".join(wrong), end="\n" * bool(wrong), file=sys.stderr)
    given = ", ".join(f"{count} x {kind}" for kind, count in sorted(reasons.items()))
    print(f"clocks in tests: {len(in_gate)} in the gate; elsewhere with a reason {given}; without {len(elsewhere)}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
