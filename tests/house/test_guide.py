# SPDX-License-Identifier: Apache-2.0
"""The guide builds without a broken link or a reference to a network, and the commands in it work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reserved import domain
from tide_test_support import judged

pytestmark = pytest.mark.full  # builds all pages with mkdocs

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from guide import build, errors, links  # noqa: E402

from tide_tools.new.project import BOARDS as BOARDS_OF_TIDE_NEW  # noqa: E402

PAGES = sorted((ROOT / "docs/guide").glob("*.md")) + sorted((ROOT / "docs/boards").glob("*.md"))
_BLOCK = re.compile(r"(?:<!-- ((?:(?!-->).)*) -->\n)?```(\w*)\n(.*?)```", re.S)
_PRELUDE = """
#include <rclc/executor.h>
#include <rclc/rclc.h>
#include <rmw_microros/rmw_microros.h>
#include <tide/chain_watch.h>
#include <tide/measure.h>
#include <tide/port.h>
#include <tide/rclc.h>
static rclc_executor_t executor;
static rcl_timer_t timer;
static rcl_publisher_t request;
static rcl_subscription_t subscription;
static rcl_init_options_t options;
enum { PERIOD_MS = 100, DEADLINE_MS = 80, PRIORITY = 1 };
"""


def blocks(page: Path, language: str, all_of_them: bool = False) -> Iterator[tuple[int, str]]:
    """The commands that a reader types, each with its line number. With all_of_them, also those that the page marks as
    not to be run by the test."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        note, kind, body = found.groups()
        if kind == language and (all_of_them or not (note or "").startswith("not run: ")):
            yield text[: found.start(3)].count("\n") + 1, body


class _Fetched(HTMLParser):
    """Collects the addresses from which a browser would fetch something in order to show the page."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        if tag in ("script", "img", "link") and named.get("rel") not in ("canonical", "prev", "next"):
            self.places += [value for value in (named.get("src"), named.get("href")) if value]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("guide") / "site"
    made = subprocess.run(
        [sys.executable, str(ROOT / "scripts/guide/build.py"), "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return out


def test_every_page_is_there_and_needs_no_network(site: Path) -> None:
    for _, pages in build.menu():
        for title, file in pages:
            place = file if file.startswith("reference/") else build.place_of(file)
            page = site / Path(place).with_suffix(".html")
            assert page.is_file(), f"{title}: {page.name} was not built"
    for page in site.rglob("*.html"):
        fetched = _Fetched()
        fetched.feed(page.read_text(encoding="utf-8"))
        outside = [place for place in fetched.places if "://" in place or place.startswith("//")]
        assert not outside, f"{page.relative_to(site)} fetches {outside}"
        for place in fetched.places:
            file = page.parent / place.partition("?")[0].partition("#")[0]
            assert place.startswith("data:") or file.exists(), f"{page.relative_to(site)}: there is no {place}"


def test_its_search_works_from_a_disk(site: Path) -> None:
    """A page that is opened from a folder can load only scripts, and cannot start workers, as a trial in Chromium has
    shown."""
    assert (site / "search/search_index.js").read_text(encoding="utf-8").startswith("var __index = {")
    page = (site / "index.html").read_text(encoding="utf-8")
    assert '<script src="iframe-worker.js">' in page
    assert '<script src="site.js">' in page and 'href="site.css"' in page  # a dark theme, and tables at 400 pixels


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_tells_to_type_works(page: Path, tmp_path: Path) -> None:
    for folder in ("examples", "build"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    for line, body in blocks(page, "sh"):
        done = typed(body, tmp_path)
        told = f"{page.name}:{line}: {body}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        assert done.returncode == 0, told
        if "$?" in body:  # a check whose answer is "no" or "likely", not a file that is refused
            assert done.stdout.endswith((": 1\n", ": 3\n")), told


def typed(body: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "ROS_DOMAIN_ID": str(domain()), "COLUMNS": "80"}
    words = ["bash", "-euo", "pipefail", "-c", body]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_an_e_stop_from_its_description_to_its_measurement(tmp_path: Path) -> None:
    """The last command of docs/guide/estop.md measures the system of the page on this machine. Whether the response is
    in time depends on the machine: the first line of the output says so, and the exit status must agree with it."""
    measured = 0
    for line, body in blocks(ROOT / "docs/guide/estop.md", "sh", all_of_them=True):
        done = typed(body, tmp_path)
        if "tide run" not in body:
            assert done.returncode == 0, f"{line}: {body}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            continue
        measured += 1
        results = judged(done, tmp_path / "results/estop")
        (chain,) = results["runs"][0]["chains"]
        assert chain["name"] == "estop" and chain["samples"] + chain["lost"] + chain["skipped"] == 50
        lines = [one for one in done.stdout.splitlines() if one.strip()]
        answer = next(n for n, one in enumerate(lines) if one.startswith(f"{chain['verdict']['state']}: estop"))
        assert lines[answer + 1].startswith("ms from the tick")
        assert "premises of the bounds: " in done.stdout and (tmp_path / "results/estop/report.html").is_file()
    assert measured == 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_programs_of_a_page_compile(page: Path, tmp_path: Path) -> None:
    functions = [
        body if re.search(r"^static void", body, re.M) else f"void block_{line}(void) {{\n{body}\n}}"
        for line, body in blocks(page, "c")
    ]
    source = tmp_path / f"{page.stem}.c"
    source.write_text(_PRELUDE + "\n".join(functions), encoding="utf-8")
    done = subprocess.run(
        [
            "cc",
            "-std=c11",
            "-fsyntax-only",
            "-Wall",
            "-Werror",
            "-Wno-unused",
            f"-I{ROOT / 'runtime/include'}",
            str(source),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


BOARDS = sorted(page for page in (ROOT / "docs/boards").glob("*.md") if page.name != "README.md")
PARTS = ["Install", "Build", "Memory", "Clock and interrupts", "Links", "Limits", "What ran where"]


@pytest.mark.parametrize("page", BOARDS, ids=lambda page: page.stem)
def test_pages_of_boards_have_the_same_parts(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.M) == PARTS
    overview = (ROOT / "docs/boards/README.md").read_text(encoding="utf-8")
    assert f"({page.name})" in overview


def test_each_board_of_tide_new_has_a_page_that_makes_its_project() -> None:
    made = re.compile(r"tide new firmware \w+ --board (\w+)")
    boards = {name for page in BOARDS for name in made.findall(page.read_text(encoding="utf-8"))}
    assert boards == set(BOARDS_OF_TIDE_NEW)


def test_every_code_has_advice_that_names_what_is_there() -> None:
    advice = errors.advice(ROOT)
    assert set(advice) == {name for name, _, _ in errors.codes(ROOT)}
    known = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "runtime/include").rglob("*.h"))
    words = {word for text in advice.values() for word in re.findall(r"\b(?:TIDE_[A-Z_]+|tide_\w+)\b", text)}
    assert not {word for word in words if not re.search(rf"\b{word}\b", known)}


def test_a_broken_link_is_an_error_and_a_source_file_is_its_name(tmp_path: Path) -> None:
    (tmp_path / "makefile").touch()
    places = {"pages/a.md": "a.md", "pages/b/c.md": "b/c.md"}
    assert links.rewritten("[x](../a.md#y)", "pages/b/c.md", places, tmp_path) == "[x](../a.md#y)\n"
    assert links.rewritten("[x](../makefile)", "pages/a.md", places, tmp_path) == "x (`makefile`)\n"
    assert links.rewritten("```\n[x](nowhere.md)\n```", "pages/a.md", places, tmp_path) == "```\n[x](nowhere.md)\n```\n"
    with pytest.raises(links.BrokenLinkError, match=r"pages/a\.md:2: there is no pages/nowhere\.md"):
        links.rewritten("\n[x](nowhere.md)", "pages/a.md", places, tmp_path)
