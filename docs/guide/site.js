// SPDX-License-Identifier: Apache-2.0
// Sets the colors that the browser prefers, also for pages read from a disk, where the theme alone stays white. Sets the
// names of columns that site.css shows.
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
