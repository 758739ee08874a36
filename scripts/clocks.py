# SPDX-License-Identifier: Apache-2.0
"""Tests that read a clock they do not own: sleeps, fixed settling times, upper bounds on time that passed.

    .venv/bin/python scripts/clocks.py

A test that runs only in make test-all, and the one waiting helper of each language, may give a reason there or above:
`# clock: REASON` or `// clock: REASON`. Prints how many there are. Exit status 1 for lines without a reason,
and for lines in tests of the gate with one."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FULL = ("tests/ros2/", "tests/packages/", "tests/fuzz/", "lab/", "ros/tide_rclcpp/", "tools/tests/interruptions.py")
_WAITERS = ("tests/support/", "tests/compat/connected.h", "tests/compat/agent_server.h")
_REASON = re.compile(r"(?:#|//|/\*) clock: \S")
_CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time", "time_ns", "process_time"}
_PASSED = re.compile(r"(^|_)(took|elapsed|duration|waited)(_|$)", re.IGNORECASE)
_SLEEP = re.compile(r"\b(?:sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep)\s*\(|(?<![\w.:])sleep\(\d")
_SETTLE = re.compile(r"\b\w*settl(?:e|ing)_?(?:s|ms|ns|us|time)\b", re.IGNORECASE)
_SETTLE_CPP = re.compile(r"\bconst\w* .*\bk?[Ss]ettl\w* =")
_BOUND = re.compile(
    r"\b(?:EXPECT|ASSERT)_(?:LT|LE)\((?P<less>[^,]*),|\b(?:EXPECT|ASSERT)_(?:GT|GE)\([^,]*,(?P<greater>.*)"
    r"|\b(?:EXPECT|ASSERT)_TRUE\((?P<true>[^<]*)<"
)
_PASSED_CPP = re.compile(r"steady_clock|system_clock|_clock::now|\b(?:took|elapsed|waited)(?:_\w*)?\b")

Finding = tuple[int, str]  # line and kind


class _Python(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.full_lines: set[int] = set()  # of tests that have the mark

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
    """Whether it is a time that passed: by its name, or a clock."""
    for one in ast.walk(value):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
            owner = one.func.value
            if one.func.attr in _CLOCKS and isinstance(owner, ast.Name) and owner.id == "time":
                return True
        if isinstance(one, ast.Name) and _PASSED.search(one.id):
            return True
    return False


def of_python(text: str) -> tuple[list[Finding], set[int]]:
    """What was found, and the lines that run in make test-all only."""
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


def _full_programs(names: list[str]) -> set[str]:
    """Stems of C++ files in calls of tide_test(... FULL)."""
    found: set[str] = set()
    for name in names:
        if name.endswith("CMakeLists.txt"):
            for call in re.findall(r"^\s*tide_\w*tests?\w*\(([^)]*\bFULL\b[^)]*)\)", (ROOT / name).read_text(), re.M):
                found |= {Path(word).stem for word in call.split()}
    return found


def main() -> int:
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    names = [name for name in done.stdout.split() if (ROOT / name).is_file()]
    full_programs = _full_programs(names)
    reasons: Counter[str] = Counter()
    wrong: list[str] = []
    for name in names:
        if "tests/" not in name or "/data/" in name or not name.endswith((".py", ".cpp", ".h", ".c")):
            continue
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        found, full_lines = of_python(text) if name.endswith(".py") else (list(of_cpp(text)), set())
        is_full = name.startswith(_FULL) or Path(name).stem in full_programs
        lines = text.splitlines()
        for number, kind in found:
            has_reason = _REASON.search("\n".join(lines[max(0, number - 2) : number]))
            if has_reason and (is_full or number in full_lines or name.startswith(_WAITERS)):
                reasons[kind] += 1
            else:
                where = "a test of the gate" if has_reason else "without a reason"
                wrong.append(f"{name}:{number}: {kind}, {where}: {lines[number - 1].strip()[:90]}")
    print(
        "clocks in tests:", ", ".join(f"{count} x {kind} with a reason" for kind, count in sorted(reasons.items())) or 0
    )
    print("\n".join(wrong), end="\n" * bool(wrong), file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
