# SPDX-License-Identifier: Apache-2.0
"""docs/papers.md: claims and mechanisms of the papers and their status here, from lab/papers.toml.

.venv/bin/python lab/bench/papers.py            write docs/papers.md
.venv/bin/python lab/bench/papers.py --run      run every command, and print which lines it supports
.venv/bin/python lab/bench/papers.py --check    fail unless the page agrees with the file and every name in it exists
"""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import tomli
import typer
from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.table import Table

from tide_tools.outputs import write_text
from tide_tools.terminal.style import print_whole

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/papers.md"
LIMIT_S = 1200.0
HEAD = """# What the papers say, and what holds here

Each row is a mechanism, figure, table or claim of one of the four papers on which tide is based. *Holds*: it holds for
tide, and the command fails if it does not. *Differs*: tide's form or figure is another one, for the stated reason.
*Absent*: tide lacks it. `make -C lab papers` makes this page from `lab/papers.toml`; `papers.py --run` runs all
commands.
"""


class Paper(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str
    text: str


class Claim(BaseModel):
    model_config = ConfigDict(extra="forbid")
    paper: str
    kind: Literal["mechanism", "figure", "table", "claim"]
    what: str
    where: str = ""
    command: str = ""
    published: str = ""
    measured: str = ""
    verdict: Literal["holds", "differs", "absent"]
    reason: str = ""


class Claims(BaseModel):
    model_config = ConfigDict(extra="forbid")
    paper: dict[str, Paper]
    claim: list[Claim]


def load() -> Claims:
    return Claims.model_validate(tomli.loads((ROOT / "lab/papers.toml").read_text()))


def row(claim: Claim) -> str:
    where = f"`{claim.where}`" if claim.where else ""
    command = f"`{claim.command}`" if claim.command else ""
    verdict = f"**{claim.verdict}**" + (f". {claim.reason}" if claim.reason else "")
    return f"| {claim.what} | {where} | {claim.published} | {claim.measured} | {verdict} | {command} |"


def page(claims: Claims) -> str:
    lines = [HEAD]
    for key, paper in claims.paper.items():
        own = [claim for claim in claims.claim if claim.paper == key]
        count = Counter(claim.verdict for claim in own)
        counts = f"{count['holds']} hold, {count['differs']} differ, {count['absent']} absent"
        lines += [f"## {paper.title}", "", f"{paper.text} {len(own)} rows: {counts}.", ""]
        lines += ["| what | where | published | here | verdict | command |", "|---|---|---|---|---|---|"]
        lines += [*map(row, own), ""]
    return "\n".join(lines)


def known_tests() -> str:
    """All test files, and the files that list programs made of several."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lists = "\n".join(path.read_text() for path in ROOT.glob("*/tests/**/CMakeLists.txt"))
    return f"{files}\n{lists}"


def faults(claims: Claims) -> Iterator[str]:
    """Names of tests and programs that a claim mentions but that do not exist."""
    tests = known_tests()
    for claim in claims.claim:
        here = f"lab/papers.toml: {claim.what}"
        if claim.paper not in claims.paper:
            yield f"{here}: no paper is called '{claim.paper}'"
        if claim.where and not (ROOT / claim.where).exists():
            yield f"{here}: there is no {claim.where}"
        if claim.verdict != "absent" and not claim.command:
            yield f"{here}: no command shows it"
        if claim.verdict != "holds" and not claim.reason:
            yield f"{here}: no reason is given"
        if claim.command.startswith("make t T=") and claim.command.removeprefix("make t T=").split(":")[0] not in tests:
            yield f"{here}: no test is called {claim.command.removeprefix('make t T=')}"


def is_shown(command: str) -> bool:
    words = command.split()
    if words[0] == "tide":
        words[0] = str(ROOT / ".venv/bin/tide")
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return done.returncode == 0 and "no tests ran" not in done.stdout and "[  PASSED  ] 0 tests" not in done.stdout


def run_all(claims: Claims) -> bool:
    console = Console()
    table = Table(title="commands of docs/papers.md")
    for heading in ("command", "lines", "s", "ended well"):
        table.add_column(heading)
    lines = Counter(claim.command for claim in claims.claim if claim.command)
    good = True
    for command, count in lines.items():
        start_s = time.monotonic()
        with console.status(command):
            shown = is_shown(command)
        good = good and shown
        table.add_row(command, str(count), f"{time.monotonic() - start_s:.0f}", "yes" if shown else "NO")
    print_whole(console, table)
    return good


def main(
    check: Annotated[bool, typer.Option("--check", help="Fail unless the page agrees with the file.")] = False,
    run: Annotated[bool, typer.Option("--run", help="Run every command of the page.")] = False,
) -> None:
    claims = load()
    found = list(faults(claims))
    if check and (not PAGE.exists() or PAGE.read_text() != page(claims)):
        found.append("docs/papers.md is not what lab/papers.toml says; run `make -C lab papers`")
    if found:
        raise SystemExit("\n".join(found))
    if run:
        raise SystemExit(0 if run_all(claims) else 1)
    if not check:
        write_text(PAGE, page(claims))


if __name__ == "__main__":
    typer.run(main)
