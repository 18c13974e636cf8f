// The map of the collection: dots from afar, photographs from near. Dots are marked as the tiles of a
// grid are.
import { find, findAll, make, mode } from "./dom.js";
import { withFilters } from "./filters.js";
import { changed, current, focusOn, press, toggle } from "./grid.js";
import { bind } from "./keys.js";
import { onShown } from "./page.js";
import { get } from "./server.js";
import { View, listen as listenToPointers } from "./view.js";

const CLOSEST = 40;
const NEAR = 1.8; // from this scale on, photographs take the place of dots where there is room
const MOST_PHOTOGRAPHS = 160;
const SPREAD = 0.96; // of the map, so dots at its edge are whole

let plane = null; // the map, which each new page of the overview gets
let view = null;
let tags = []; // those with a colour
let dots = []; // the dots as the server tells them, each with its button
let isDue = false;

const isSelecting = (event) => event.shiftKey || find("#grid").dataset.drag === "select";
const focused = () => dotOf(document.activeElement);

function dotOf(element) {
  const button = element.closest("#map .dot");
  return button && dots.find((dot) => dot.button === button);
}

// The place of a dot from the middle of the map, in widths and heights of the map.
function placeOf(dot) {
  const [x, y] = dot.position.map((share) => SPREAD * (share - 0.5) * view.scale);
  return [x + view.x, y + view.y];
}

function build(found) {
  const grid = find("#grid", plane);
  dots = found.map((dot) => ({
    ...dot,
    button: make("button", { type: "button", class: `dot colour${dot.colour}`, tabindex: "-1", "aria-pressed": "false", "aria-label": dot.name, "data-content": dot.content }),
  }));
  grid.replaceChildren(...dots.map((dot) => dot.button));
  view = new View(plane, CLOSEST, draw);
  listenToPointers(grid, view, { frameOf: () => plane, isMeant });
  grid.addEventListener("pointerover", (event) => peek(dotOf(event.target)));
  grid.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && peek(dotOf(event.target)));
  for (const left of ["pointerout", "focusout"]) grid.addEventListener(left, () => peek(null));
  for (const { position: [x, y], button } of dots) {
    button.style.left = `${100 * (0.5 + SPREAD * (x - 0.5))}%`;
    button.style.top = `${100 * (0.5 + SPREAD * (y - 0.5))}%`;
  }
  view.fit();
}

// The map grows, and its dots do not: this is faster than to scale it, and each dot back.
function draw() {
  const { style } = find("#grid", plane);
  style.width = style.height = `${100 * view.scale}%`;
  style.transform = `translate(${(100 * view.x) / view.scale - 50}%, ${(100 * view.y) / view.scale - 50}%)`;
  find("#map-scale", plane).textContent = `${Math.round(100 * view.scale)} %`;
  peek(null);
  if (!isDue) requestAnimationFrame(showPhotographs);
  isDue = true;
}

// Show photographs in place of dots, where they do not cover each other.
function showPhotographs() {
  isDue = false;
  const { width, height } = plane.getBoundingClientRect();
  const side = Math.min(104, 40 + 9 * view.scale);
  const taken = [];
  for (const dot of dots) {
    const [x, y] = placeOf(dot);
    const [left, top] = [x * width, y * height];
    const isFree = () => taken.every(([a, b]) => Math.abs(a - left) > side + 3 || Math.abs(b - top) > side + 3);
    const isSeen = Math.abs(left) < (width + side) / 2 && Math.abs(top) < (height + side) / 2;
    const isLarge = view.scale >= NEAR && dot.selected && isSeen && taken.length < MOST_PHOTOGRAPHS && isFree();
    dot.button.classList.toggle("large", isLarge);
    if (!isLarge) continue;
    taken.push([left, top]);
    dot.button.style.setProperty("--side", `${side}px`);
    if (!dot.button.children.length) dot.button.append(make("img", { src: dot.thumbnail, alt: "", draggable: "false" }));
  }
}

function peek(dot) {
  const box = find(".peek", plane);
  box.hidden = !dot;
  if (!dot) return;
  box.replaceChildren(make("img", { src: dot.thumbnail, alt: "" }), dot.name);
  box.dataset.content = dot.content;
  const [frame, area] = [plane.getBoundingClientRect(), dot.button.getBoundingClientRect()];
  const above = area.top - frame.top - box.offsetHeight - 8;
  box.style.left = `${Math.max(4, Math.min(frame.width - box.offsetWidth - 4, (area.left + area.right - box.offsetWidth) / 2 - frame.left))}px`;
  box.style.top = `${above > 0 ? above : area.bottom - frame.top + 8}px`;
}

function open(dot) {
  location.href = withFilters(`photographs/${dot.content}`);
}

// --- keys and pointers --------------------------------------------------------------------------

// Of the dots that the filters leave, the one with the least cost, if any has one.
function least(cost) {
  let [best, lowest] = [null, Infinity];
  for (const dot of dots.filter((one) => one.selected)) {
    const its = cost(...placeOf(dot));
    if (its < lowest) [best, lowest] = [dot, its];
  }
  return best;
}

const middle = () => least((x, y) => Math.hypot(x * plane.clientWidth, y * plane.clientHeight));

function goTo(dot) {
  const [x, y] = placeOf(dot);
  if (Math.max(Math.abs(x), Math.abs(y)) > 0.5) view.move(-x, -y);
  focusOn(dot.button);
}

// Go to the next dot in the direction of an arrow key, preferably straight ahead.
function move(event) {
  const here = focused();
  if (!here) return false;
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  const { clientWidth: width, clientHeight: height } = plane;
  const [fromX, fromY] = placeOf(here);
  const next = least((x, y) => {
    const [byX, byY] = [(x - fromX) * width, (y - fromY) * height];
    const ahead = byX * dx + byY * dy;
    return ahead > 0 ? ahead + 2 * Math.abs(byX * dy + byY * dx) : Infinity;
  });
  if (next) goTo(next);
  return true;
}

// Zoom at the dot that has the focus, or at the dot nearest to the middle.
function zoom(factor) {
  const at = focused() ?? middle();
  view.zoom(factor, at ? placeOf(at) : [0, 0]);
  peek(focused());
}

// The wheel scrolls the page, unless the map is in use.
function isMeant(event) {
  if (event.type === "dblclick") return !isSelecting(event) && !dotOf(event.target);
  if (event.type !== "wheel") return !isSelecting(event);
  const isAway = event.deltaY > 0 && view.scale === 1;
  return !isAway && (event.ctrlKey || view.scale > 1 || Boolean(focused()));
}

function clicked(event) {
  const button = event.target.closest("#map [data-drag-to], #map [data-zoom], #map .dot");
  if (!button) return;
  const { dragTo, zoom: factor } = button.dataset;
  if (dragTo) {
    find("#grid").dataset.drag = dragTo;
    for (const one of findAll("button", button.parentElement)) one.ariaPressed = String(one === button);
  } else if (factor) zoom(Number(factor));
  else if (isSelecting(event)) toggle(button);
  else open(dotOf(button));
}

// Put the map on the page, which shows it from then on.
function put() {
  find("#map .plane").replaceWith(plane);
  const legend = tags.map((name, i) => make("li", { class: `colour${i}` }, name));
  find("#map-tags").replaceChildren(...legend, make("li", { class: "quiet colour-1" }, "other or no tags"));
  find("#map").hidden = false;
  changed();
}

async function shown() {
  if (mode() !== "overview") return;
  if (plane) put(); // at once, so nothing jumps
  const found = await get(withFilters("api/v1/map")).catch(() => null);
  if (!found?.dots.length || mode() !== "overview") return;
  const contents = found.dots.map((dot) => dot.content).join();
  if (plane?.dataset.contents !== contents) {
    plane = find("#map .plane");
    plane.dataset.contents = contents;
    ({ tags } = found);
    build(found.dots);
    put();
  }
  const isSelected = new Map(found.dots.map((dot) => [dot.content, dot.selected]));
  for (const dot of dots) {
    dot.selected = isSelected.get(dot.content);
    dot.button.disabled = !dot.selected;
    if (!dot.selected) press(dot.button, false);
  }
  if (!find("#grid [tabindex='0']:enabled") && current()) current().tabIndex = 0;
  showPhotographs();
  changed();
}

export function listen() {
  onShown(shown);
  addEventListener("resize", () => mode() === "overview" && view && draw());
  document.addEventListener("click", clicked);
  const onDot = (run) => () => {
    const dot = focused();
    return dot ? run(dot) : false;
  };
  bind("overview", ["m"], "To the map", () => (current() ? goTo(dotOf(current())) : false));
  bind("overview", ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], "On the map: move to the next photograph", move);
  bind("overview", ["Enter"], "On the map: open the photograph", onDot(open));
  bind("overview", ["+", "="], "On the map: zoom in", onDot(() => zoom(1.5)));
  bind("overview", ["-"], "On the map: zoom out", onDot(() => zoom(1 / 1.5)));
  bind("overview", [" "], "On the map: select or unselect; with the mouse: Shift and drag", onDot((dot) => toggle(dot.button)));
}
