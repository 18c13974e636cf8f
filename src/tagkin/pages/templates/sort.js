"use strict";
document.querySelectorAll("table.sortable").forEach((table) => {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const words = head.dataset.kind === "words";
      const now = head.getAttribute("aria-sort");
      const up = now ? now === "descending" : words;
      const value = (row) => row.cells[column].dataset.value ?? "";
      const compare = (a, b) => {
        if (words) return value(a).localeCompare(value(b)) * (up ? 1 : -1);
        if (!value(a) || !value(b)) return (value(a) ? 0 : 1) - (value(b) ? 0 : 1);
        return (value(a) - value(b)) * (up ? 1 : -1);
      };
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
    });
  });
});
