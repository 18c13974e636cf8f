// Drag over a grid to mark or select photographs; from a marked photograph, to unmark them.
import { make } from "./dom.js";
import { changed, current, focusOn, isPressed, press, tiles } from "./grid.js";
import { skipClick } from "./view.js";

const STILL = 6; // pixels: a shorter movement is a click

let drag = null; // { x, y, value, before, box, last }, x and y on the page

// On the map, a drag moves the map unless a person chose otherwise. In a grid, Shift marks a range.
function isMeant(onMap, event) {
  return onMap ? onMap === "select" || event.shiftKey : event.pointerType !== "touch" && !event.shiftKey;
}

function begin(event) {
  const grid = event.target.closest("#grid");
  if (!grid || event.button || !isMeant(grid.dataset.drag, event)) return;
  const tile = event.target.closest("[aria-pressed]");
  const value = tile ? !isPressed(tile) : true;
  drag = { x: event.pageX, y: event.pageY, value, before: null, box: null, last: event };
}

// Marks follow the rectangle: photographs that it leaves are as they were.
function mark() {
  const { last, before, value, box } = drag;
  const [x, y] = [last.clientX + scrollX, last.clientY + scrollY];
  const [left, top] = [Math.min(x, drag.x), Math.min(y, drag.y)];
  const [right, bottom] = [Math.max(x, drag.x), Math.max(y, drag.y)];
  Object.assign(box.style, { left: `${left}px`, top: `${top}px`, width: `${right - left}px`, height: `${bottom - top}px` });
  const marks = [...before].map(([tile, was]) => {
    const area = tile.getBoundingClientRect();
    const isIn =
      area.left + scrollX < right && area.right + scrollX > left && area.top + scrollY < bottom && area.bottom + scrollY > top;
    return [tile, isIn ? value : was];
  });
  for (const mark of marks) press(...mark);
  changed();
}

function moved(event) {
  if (!drag) return;
  drag.last = event;
  if (!drag.box) {
    if (Math.hypot(event.pageX - drag.x, event.pageY - drag.y) < STILL) return;
    drag.box = make("div", { class: "lasso" });
    drag.before = new Map(tiles().map((tile) => [tile, isPressed(tile)]));
    document.body.append(drag.box);
  }
  mark();
}

function end(event) {
  const ended = drag;
  drag = null;
  if (!ended?.box) return;
  ended.box.remove();
  if (event.type === "pointercancel") {
    for (const [tile, was] of ended.before) press(tile, was);
    changed();
    return;
  }
  skipClick();
  focusOn(document.elementFromPoint(event.clientX, event.clientY)?.closest("#grid [aria-pressed]") ?? current(), { visible: false });
}

export function listen() {
  document.addEventListener("pointerdown", begin);
  document.addEventListener("pointermove", moved);
  for (const kind of ["pointerup", "pointercancel"]) document.addEventListener(kind, end);
  document.addEventListener("dragstart", (event) => event.target.closest?.("#grid") && event.preventDefault());
}
