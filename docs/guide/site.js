// SPDX-License-Identifier: Apache-2.0
// Colors by the browser's preference, also from a disk, where the theme stays white; and names of columns for site.css.
"use strict";
if (!__md_get("__palette") && matchMedia("(prefers-color-scheme: dark)").matches) {
  document.body.setAttribute("data-md-color-scheme", "slate");
}
for (const table of document.querySelectorAll(".md-typeset table:not([class])")) {
  const names = [...table.querySelectorAll("thead th")].map((head) => head.textContent);
  for (const row of table.tBodies[0]?.rows ?? []) {
    [...row.cells].forEach((cell, index) => {
      if (names[index]) cell.dataset.column = names[index];
    });
  }
}
