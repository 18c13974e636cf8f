// The map of the collection; every dot is a photograph.
import { find, findAll, make, mode } from "./dom.js";
import { withFilters } from "./filters.js";
import { bind } from "./keys.js";
import { onShown } from "./page.js";
import { get } from "./server.js";

const COLOURS = ["#4477aa", "#ee6677", "#228833", "#e0b400", "#44b5d6", "#aa3377", "#ee7733", "#6a51c8", "#009988"];
const REST = "#9aa0a8"; // other tags or no tags
const MARGIN = 18;
const NEAR = 12; // pixels

let drawn = null;
let space = "semantic";
let at = [];

const canvas = () => find("#map canvas");

function positions(width, height) {
  const [xs, ys] = space === "semantic" ? [drawn.x, drawn.y] : [drawn.visual_x, drawn.visual_y];
  return xs.map((x, i) => [MARGIN + x * (width - 2 * MARGIN), MARGIN + ys[i] * (height - 2 * MARGIN)]);
}

function draw() {
  if (!drawn || !canvas()) return;
  const { width, height } = canvas().getBoundingClientRect();
  const scale = devicePixelRatio;
  canvas().width = width * scale;
  canvas().height = height * scale;
  const pen = canvas().getContext("2d");
  pen.scale(scale, scale);
  at = positions(width, height);
  const radius = at.length > 1200 ? 2.2 : 3.2;
  const order = at.map((_, i) => i).sort((a, b) => drawn.colours[a] - drawn.colours[b]);
  for (const i of order) {
    pen.fillStyle = COLOURS[drawn.colours[i]] ?? REST;
    pen.globalAlpha = !drawn.selected[i] ? 0.06 : drawn.colours[i] < 0 ? 0.4 : 0.9;
    pen.beginPath();
    pen.arc(...at[i], radius, 0, 7);
    pen.fill();
  }
}

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

function nearest(event) {
  const box = canvas().getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  let best = -1;
  let least = NEAR * NEAR;
  at.forEach(([a, b], i) => {
    const distance = (a - x) ** 2 + (b - y) ** 2;
    if (distance < least && drawn.selected[i]) [best, least] = [i, distance];
  });
  return best;
}

let peeked = -1;

async function peek(i) {
  const box = find("#map .peek");
  if (i === peeked) return;
  peeked = i;
  if (i < 0) {
    box.hidden = true;
    return;
  }
  const found = await get(`api/photographs/${drawn.contents[i]}`).catch(() => null);
  if (peeked !== i || !found) return;
  box.replaceChildren(make("img", { src: found.thumbnail, alt: "" }), found.name);
  box.dataset.content = drawn.contents[i];
  const [x, y] = at[i];
  const width = canvas().clientWidth;
  box.style.left = `${Math.max(4, Math.min(width - 168, x - 80))}px`;
  box.style.top = y > 190 ? `${y - 168}px` : `${y + 14}px`;
  box.hidden = false;
}

// The next dot in the direction of an arrow key, preferably straight ahead.
function towards(key) {
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
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

function move(event) {
  if (!isOnMap()) return false;
  peek(towards(event.key));
  return true;
}

function open(i) {
  if (i >= 0) location.href = withFilters(`photographs/${drawn.contents[i]}`);
}

async function shown() {
  if (mode() !== "overview") return;
  const found = await get(withFilters("api/map")).catch(() => ({ map: null }));
  if (!found.map || !canvas()) return;
  drawn = found.map;
  find("#map").hidden = false;
  legend();
  draw();
  canvas().addEventListener("pointermove", (event) => peek(nearest(event)));
  for (const left of ["pointerleave", "blur"]) canvas().addEventListener(left, () => peek(-1));
  canvas().addEventListener("click", (event) => open(nearest(event)));
}

export function listen() {
  onShown(shown);
  bind("overview", ["m"], "To the map", () => canvas()?.focus());
  bind("overview", ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], "On the map: move to the next photograph", move);
  bind("overview", ["Enter"], "On the map: open the photograph", () => (isOnMap() && peeked >= 0 ? open(peeked) : false));
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-space]");
    if (!button) return;
    space = button.dataset.space;
    for (const one of findAll("[data-space]")) one.ariaPressed = String(one === button);
    draw();
  });
}
