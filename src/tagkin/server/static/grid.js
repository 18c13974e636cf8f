// A grid of photographs: moving and marking.
import { find, findAll, rove } from "./dom.js";
import { bind } from "./keys.js";
import { complain, say } from "./message.js";
import { fresh, onShown } from "./page.js";

const TILE = "#grid button[aria-pressed]:enabled";
export const tiles = () => findAll(TILE);
// A stack is one tile for the photographs of a burst.
export const stackOf = (tile) => JSON.parse(tile.dataset.stack ?? "[]");
export const sizeOf = (tile) => 1 + stackOf(tile).length;
// Above the line of a tag's page, where unmarked photographs are accepted.
export const isLikely = (tile) => !tile.closest(".below");
export const isPressed = (tile) => tile.getAttribute("aria-pressed") === "true";

let anchor = null; // where a range begins
let before = null; // the pressed tiles before the range
const hooks = [];

export function onChange(run) {
  hooks.push(run);
}

export function changed() {
  for (const run of hooks) run();
}

export function press(tile, value) {
  if (isPressed(tile) !== value) tile.setAttribute("aria-pressed", value);
}

export function current() {
  return document.activeElement?.closest?.(TILE) ?? find(`${TILE}[tabindex='0']`) ?? find(TILE);
}

export function focusOn(tile, { visible = true } = {}) {
  if (!tile) return;
  rove(findAll(`${TILE}[tabindex='0']`).concat(tile), tile, { preventScroll: true, focusVisible: visible });
  tile.scrollIntoView({ block: "nearest" });
}

// The tile in the next row, or in the row before, that is nearest.
function inNextRow(all, from, isDown) {
  const middle = (tile) => tile.getBoundingClientRect().left + tile.getBoundingClientRect().width / 2;
  const topOf = (tile) => tile.getBoundingClientRect().top;
  const [x, y] = [middle(from), topOf(from)];
  const rest = all.filter((tile) => (isDown ? topOf(tile) > y + 1 : topOf(tile) < y - 1));
  if (!rest.length) return isDown ? all.at(-1) : null;
  const row = isDown ? Math.min(...rest.map(topOf)) : Math.max(...rest.map(topOf));
  const inRow = rest.filter((tile) => Math.abs(topOf(tile) - row) < 1);
  return inRow.reduce((best, tile) => (Math.abs(middle(tile) - x) < Math.abs(middle(best) - x) ? tile : best));
}

function target(key) {
  const all = tiles();
  const at = all.indexOf(current());
  if (key === "ArrowUp" || key === "ArrowDown") return inNextRow(all, all[at], key === "ArrowDown");
  return { ArrowLeft: all[at - 1], ArrowRight: all[at + 1], Home: all[0], End: all.at(-1) }[key] ?? null;
}

function move(event) {
  if (!find("#grid")) return false;
  if (!document.activeElement.closest("#grid")) focusOn(current());
  const to = target(event.key);
  if (event.shiftKey) extend(to);
  else anchor = before = null;
  if (to) focusOn(to);
  return true;
}

// Mark from the anchor to a tile, and restore tiles of an earlier, longer range.
function extend(to, value = true) {
  const all = tiles();
  if (!before) {
    anchor = anchor ?? current();
    before = new Map(all.map((tile) => [tile, isPressed(tile)]));
  }
  if (!to) return;
  const [first, last] = [all.indexOf(anchor), all.indexOf(to)].sort((a, b) => a - b);
  all.forEach((tile, i) => press(tile, i >= first && i <= last ? value : before.get(tile)));
  changed();
}

export function toggle(tile) {
  press(tile, !isPressed(tile));
  anchor = tile;
  before = null;
  changed();
}

// Mark all photographs of an event, or unmark them if all are marked. Returns their tiles.
export function toggleEvent(event) {
  const all = findAll("button[aria-pressed]", event);
  const value = !all.every(isPressed);
  for (const one of all) press(one, value);
  anchor = before = null;
  changed();
  return all;
}

const MOST = 500; // photographs on a page

// Show each photograph of a stack in its place. They are marked as the stack was; other marks stay.
async function unfold(tile) {
  const contents = new Set([tile.dataset.content, ...stackOf(tile).map((one) => String([one].flat()[0]))]);
  const { page } = await fresh(`${find(".open-stack", tile.parentElement).getAttribute("href")}&n=${MOST}`);
  const each = findAll("#grid .tile", page).filter((one) => contents.has(one.dataset.content));
  if (!tile.isConnected) return;
  if (!each.length) return say("Reload the page: this burst has changed.", { bad: true });
  for (const one of each) {
    press(one, isPressed(tile));
    one.tabIndex = -1;
  }
  tile.parentElement.replaceWith(...each.map((one) => one.parentElement));
  focusOn(each[0]);
  anchor = before = null;
  changed();
}

export function openStack(tile) {
  if (!tile?.dataset.stack) return false;
  unfold(tile).catch(complain);
  return true;
}

function clicked(event) {
  if (event.target.matches(".open-stack") && !(event.ctrlKey || event.metaKey || event.shiftKey)) {
    event.preventDefault();
    openStack(find(".tile", event.target.parentElement));
    return;
  }
  const tile = event.target.closest("#grid button.tile");
  if (!tile) return;
  if (event.shiftKey && anchor?.isConnected && anchor !== tile) {
    before = null;
    extend(tile, isPressed(anchor));
  } else {
    toggle(tile);
  }
  focusOn(tile, { visible: false });
}

export function listen() {
  document.addEventListener("click", clicked);
  onShown(() => (anchor = before = null));
  const arrows = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];
  for (const where of ["tag", "event", "search"]) {
    bind(where, arrows, "Move", move);
    bind(where, arrows.map((key) => `Shift+${key}`), "Mark a range; with the mouse: drag, or Shift and click", move);
    bind(where, ["Home", "End"], "First, last photograph", move);
    bind(where, [" "], "Mark or unmark", () => {
      const tile = current();
      if (tile) {
        toggle(tile);
        focusOn(tile);
      }
    });
  }
}
