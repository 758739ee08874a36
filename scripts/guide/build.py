# SPDX-License-Identifier: Apache-2.0
"""Builds the guide as a site: `make docs`. The pages are in the repository; the reference is generated from headers and
help texts.

    .venv/bin/python scripts/guide/build.py [--out FOLDER]

Links to missing files, pages that the menu lacks and wrong anchors are errors. The site fetches nothing from a network.
A browser can open the site from its folder. Only the search needs a server, because browsers isolate scripts of local
files: python3 -m http.server -b 127.0.0.1 -d build/site"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import tomli
import typer
from typer.cli import get_docs_for_click

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tools"), str(ROOT / "ros")]

from guide import errors, links  # noqa: E402
from tide_tools.main import command_names, load_command  # noqa: E402
from tide_tools.programs.binaries import find_binary  # noqa: E402

PICTURES = {".svg", ".png"}
_ASSETS = ("iframe-worker.js", "site.css", "site.js")


_C_PAGE = """# The C interface

The headers in `runtime/include/tide`, whose comments are the reference. A program starts with `tide/rclc.h`, in
addition to the headers of micro-ROS.

| header | what is in it |
|---|---|
"""


class GuideError(Exception):
    """The reason why the site could not be built."""


def menu() -> list[tuple[str, list[tuple[str, str]]]]:
    """The menu: its parts, and in each part the titles and files of its pages. A file is in the repository or is
    generated."""
    table = tomli.loads((ROOT / "docs/guide/menu.toml").read_text(encoding="utf-8"))
    return [(part["title"], [(page["title"], page["file"]) for page in part["pages"]]) for part in table["parts"]]


def public_headers() -> list[Path]:
    return sorted((ROOT / "runtime/include/tide").glob("*.h"))


def command_page() -> str:
    """The help of every command. That of `tide agent` is the help of its program."""
    lines = ["# The command", "", "Made from what `tide COMMAND --help` prints.", ""]
    for name in [name for name in command_names() if name != "lab"]:
        command = load_command(name)
        help_text = get_docs_for_click(obj=command, ctx=typer.Context(command), indent=1, name=f"tide {name}")
        lines.append(re.sub(r"^  (?=\S)", "    ", help_text, flags=re.MULTILINE))  # examples become code
    told = subprocess.run([str(find_binary("tide-agent")), "--help"], capture_output=True, text=True, check=True).stdout
    return "\n".join([*lines, "## The options of `tide agent`", "", "```text", *told.rstrip().splitlines(), "```", ""])


def made_pages() -> dict[str, str]:
    """The text of each page, by its place in the site."""
    pages = {"reference/command.md": command_page(), "reference/errors.md": errors.page(ROOT)}
    names = []
    for header in public_headers():
        name, text = header.stem, header.read_text(encoding="utf-8")
        pages[f"reference/c/{name}.md"] = f"# tide/{name}.h\n\n```c\n{text}```\n"
        about = re.sub(r"\s*\n \*\s*", " ", text.partition("\n")[2].partition("*/")[0].removeprefix("/* "))
        names.append(f"| [tide/{name}.h](c/{name}.md) | {about.partition('. ')[0].strip().rstrip('.')} |")
    pages["reference/c.md"] = _C_PAGE + "\n".join(names) + "\n"
    return pages


def place_of(file: str) -> str:
    """Place in the site of a page or picture of the repository."""
    place = file.removeprefix("docs/").lower() if file.startswith("docs/") else file.lower()
    return re.sub(r"readme\.md$", "index.md", place)


def stage(folder: Path) -> None:
    made = made_pages()
    wanted = [file for _, pages in menu() for _, file in pages]
    own = [file for file in wanted if file not in made]
    missing = [file for file in own if not (ROOT / file).is_file()]
    if missing:
        raise GuideError(f"docs/guide/menu.toml names {missing[0]}, which is not there")
    lost = [file for file in sorted(_pages_of_docs()) if file not in own]
    if lost:
        raise GuideError(f"docs/guide/menu.toml does not name {lost[0]}; give it a place")
    pictures = [str(file.relative_to(ROOT)) for file in sorted((ROOT / "docs").rglob("*")) if file.suffix in PICTURES]
    places = {file: place_of(file) for file in [*own, *pictures]} | _origins()
    for file in own:
        text = (ROOT / file).read_text(encoding="utf-8")
        _write(folder / places[file], links.rewritten(text, file, places, ROOT))
    for file, text in made.items():
        _write(folder / file, text)
    for file in pictures:
        (folder / places[file]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, folder / places[file])
    for name in _ASSETS:
        shutil.copy(ROOT / "docs/guide" / name, folder)


def _origins() -> dict[str, str]:
    """Files from which a page is generated; a link to such a file leads to the page."""
    of_headers = {str(file.relative_to(ROOT)): f"reference/c/{file.stem}.md" for file in public_headers()}
    return of_headers | {"docs/guide/errors.toml": "reference/errors.md"}


def _pages_of_docs() -> set[str]:
    return {str(file.relative_to(ROOT)) for file in (ROOT / "docs").rglob("*.md")}


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def configuration(pages: Path, out: Path) -> str:
    made = set(made_pages())
    text = (ROOT / "docs/guide/mkdocs.yml").read_text(encoding="utf-8")
    lines = [text, f"docs_dir: {pages}", f"site_dir: {out}", "nav:"]
    for title, entries in menu():
        lines.append(f"  - {title}:")
        lines += [f"      - {name}: {file if file in made else place_of(file)}" for name, file in entries]
    return "\n".join(lines) + "\n"


def build(out: Path) -> None:
    """Builds the site in a folder beside the old one, which is replaced only if the build succeeds."""
    work = ROOT / "build/guide"
    shutil.rmtree(work, ignore_errors=True)
    stage(work / "pages")
    _write(work / "mkdocs.yml", configuration(work / "pages", work / "site"))
    made = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", str(work / "mkdocs.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise GuideError(f"the site could not be built:\n{made.stdout}{made.stderr}")
    (work / "site/404.html").unlink()  # its pictures are at the root of a server, which not every site has
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(str(work / "site"), out)


def main(
    out: Annotated[Path, typer.Option("--out", help="Folder that receives the site.")] = ROOT / "build/site",
) -> None:
    try:
        build(out)
    except (GuideError, links.BrokenLinkError, OSError) as error:
        typer.echo(f"guide: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"{out / 'index.html'}")


if __name__ == "__main__":
    typer.run(main)
