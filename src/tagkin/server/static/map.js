// The map of the collection: move, come nearer, select photographs and tag them.
import { counted, find, findAll, make, mode } from "./dom.js";
import { withFilters } from "./filters.js";
import { bind } from "./keys.js";
import { say } from "./message.js";
import { onShown } from "./page.js";
import { finishAll, tagAll } from "./selection.js";
import { get } from "./server.js";
import {
  COLOURS, REST, camera, canvas, cardsOf, draw, moveMap, positions, selected, setFrame, setMap, setSpace, sideOf, zoomMap,
} from "./map_view.js";

const NEAR = 12; // pixels
const STILL = 5; // pixels: a shorter movement is a click

let drawn = null;
let drag = "move";

function legend() {
  const list = find("#map-tags");
  const dot = (colour) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const circle = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    for (const [key, value] of Object.entries({ cx: "50%", cy: "50%", r: "48%", fill: colour })) circle.setAttribute(key, value);
    svg.append(circle);
    svg.setAttribute("aria-hidden", "true");
    return svg;
  };
  list.replaceChildren(
    ...drawn.tags.map((name, i) => make("li", {}, dot(COLOURS[i]), name)),
    make("li", { class: "quiet" }, dot(REST), "other or no tags"),
  );
}

function pointOf(event) {
  const box = canvas().getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

// The photograph below the pointer, or the nearest dot; -1 if there is neither.
function nearest(event) {
  const [x, y] = pointOf(event);
  let best = -1;
  let least = NEAR * NEAR;
  positions().forEach(([a, b], i) => {
    const half = sideOf(i) / 2;
    const isInside = Math.max(Math.abs(a - x), Math.abs(b - y)) <= half;
    const distance = isInside ? -1 : (a - x) ** 2 + (b - y) ** 2;
    if (distance < least && drawn.selected[i]) [best, least] = [i, distance];
  });
  return best;
}

// --- one photograph -----------------------------------------------------------------------------

let peeked = -1;

async function peek(i) {
  const box = find("#map .peek");
  if (i === peeked) return;
  peeked = i;
  if (i < 0) {
    box.hidden = true;
    return;
  }
  const [card] = await cardsOf([drawn.contents[i]]).catch(() => []);
  if (peeked !== i || !card) return;
  const isSelected = selected.has(card.content) ? ", selected" : "";
  box.replaceChildren(make("img", { src: card.thumbnail, alt: "" }), card.name, make("span", { class: "unseen-text" }, isSelected));
  box.dataset.content = drawn.contents[i];
  const [x, y] = positions()[i];
  const width = canvas().clientWidth;
  box.style.left = `${Math.max(4, Math.min(width - 168, x - 80))}px`;
  box.style.top = y > 190 ? `${y - 168 - sideOf(i) / 2}px` : `${y + 14 + sideOf(i) / 2}px`;
  box.hidden = false;
}

// The next dot in the direction of an arrow key, preferably straight ahead.
function towards(key) {
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  const at = positions();
  const [x, y] = at[peeked] ?? [canvas().clientWidth / 2, canvas().clientHeight / 2];
  let best = peeked;
  let least = Infinity;
  at.forEach(([a, b], i) => {
    const ahead = (a - x) * dx + (b - y) * dy;
    const aside = Math.abs((a - x) * dy) + Math.abs((b - y) * dx);
    const cost = ahead + 2 * aside;
    if (i !== peeked && drawn.selected[i] && ahead > 0 && cost < least) [best, least] = [i, cost];
  });
  return best;
}

const isOnMap = () => document.activeElement === canvas() && drawn;

// Keep the photograph in sight.
function follow(i) {
  const [x, y] = positions()[i] ?? [0, 0];
  const [width, height] = [canvas().clientWidth, canvas().clientHeight];
  if (x < 0 || y < 0 || x > width || y > height) moveMap(width / 2 - x, height / 2 - y);
}

function move(event) {
  if (!isOnMap()) return false;
  const to = towards(event.key);
  follow(to);
  peek(to);
  return true;
}

function open(i) {
  if (i >= 0) location.href = withFilters(`photographs/${drawn.contents[i]}`);
}

// --- several photographs ------------------------------------------------------------------------

function selectionChanged() {
  find("#map-selection").hidden = !selected.size;
  find("#chosen").textContent = `${counted(selected.size, "photograph")} selected`;
  draw();
}

function toggle(i) {
  if (i < 0) return;
  const content = drawn.contents[i];
  if (!selected.delete(content)) selected.add(content);
  selectionChanged();
}

function selectIn([left, top, width, height]) {
  positions().forEach(([x, y], i) => {
    if (drawn.selected[i] && x >= left && y >= top && x <= left + width && y <= top + height) selected.add(drawn.contents[i]);
  });
  selectionChanged();
}

function clear() {
  selected.clear();
  selectionChanged();
  canvas().focus();
}

async function tagSelected(verdict) {
  const name = find("#tag").value.trim();
  if (!name) return find("#tag").focus();
  if (await tagAll(verdict, name, [...selected])) {
    find("#tag").value = "";
    clear();
  }
}

async function finishSelected() {
  if (!selected.size) return say("Select photographs on the map first.");
  if (await finishAll([...selected])) clear();
}

// --- mouse and touch ----------------------------------------------------------------------------

const pointers = new Map(); // id → last event
let start = null; // where a drag began

const isSelecting = () => drag === "select" || start?.shiftKey;

function frameTo(event) {
  const [[a, b], [c, d]] = [pointOf(start), pointOf(event)];
  return [Math.min(a, c), Math.min(b, d), Math.abs(a - c), Math.abs(b - d)];
}

const isDrag = (event) => start && Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY) > STILL;

function moved(event) {
  const before = pointers.get(event.pointerId);
  if (!before) return peek(nearest(event));
  pointers.set(event.pointerId, event);
  peek(-1);
  if (pointers.size > 1) {
    const [other] = [...pointers.values()].filter((one) => one !== event);
    const spread = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    start = null;
    zoomMap(spread(event) / spread(before), ...pointOf(other));
  } else if (isDrag(event)) {
    if (isSelecting()) setFrame(frameTo(event));
    else moveMap(event.clientX - before.clientX, event.clientY - before.clientY);
  }
}

function ended(event) {
  pointers.delete(event.pointerId);
  if (!start || event.type !== "pointerup") {
    setFrame(null);
  } else if (isDrag(event)) {
    const box = isSelecting() ? frameTo(event) : null;
    setFrame(null);
    if (box) selectIn(box);
  } else if (isSelecting()) toggle(nearest(event));
  else open(nearest(event));
  if (!pointers.size) start = null;
}

function wheeled(event) {
  const isAway = event.deltaY > 0;
  if (isAway && camera.scale === 1) return; // the page scrolls
  if (!(event.ctrlKey || camera.scale > 1 || isOnMap())) return;
  event.preventDefault();
  peek(-1);
  zoomMap(Math.exp(-event.deltaY / 300), ...pointOf(event));
  setTouch();
}

// A finger scrolls the page, unless it moves the map or selects.
function setTouch() {
  canvas().style.touchAction = drag === "select" || camera.scale > 1 ? "none" : "pan-y";
}

// The dot nearest to the middle of the map, or the middle if there is no dot.
function middleDot() {
  const middle = [canvas().clientWidth / 2, canvas().clientHeight / 2];
  const distance = ([x, y]) => Math.hypot(x - middle[0], y - middle[1]);
  const dots = positions().filter((_, i) => drawn.selected[i]);
  return dots.reduce((best, dot) => (best && distance(best) <= distance(dot) ? best : dot), null) ?? middle;
}

function zoomByKey(factor) {
  if (!drawn) return false;
  const [x, y] = positions()[peeked] ?? middleDot();
  const i = peeked;
  peek(-1);
  zoomMap(factor, x, y);
  setTouch();
  peek(i);
  return true;
}

async function shown() {
  if (mode() !== "overview") return;
  const found = await get(withFilters("api/v1/map")).catch(() => ({ map: null }));
  if (!found.map || !canvas()) return;
  const isNew = find("#map").hidden;
  if (isNew || String(drawn.contents) !== String(found.map.contents)) peek(-1);
  drawn = found.map;
  setMap(drawn);
  find("#map").hidden = false;
  legend();
  selectionChanged();
  if (isNew) listenToPointers();
}

function listenToPointers() {
  drag = "move";
  setTouch();
  canvas().addEventListener("pointerdown", (event) => {
    if (event.button) return;
    canvas().setPointerCapture(event.pointerId);
    start = pointers.size ? null : event;
    pointers.set(event.pointerId, event);
  });
  canvas().addEventListener("pointermove", moved);
  for (const kind of ["pointerup", "pointercancel"]) canvas().addEventListener(kind, ended);
  for (const left of ["pointerleave", "blur"]) canvas().addEventListener(left, () => peek(-1));
  canvas().addEventListener("wheel", wheeled, { passive: false });
}

function press(buttons, button) {
  for (const one of findAll(buttons)) one.ariaPressed = String(one === button);
}

function clicked(event) {
  if (mode() !== "overview") return;
  const button = event.target.closest("[data-space], [data-drag], [data-zoom]");
  if (button?.dataset.space) {
    press("[data-space]", button);
    setSpace(button.dataset.space);
  } else if (button?.dataset.drag) {
    drag = button.dataset.drag;
    press("[data-drag]", button);
    setTouch();
  } else if (button) zoomByKey(Number(button.dataset.zoom));
  if (event.target.closest("#remove")) tagSelected("reject");
  if (event.target.closest("#finish")) finishSelected();
  if (event.target.closest("#clear")) clear();
}

export function listen() {
  onShown(shown);
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.addEventListener("click", clicked);
  document.addEventListener("submit", (event) => {
    if (mode() !== "overview" || event.target.id !== "add") return;
    event.preventDefault();
    tagSelected("accept");
  });
  const onMap = (run) => () => (isOnMap() ? run() : false);
  bind("overview", ["m"], "To the map", () => canvas()?.focus());
  bind("overview", ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], "On the map: move to the next photograph", move);
  bind("overview", ["Enter"], "On the map: open the photograph", onMap(() => (peeked >= 0 ? open(peeked) : false)));
  bind("overview", ["+", "="], "On the map: zoom in", onMap(() => zoomByKey(1.5)));
  bind("overview", ["-"], "On the map: zoom out", onMap(() => zoomByKey(1 / 1.5)));
  bind("overview", [" "], "On the map: select or unselect; with the mouse: Shift and drag", onMap(() => {
    const i = peeked;
    toggle(i);
    peek(-1);
    peek(i);
  }));
  bind("overview", ["t"], "On the map: tag the selection", () => (selected.size ? find("#tag").focus() : false));
  bind("overview", ["f"], "On the map: finished, the selection has all its tags", () => void finishSelected());
  bind("overview", ["Escape"], "On the map: clear selection", () => (selected.size ? clear() : false));
}
