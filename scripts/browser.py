# SPDX-License-Identifier: Apache-2.0
"""Checks pages in Chromium: 400 and 1,280 pixels wide, on white and on black.

scripts/browser.py PAGE...                      reports pages that are wider than their window, raise an error or draw
                                                no chart; the exit status is then 1
scripts/browser.py --pictures FOLDER PAGE...    also keeps a picture of each
"""

from __future__ import annotations

import argparse
import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTHS = (400, 1280)
SCHEMES = {"white": "1", "black": "0"}  # preferredColorScheme of Blink
_LONGEST_S = 120
# The page is in a frame of the given width, as a window of the browser cannot be as narrow as a telephone's.
_FRAME = """<!doctype html><body style="margin:0">
<iframe width="{width}" height="6000" style="border:0"></iframe><pre></pre>
<script>
const frame = document.querySelector("iframe"), errors = [];
frame.addEventListener("load", () => setTimeout(() => {{
  const page = frame.contentDocument, root = page.documentElement;
  const wide = [...page.querySelectorAll("body *")].filter(one => one.getBoundingClientRect().right > {width} + 1
    && !one.closest(".scroll") && !one.closest("svg")).map(one => one.tagName + " " + one.className).slice(0, 5);
  document.querySelector("pre").textContent = JSON.stringify({{width: root.scrollWidth, wide, errors,
    wanted: page.querySelectorAll("figure").length,
    drawn: [...page.querySelectorAll("figure > svg")].filter(one => one.querySelector(".tick")).length}});
}}, 3000));
frame.src = {source};
const watch = setInterval(() => {{ if (frame.contentWindow && !frame.contentWindow.watched) {{
  frame.contentWindow.watched = true;
  frame.contentWindow.addEventListener("error", event => errors.push(String(event.message))); }} }}, 1);
</script>"""


def _browser() -> str:
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if found is None:
        sys.exit("browser: no chromium here; install it, as by apt-get install chromium")
    return found


def _looked_at(browser: str, page: Path, width: int, scheme: str, picture: Path | None) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        frame = Path(folder) / "frame.html"
        frame.write_text(_FRAME.format(width=width, source=json.dumps(page.resolve().as_uri())), encoding="utf-8")
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += ["--allow-file-access-from-files", f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}"]
        command += [
            f"--window-size={width + 200},6000",
            "--virtual-time-budget=20000",
            f"--user-data-dir={folder}/user",
        ]
        address = frame.as_uri()
        if picture is not None:
            arguments = [*command, f"--screenshot={picture}", address]
            subprocess.run(arguments, capture_output=True, timeout=_LONGEST_S, check=True)
        shown = subprocess.run(
            [*command, "--dump-dom", address], capture_output=True, text=True, timeout=_LONGEST_S, check=True
        ).stdout
    told = re.search(r"<pre>(\{.*\})</pre>", shown)
    if told is None:
        return ["it did not load in time"]
    seen = json.loads(html.unescape(told[1]))
    wrong = [f"error: {one}" for one in seen["errors"]]
    if seen["width"] > width:
        wrong.append(f"it is {seen['width']} pixels wide ({', '.join(seen['wide'])})")
    if seen["drawn"] < seen["wanted"]:
        wrong.append(f"{seen['drawn']} of {seen['wanted']} charts are drawn")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description="Look at pages in Chromium, at two widths, on white and on black.")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="Folder for pictures of the pages.")
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGE")
    chosen = parser.parse_args()
    browser = _browser()
    failed = False
    for page in chosen.pages:
        if not page.is_file():
            sys.exit(f"browser: {page}: is not a file")
        for width in WIDTHS:
            for scheme in SCHEMES:
                picture = None
                if chosen.pictures is not None:
                    chosen.pictures.mkdir(parents=True, exist_ok=True)
                    picture = chosen.pictures.resolve() / f"{page.stem}_{width}_{scheme}.png"
                wrong = _looked_at(browser, page, width, scheme, picture)
                print(f"{page}, {width} pixels, on {scheme}: {'; '.join(wrong) or 'good'}")
                failed = failed or bool(wrong)
    sys.exit(failed)


if __name__ == "__main__":
    main()
