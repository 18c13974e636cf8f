// Look closer: zoom and pan, the next photograph, kin beside it.
import { find, findAll, make, mode } from "./dom.js";
import { withFilters } from "./filters.js";
import { current, focusOn, isLikely, isPressed, tiles, toggle } from "./grid.js";
import { bind } from "./keys.js";
import { fresh, go, onShown } from "./page.js";
import { View, listen as listenToPointers } from "./view.js";

const COPIES = [1024, 2048]; // pixels of the copies; the larger copy is made on demand
const CLOSEST = 8;
const STEP = 0.15; // of the pane, for a key that moves the view
const SWIPE = 60; // pixels

let view = null; // photographs side by side share it
let place = null; // the element on the page that shows the photograph
let kin = null; // the kin of the shown suggestion: { tag, list, why, at }
let visited = []; // photographs before this one, in the mode "photograph"
let openedOn = null; // the suggestion whose kin are shown first

const dialog = () => find("#closer");
const panes = () => findAll("#closer figure");
const places = () => findAll("#main [data-picture]").filter((one) => !one.closest("[hidden]"));
const contentOf = (element) => Number(element.closest("[data-content]").dataset.content);
const copyOf = (address, size) => address.replace(/^thumbnails\/\d+\//, `thumbnails/${size}/`);

function photographAt(element) {
  return { content: contentOf(element), name: find("img", element)?.alt ?? "", address: element.dataset.picture };
}

// The dialog covers the messages of the page.
function tell(text) {
  find("#closer-name").textContent = text;
}

const trouble = (error) => tell(error.message);

// --- what is shown ------------------------------------------------------------------------------

// Ask for the copy that the zoomed picture needs. The browser shows the smaller copy until the larger
// copy is there.
function sharpen(image) {
  image.sizes = `${Math.ceil(image.clientWidth * view.scale)}px`;
}

function drawView() {
  const moved = `translate(${100 * view.x}%, ${100 * view.y}%) scale(${view.scale})`;
  for (const one of findAll("#closer figure > *")) one.style.transform = moved;
  find("#closer-scale").textContent = `${Math.round(100 * view.scale)} %`;
  findAll("img", dialog()).filter((image) => image.complete).forEach(sharpen);
}

function fill(pane, photograph) {
  pane.hidden = !photograph;
  if (!photograph || Number(pane.dataset.content) === photograph.content) return;
  pane.dataset.content = photograph.content;
  const image = make("img", {
    alt: photograph.name,
    sizes: `${Math.floor(COPIES[0] / devicePixelRatio)}px`,
    srcset: COPIES.map((size) => `${copyOf(photograph.address, size)} ${size}w`).join(", "),
    src: copyOf(photograph.address, COPIES[0]),
    draggable: "false",
  });
  image.addEventListener("load", () => sharpen(image), { once: true });
  pane.replaceChildren(image);
}

function describe(here) {
  const all = places();
  const parts = [here.name];
  if (all.length > 1) parts.push(`${all.indexOf(place) + 1} of ${all.length}`);
  const sure = find(".sure", place)?.textContent;
  if (sure) parts.push(sure);
  if (isTile() && isPressed(place)) parts.push(mode() === "event" ? "taken out" : mode() !== "tag" ? "selected" : isLikely(place) ? "marked as wrong" : "marked as right");
  if (kin?.list.length) {
    const { name, share } = kin.list[kin.at];
    parts.push(`kin for ${kin.tag}, ${kin.at + 1} of ${kin.list.length}: ${name}, ${share}`);
  }
  if (kin) parts.push(kin.why);
  return parts.join(" · ");
}

const isTile = () => place.matches("button.tile");

function draw() {
  const here = photographAt(place);
  const pair = [here, kin ? kin.list[kin.at] : null];
  panes().forEach((pane, i) => fill(pane, pair[i]));
  dialog().classList.toggle("two", Boolean(pair[1]));
  tell(describe(here));
  const pressed = { kin: Boolean(kin), mark: isTile() && isPressed(place) };
  for (const [name, value] of Object.entries(pressed)) find(`[data-closer=${name}]`).setAttribute("aria-pressed", value);
  find("[data-closer=mark]").hidden = !isTile();
  view.show();
}

// --- another photograph -------------------------------------------------------------------------

async function show(element) {
  place = element;
  if (isTile()) focusOn(place); // the page follows, and more results come
  if (kin) await loadKin();
  draw();
  const all = places();
  for (const by of [1, -1]) {
    const other = all[all.indexOf(place) + by];
    if (other) new Image().src = copyOf(other.dataset.picture, COPIES[0]);
  }
}

function step(by) {
  if (mode() === "photograph") return turn(by);
  const all = places();
  const to = all[all.indexOf(place) + by];
  if (!to) tell(by > 0 ? "This is the last photograph." : "This is the first photograph.");
  else show(to).catch(trouble);
}

// The page of a photograph itself shows another photograph; see `listen`.
function turn(by) {
  const here = contentOf(place);
  const to = by > 0 ? Number(find("#photograph").dataset.next) : visited.pop();
  if (!to || to === here) {
    return tell(by > 0 ? "This is the last photograph." : "This is the first photograph.");
  }
  if (by > 0) visited.push(here);
  go(withFilters(`photographs/${to}`)).catch(trouble);
}

// --- beside it ----------------------------------------------------------------------------------

function tagHere() {
  if (mode() === "tag") return Number(find("#grid").dataset.tag);
  return openedOn && find(`#suggestions [data-tag="${openedOn}"]`) ? openedOn : null;
}

function kinOf(box) {
  return findAll(".kin li", box).map((one) => {
    const image = find("img", one);
    const content = Number(find("a", one).getAttribute("href").split("/").pop());
    return { content, name: image.alt, address: image.getAttribute("src"), share: find("span", one).textContent };
  });
}

// Kin of a doubt are on its page, and those of suggestions on the page of the photograph.
async function loadKin() {
  const doubt = place.closest("#doubts > li");
  if (doubt) {
    kin = { tag: find(".claim strong", doubt).textContent, list: kinOf(doubt), why: find(".claim", doubt).textContent, at: 0 };
    return;
  }
  const here = place;
  const page = mode() === "photograph" ? document : (await fresh(`photographs/${contentOf(here)}`)).page;
  if (here !== place) return; // gone on since
  const wanted = tagHere();
  const all = findAll("#suggestions > [data-tag]", page);
  const one = wanted ? all.find((other) => Number(other.dataset.tag) === wanted) : all.find((other) => find(".kin", other));
  const tag = one ? find(".name", one).textContent : "";
  kin = { tag, list: one ? kinOf(one) : [], why: one ? find(".evidence > p", one).textContent : "no suggestion with kin", at: 0 };
}

async function toggleKin() {
  if (kin) kin = null;
  else await loadKin();
  draw();
}

function otherKin(by) {
  if (!kin?.list.length) return view.move(0, by * STEP);
  kin.at = (kin.at + by + kin.list.length) % kin.list.length;
  draw();
}

function mark() {
  if (!isTile()) return false;
  toggle(place);
  draw();
}

// --- opening and closing ------------------------------------------------------------------------

function open(element) {
  openedOn = Number(document.activeElement?.closest("#suggestions [data-tag]")?.dataset.tag) || null;
  visited = [];
  kin = null;
  place = element;
  for (const pane of panes()) delete pane.dataset.content;
  view.fit();
  if (!dialog().open) dialog().showModal();
  find(".stage", dialog()).focus(); // keys are for the photograph, not for a button
  show(place).catch(trouble);
}

function lookCloser() {
  const focused = document.activeElement?.closest("#main [data-picture], #doubts > li");
  const element = (focused?.matches("li") ? find("[data-picture]", focused) : focused) ?? current() ?? places()[0];
  if (!element?.dataset.picture) return false;
  open(element);
  return true;
}

function lookAtKin() {
  if (lookCloser()) toggleKin().catch(trouble);
}

// Focus the photograph that was shown last, at once: the "close" event may come after the next key.
function close() {
  dialog().close();
  if (!place?.isConnected) return;
  if (isTile()) focusOn(place);
  else place.closest("#doubts > li")?.focus();
}

const ACTIONS = {
  previous: () => step(-1),
  next: () => step(1),
  out: () => view.zoom(1 / 1.5),
  fit: () => view.fit(),
  in: () => view.zoom(1.5),
  kin: () => toggleKin().catch(trouble),
  mark,
  close,
};

export function listen() {
  const box = dialog();
  view = new View(box, CLOSEST, drawView);
  listenToPointers(find(".stage", box), view, {
    frameOf: (event) => event.target.closest?.("#closer figure") ?? panes()[0],
    swiped: (by) => view.scale === 1 && Math.abs(by) > SWIPE && step(by < 0 ? 1 : -1),
  });
  box.addEventListener("click", (event) => ACTIONS[event.target.closest("[data-closer]")?.dataset.closer]?.());
  box.addEventListener("cancel", (event) => {
    event.preventDefault(); // the browser closes it, as with the back gesture of a phone
    close();
  });
  onShown(() => {
    if (!box.open) return;
    const [first] = places();
    if (first) show(first).catch(trouble);
    else close();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("#photograph .large")) lookCloser();
  });
  addEventListener("resize", () => box.open && view.show());
  for (const where of ["tag", "event", "search", "photograph", "doubtful"]) bind(where, ["z"], "Look closer", lookCloser, "#look-closer");
  bind("tag", ["k"], "Kin behind this suggestion", lookAtKin, "#kin-here");
  bind("closer", ["ArrowRight", "n"], "The next photograph", ACTIONS.next);
  bind("closer", ["ArrowLeft", "b"], "The previous photograph", ACTIONS.previous);
  bind("closer", ["+", "="], "Larger", ACTIONS.in);
  bind("closer", ["-"], "Smaller", ACTIONS.out);
  bind("closer", ["0"], "Fit to the window", ACTIONS.fit);
  const ways = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
  bind("closer", Object.keys(ways).map((key) => `Shift+${key}`), "Move the view", (event) => view.move(...ways[event.key]));
  bind("closer", ["k"], "Kin beside it", ACTIONS.kin);
  bind("closer", ["ArrowDown"], "The next kin", () => otherKin(1));
  bind("closer", ["ArrowUp"], "The previous kin", () => otherKin(-1));
  bind("closer", [" "], "Mark or unmark", mark);
  bind("closer", ["z", "Escape"], "Close", ACTIONS.close);
}
