// Draw the map: dots from afar, photographs from near.
import { find } from "./dom.js";
import { get } from "./server.js";

export const COLOURS = ["#4477aa", "#ee6677", "#228833", "#e0b400", "#44b5d6", "#aa3377", "#ee7733", "#6a51c8", "#009988"];
export const REST = "#9aa0a8"; // other tags or no tags
const MARGIN = 18;
const FARTHEST = 1;
const NEAREST = 40;
const NEAR = 1.8; // from this scale on, photographs take the place of dots where there is room
const MOST_PHOTOGRAPHS = 160;
const FAINT = 0.06; // how visible photographs are that filters leave out
const BATCH = 100; // photographs that are asked for at once

export const canvas = () => find("#map canvas");

// The camera: 1 shows everything; the offset is in pixels.
export const camera = { scale: 1, x: 0, y: 0 };
export const selected = new Set(); // contents

let drawn = null;
let space = "semantic";
let at = []; // the place of each photograph on the screen
let large = new Map(); // index → side of a photograph that is drawn
let frame = null; // a rectangle that selects
let isDue = false;

export const positions = () => at;
export const sideOf = (i) => large.get(i) ?? 0;

// A page that is shown again keeps how near it is, and what is selected unless filters leave it out.
export function setMap(found) {
  const isSame = String(drawn?.contents) === String(found.contents);
  drawn = found;
  found.contents.forEach((content, i) => found.selected[i] || selected.delete(content));
  if (isSame) return;
  Object.assign(camera, { scale: 1, x: 0, y: 0 });
  selected.clear();
}

export function setSpace(name) {
  space = name;
  draw();
}

export function setFrame(box) {
  frame = box;
  draw();
}

function locate({ width, height }) {
  const [xs, ys] = space === "semantic" ? [drawn.x, drawn.y] : [drawn.visual_x, drawn.visual_y];
  const [limitX, limitY] = [((camera.scale - 1) * width) / 2, ((camera.scale - 1) * height) / 2];
  camera.x = Math.max(-limitX, Math.min(limitX, camera.x));
  camera.y = Math.max(-limitY, Math.min(limitY, camera.y));
  const place = (value, size, offset) => (MARGIN + value * (size - 2 * MARGIN) - size / 2) * camera.scale + size / 2 + offset;
  return xs.map((x, i) => [place(x, width, camera.x), place(ys[i], height, camera.y)]);
}

// --- photographs --------------------------------------------------------------------------------

const cards = new Map(); // content → its card
const images = new Map(); // content → image

// The name and the picture of each photograph.
export async function cardsOf(contents) {
  const missing = contents.filter((content) => !cards.has(content));
  for (let i = 0; i < missing.length; i += BATCH) {
    const asked = missing.slice(i, i + BATCH).map((content) => `content=${content}`).join("&");
    for (const card of (await get(`api/v1/map/photographs?${asked}`)).photographs) cards.set(card.content, card);
  }
  return contents.map((content) => cards.get(content));
}

async function load(contents) {
  const missing = contents.filter((content) => !images.has(content));
  if (!missing.length) return;
  for (const content of missing) images.set(content, new Image());
  try {
    for (const card of (await cardsOf(missing)).filter(Boolean)) {
      const image = images.get(card.content);
      image.onload = redraw;
      image.src = card.thumbnail;
    }
  } catch {
    for (const content of missing) images.delete(content); // the next drawing asks again
  }
}

// Choose photographs that do not cover each other, in the order of the map.
function chooseLarge(width, height) {
  large = new Map();
  if (camera.scale < NEAR) return;
  const side = Math.min(104, 40 + 9 * camera.scale);
  const taken = new Map(); // cell → places
  for (let i = 0; i < at.length && large.size < MOST_PHOTOGRAPHS; i++) {
    const [x, y] = at[i];
    if (!drawn.selected[i]) continue;
    if (x < -side / 2 || y < -side / 2 || x > width + side / 2 || y > height + side / 2) continue;
    const [column, row] = [Math.floor(x / side), Math.floor(y / side)];
    const neighbours = [-1, 0, 1].flatMap((a) => [-1, 0, 1].flatMap((b) => taken.get(`${column + a} ${row + b}`) ?? []));
    if (neighbours.some(([a, b]) => Math.abs(a - x) < side + 3 && Math.abs(b - y) < side + 3)) continue;
    const cell = `${column} ${row}`;
    taken.set(cell, [...(taken.get(cell) ?? []), at[i]]);
    large.set(i, side);
  }
  load([...large.keys()].map((i) => drawn.contents[i]));
}

// --- drawing ------------------------------------------------------------------------------------

function redraw() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    draw();
  });
}

const colourOf = (i) => COLOURS[drawn.colours[i]] ?? REST;

function drawDot(pen, i, radius) {
  pen.fillStyle = colourOf(i);
  pen.globalAlpha = !drawn.selected[i] ? FAINT : drawn.colours[i] < 0 ? 0.4 : 0.9;
  pen.beginPath();
  pen.arc(...at[i], radius, 0, 7);
  pen.fill();
}

function drawPhotograph(pen, i, side) {
  const [x, y] = [at[i][0] - side / 2, at[i][1] - side / 2];
  const image = images.get(drawn.contents[i]);
  pen.globalAlpha = 1;
  pen.fillStyle = colourOf(i);
  pen.fillRect(x, y, side, side);
  if (!image?.naturalWidth) return;
  const part = Math.min(image.naturalWidth, image.naturalHeight);
  const from = [(image.naturalWidth - part) / 2, (image.naturalHeight - part) / 2, part, part];
  pen.drawImage(image, ...from, x + 2, y + 2, side - 4, side - 4);
}

function drawSelected(pen, accent) {
  pen.globalAlpha = 1;
  pen.strokeStyle = accent;
  pen.lineWidth = 3;
  at.forEach(([x, y], i) => {
    if (!selected.has(drawn.contents[i])) return;
    const side = sideOf(i);
    pen.beginPath();
    if (side) pen.rect(x - side / 2, y - side / 2, side, side);
    else pen.arc(x, y, 6, 0, 7);
    pen.stroke();
  });
}

export function draw() {
  if (!drawn || !canvas()) return;
  const { width, height } = canvas().getBoundingClientRect();
  const scale = devicePixelRatio;
  canvas().width = width * scale;
  canvas().height = height * scale;
  const pen = canvas().getContext("2d");
  pen.scale(scale, scale);
  at = locate({ width, height });
  find("#map-scale").textContent = `${Math.round(100 * camera.scale)} %`;
  chooseLarge(width, height);
  const radius = Math.min(6, (at.length > 1200 ? 2.2 : 3.2) * Math.sqrt(camera.scale));
  const order = at.map((_, i) => i).sort((a, b) => drawn.colours[a] - drawn.colours[b]);
  for (const i of order) if (!large.has(i)) drawDot(pen, i, radius);
  for (const [i, side] of large) drawPhotograph(pen, i, side);
  const accent = getComputedStyle(canvas()).getPropertyValue("--accent").trim();
  drawSelected(pen, accent);
  if (frame) {
    pen.globalAlpha = 0.2;
    pen.fillStyle = accent;
    pen.fillRect(...frame);
    pen.globalAlpha = 1;
    pen.lineWidth = 1;
    pen.strokeRect(...frame);
  }
}

// Come nearer or go away; the point x, y of the canvas stays where it is.
export function zoomMap(factor, x, y) {
  const { width, height } = canvas().getBoundingClientRect();
  const scale = Math.max(FARTHEST, Math.min(NEAREST, camera.scale * factor));
  const ratio = scale / camera.scale;
  const [fromX, fromY] = [x - width / 2, y - height / 2];
  camera.x = fromX - (fromX - camera.x) * ratio;
  camera.y = fromY - (fromY - camera.y) * ratio;
  camera.scale = scale;
  draw();
}

export function moveMap(byX, byY) {
  camera.x += byX;
  camera.y += byY;
  draw();
}
