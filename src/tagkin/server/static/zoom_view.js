// The zoomed view of the pictures that are looked at closer. Pictures side by side share one view.
import { find, findAll } from "./dom.js";

const MOST = 8;
const STEP = 0.15; // of the pane, for a key that moves the view
const SWIPE = 60; // pixels

// The scale, 1 if the picture fits; how far it is moved, in widths and heights of its pane.
export const view = { scale: 1, x: 0, y: 0 };
let hooks = { swiped() {}, changed() {} };

export function fit() {
  Object.assign(view, { scale: 1, x: 0, y: 0 });
  apply();
}

export function apply() {
  const limit = (view.scale - 1) / 2; // the picture never leaves its pane
  view.x = Math.max(-limit, Math.min(limit, view.x));
  view.y = Math.max(-limit, Math.min(limit, view.y));
  for (const image of findAll("#closer figure > *")) {
    image.style.transform = `translate(${100 * view.x}%, ${100 * view.y}%) scale(${view.scale})`;
  }
  find("#closer-scale").textContent = `${Math.round(100 * view.scale)} %`;
  find("#closer").classList.toggle("zoomed", view.scale > 1);
  hooks.changed();
}

// Zoom at a point of the pane, from -0.5 to 0.5; that point stays where it is.
export function zoom(factor, [atX, atY] = [0, 0]) {
  const scale = Math.max(1, Math.min(MOST, view.scale * factor));
  const ratio = scale / view.scale;
  view.x = atX - (atX - view.x) * ratio;
  view.y = atY - (atY - view.y) * ratio;
  view.scale = scale;
  apply();
}

export function pan(byX, byY) {
  view.x -= byX * STEP;
  view.y -= byY * STEP;
  apply();
}

function pointIn(pane, { clientX, clientY }) {
  const box = pane.getBoundingClientRect();
  return [(clientX - box.left) / box.width - 0.5, (clientY - box.top) / box.height - 0.5];
}

// --- mouse and touch ----------------------------------------------------------------------------

const pointers = new Map(); // id → last event
let start = null; // where a swipe began

function middle(events) {
  const sum = events.reduce((all, one) => [all[0] + one.clientX, all[1] + one.clientY], [0, 0]);
  return { clientX: sum[0] / events.length, clientY: sum[1] / events.length };
}

const spread = ([a, b]) => (b ? Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) : 1);

function moved(event) {
  if (!pointers.has(event.pointerId)) return;
  const pane = find("#closer figure");
  const { width, height } = pane.getBoundingClientRect();
  const before = [...pointers.values()];
  pointers.set(event.pointerId, event);
  const after = [...pointers.values()];
  const [from, to] = [middle(before), middle(after)];
  view.x += (to.clientX - from.clientX) / width;
  view.y += (to.clientY - from.clientY) / height;
  if (after.length > 1) {
    start = null;
    zoom(spread(after) / spread(before), pointIn(event.target.closest("figure") ?? pane, to));
  } else apply();
}

function ended(event) {
  const isLast = pointers.delete(event.pointerId) && !pointers.size;
  if (isLast && start && view.scale === 1 && event.type === "pointerup") {
    const by = event.clientX - start.clientX;
    if (Math.abs(by) > SWIPE) hooks.swiped(by < 0 ? 1 : -1);
  }
  if (isLast) start = null;
}

export function listen(stage, given) {
  hooks = given;
  stage.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    stage.setPointerCapture(event.pointerId);
    start = pointers.size ? null : event;
    pointers.set(event.pointerId, event);
  });
  stage.addEventListener("pointermove", moved);
  for (const kind of ["pointerup", "pointercancel"]) stage.addEventListener(kind, ended);
  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), pointIn(event.target.closest("figure") ?? find("#closer figure"), event));
  }, { passive: false });
  stage.addEventListener("dblclick", (event) => {
    if (view.scale > 1) fit();
    else zoom(3, pointIn(event.target.closest("figure") ?? find("#closer figure"), event));
  });
}
