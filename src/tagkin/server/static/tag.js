// By tag: mark wrong photographs; one key rejects these and accepts the rest.
import { count, counted, find, findAll, mode, remembered, stepIn } from "./dom.js";
import { withFilters } from "./filters.js";
import { current, focusOn, fromHereOn, isPressed, onChange, openStack, press, stackOf, tiles } from "./grid.js";
import { bind } from "./keys.js";
import { complain, say } from "./message.js";
import { go, onShown, prepare } from "./page.js";
import { decide, sayFinished, sayStored, shownOf } from "./state.js";

const grid = () => find("#grid");
const asked = () => remembered("n") ?? "60";
const addressOf = (tag, after) =>
  withFilters(`tags/${tag}?n=${asked()}${after ? `&after=${encodeURIComponent(after)}` : ""}`);

const question = () => withFilters(`question?strategy=${remembered("strategy") ?? "most-right"}`);

function verdict() {
  const [yes, no] = marked().map((contents) => contents.length);
  if (!no) return `Accept ${yes === 1 ? "it" : `all ${count(yes)}`}`;
  if (!yes) return `Reject ${no === 1 ? "it" : `all ${count(no)}`}`;
  return `Accept ${count(yes)}, reject ${count(no)}`;
}

function marksChanged() {
  if (mode() !== "tag" || !grid()) return;
  find("#verdict").textContent = verdict();
}

let isBusy = false;

// The contents to accept and to reject, each with the shown confidence and run.
function marked() {
  return [false, true].map((value) =>
    tiles().filter((tile) => isPressed(tile) === value).flatMap((tile) => [[Number(tile.dataset.content), ...shownOf(tile)], ...stackOf(tile)]),
  );
}

// Store the answers to open suggestions; the rest of a page that mostly seems right is accepted together.
function store(tag, yes, no, unmarked) {
  const pairs = (decisions) => decisions.map(([content, ...shown]) => [content, Number(tag), ...shown]);
  const together = unmarked === "accept";
  return decide("api/v1/decisions", { accept: pairs(yes), reject: pairs(no), together, only_open: true });
}

// Decide on all shown photographs, and go on when that is stored; until then, the page keeps its marks.
async function accept() {
  if (!grid()) return;
  if (isBusy) return say("This page is still being stored.");
  isBusy = true;
  const shownGrid = grid();
  const { tag, name, next, then, strategy, default: unmarked } = shownGrid.dataset;
  const [yes, no] = marked();
  try {
    const answer = await store(tag, yes, no, unmarked);
    let trouble = "";
    const following = strategy ? question() : addressOf(next || !then ? tag : then);
    if (shownGrid.isConnected) await go(following).catch((error) => (trouble = error.message));
    const text = `${name}: ${count(answer.accepted)} accepted, ${count(answer.rejected)} rejected.`;
    sayStored(text, yes.length + no.length, answer, { trouble });
  } catch (error) {
    complain(error);
  } finally {
    isBusy = false;
  }
}

// Store the shown page, then reject the tag for every photograph without an answer.
async function finish() {
  const button = find("#finish");
  if (!button) return say("First decide on all suggestions of this tag.");
  if (isBusy) return;
  isBusy = true;
  const { tag, name } = button.dataset;
  try {
    if (grid()) {
      const [yes, no] = marked();
      await store(tag, yes, no, grid().dataset.default);
    }
    const answer = await decide(`api/v1/tags/${tag}/finish`, {});
    await go(addressOf(tag));
    sayFinished(`${name}: rejected for ${counted(answer.rejected, "photograph")} without an answer.`, answer);
  } catch (error) {
    complain(error);
  } finally {
    isBusy = false;
  }
}

function wrongFromHere(tile) {
  if (!grid()) return;
  const n = fromHereOn(tile ?? current());
  focusOn(tile ?? current());
  say(`${counted(n, "photograph")} from here on marked as wrong.`);
}

function invert() {
  if (!grid()) return;
  for (const tile of tiles()) press(tile, !isPressed(tile));
  const isRight = grid().dataset.default === "accept";
  grid().dataset.default = isRight ? "reject" : "accept";
  find("#ask").textContent = isRight ? "Mark the right ones" : "Mark the wrong ones";
  find("#reason")?.remove(); // the marks are no longer those that it is about
  marksChanged();
  focusOn(current(), { visible: false }); // the next Enter is for the grid
}

// --- the list of tags ----------------------------------------------------------------------------

function filter(text) {
  const wanted = text.trim().toLowerCase();
  for (const item of findAll("#tags > li")) {
    item.hidden = !find("strong", item).textContent.toLowerCase().includes(wanted);
  }
}

function moveCard(event) {
  const cards = findAll("#tags > li:not([hidden]) > a");
  if (!cards.length) return false;
  const width = getComputedStyle(find("#tags")).gridTemplateColumns.split(" ").length;
  stepIn(cards, { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -width, ArrowDown: width }[event.key]).focus();
  return true;
}

// --- all together -------------------------------------------------------------------------

function shown() {
  if (mode() === "tags") {
    find("#start")?.focus({ preventScroll: true, focusVisible: false });
  }
  if (mode() !== "tag") return;
  if (!grid()) {
    find("#then")?.focus();
    return;
  }
  find("#verdict").textContent = verdict();
  focusOn(tiles()[0], { visible: false });
  const { tag, next, then, strategy } = grid().dataset;
  if (strategy) return;
  if (next || then) prepare(next ? addressOf(tag, next) : addressOf(then)).catch(() => {}); // for its pictures
}

export function listen() {
  onShown(shown);
  onChange(marksChanged);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("#then, #tags a, #start");
    if (link?.id === "start") {
      event.preventDefault();
      go(question()).catch(complain);
    } else if (link && !(event.ctrlKey || event.metaKey || event.shiftKey)) {
      event.preventDefault();
      go(addressOf(link.dataset.tag)).catch(complain);
    }
    const from = event.target.closest("button.from");
    if (from) wrongFromHere(find(".tile", from.parentElement));
  });
  document.addEventListener("input", (event) => event.target.id === "filter" && filter(event.target.value));
  document.addEventListener("change", (event) => {
    if (event.target.id === "strategy") {
      remembered("strategy", event.target.value);
      go(question()).catch(complain);
    }
    if (event.target.id !== "n") return;
    remembered("n", event.target.value);
    go(addressOf(grid().dataset.tag)).catch(complain);
  });
  bind("tag", ["Enter", "a"], "Reject marked photographs and accept the rest", () => void accept(), "#accept");
  bind("tag", ["x"], "Wrong from here on", () => wrongFromHere(), "#from-here");
  bind("tag", ["i"], "Invert: mark the right ones instead", invert, "#invert");
  bind("tag", ["e"], "I have seen everything for this tag", () => void finish(), "#finish");
  bind("tag", ["o"], "Show each photograph of a burst", () => openStack(current()) || say("This photograph is not in a burst."));
  bind("tag", ["n"], "The next tag", () => find("#then")?.click());
  bind("tag", ["b", "Escape"], "Back to all tags", () => go(withFilters("tags")).catch(complain));
  bind("tags", ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], "Move", moveCard);
  bind("tag", ["q"], "The best page of any tag", () => go(question()).catch(complain));
  bind("tags", ["Enter", "q"], "The best page of any tag", () => go(question()).catch(complain));
  bind("tags", ["/"], "Find a tag", () => find("#filter")?.focus());
}
