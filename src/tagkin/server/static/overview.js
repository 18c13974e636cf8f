// Overview: sort the table, undo runs.
import { find, findAll, mode } from "./dom.js";
import { onShown } from "./page.js";
import { undo } from "./state.js";

const valueOf = (row, column) => {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
};

function sort(header) {
  const column = header.cellIndex;
  const isText = column === 0;
  const before = header.getAttribute("aria-sort");
  const isDown = before ? before === "ascending" : !isText;
  for (const one of findAll("#quality thead th")) one.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", isDown ? "descending" : "ascending");
  const body = find("#quality tbody");
  const order = (a, b) => (isText ? a.localeCompare(b) : a - b);
  const rows = [...body.rows].sort((a, b) => (isDown ? -1 : 1) * order(valueOf(a, column), valueOf(b, column)));
  body.append(...rows);
}

// Times are stored in UTC.
function showTimes() {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  for (const one of findAll(".runs time")) one.textContent = format.format(new Date(one.dateTime));
}

export function listen() {
  onShown(showTimes);
  document.addEventListener("click", (event) => {
    if (mode() !== "overview") return;
    const header = event.target.closest("#quality thead th");
    if (header) sort(header);
    const run = event.target.closest("[data-undo]");
    if (run) undo(Number(run.dataset.undo));
  });
}
