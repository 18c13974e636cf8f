// By tag: mark wrong photographs; one key rejects these and accepts the rest.
import { count, counted, find, findAll, mode, remembered, stepIn } from "./dom.js";
import { withFilters } from "./filters.js";
import { current, focusOn, isLikely, isPressed, onChange, openStack, sizeOf, stackOf, tiles, toggleEvent } from "./grid.js";
import { bind } from "./keys.js";
import { complain, say } from "./message.js";
import { go, onShown, prepare } from "./page.js";
import { decide, sayFinished, sayStored, shownOf } from "./state.js";

const grid = () => find("#grid");

function addressOf(tag, after) {
  const given = Object.entries({ n: remembered("n"), after }).filter(([, value]) => value);
  return withFilters(given.length ? `tags/${tag}?${new URLSearchParams(given)}` : `tags/${tag}`);
}

let isTold = false; // that the questions which are left pay little

function question() {
  isTold ||= find("#go-on") !== null;
  const told = isTold || new URLSearchParams(location.search).has("pays_little") ? "&pays_little=true" : "";
  return withFilters(`question?strategy=${remembered("strategy") ?? "most-right"}${told}`);
}

function verdict(isOnAll) {
  const { yes, no, left } = answers(isOnAll);
  const parts = [[yes, "Accept"], [no, "Reject"]].filter(([some]) => some.length).map(([some, what]) => `${what} ${count(some.length)}`);
  if (!parts.length) return `Leave ${left.length === 1 ? "it" : `all ${count(left.length)}`}`;
  return parts.join(", ").replace(", R", ", r");
}

function marksChanged() {
  if (mode() !== "tag" || !grid()) return;
  find("#verdict").textContent = verdict(false);
  const onAll = find("#verdict-on-all");
  if (onAll) onAll.textContent = verdict(true);
}

let isBusy = false;

// The contents to accept, to reject and to leave open, each with the shown confidence and run. A marked
// tile is wrong above the line and right below it. An unmarked one is accepted above the line; below it,
// it stays open, unless the person decides on all.
function answers(isOnAll) {
  const some = { yes: [], no: [], left: [] };
  for (const tile of tiles()) {
    const unmarked = isOnAll ? "no" : "left";
    const verdict = isLikely(tile) ? (isPressed(tile) ? "no" : "yes") : isPressed(tile) ? "yes" : unmarked;
    some[verdict].push([Number(tile.dataset.content), ...shownOf(tile)], ...stackOf(tile));
  }
  return some;
}

// Store the answers to open suggestions; likely ones that are not marked are accepted together.
function store(tag, { yes, no, left }) {
  const pairs = (decisions) => decisions.map(([content, ...shown]) => [content, Number(tag), ...shown]);
  const together = tiles().some((tile) => isLikely(tile) && !isPressed(tile));
  const seen = left.map(([content]) => [content, Number(tag)]);
  return decide("api/v1/decisions", { accept: pairs(yes), reject: pairs(no), left: seen, together, only_open: true });
}

// Decide on the shown photographs, and go on when that is stored; until then, the page keeps its marks.
async function accept(isOnAll = false) {
  if (!grid()) return;
  if (isBusy) return say("This page is still being stored.");
  isBusy = true;
  const shownGrid = grid();
  const { tag, name, next, then, strategy } = shownGrid.dataset;
  const given = answers(isOnAll);
  try {
    const answer = await store(tag, given);
    let trouble = "";
    const following = strategy ? question() : next ? addressOf(tag, given.left.length ? next : null) : addressOf(then || tag);
    if (shownGrid.isConnected) await go(following).catch((error) => (trouble = error.message));
    const open = given.left.length ? `, ${count(given.left.length)} left open` : "";
    const text = `${name}: ${count(answer.accepted)} accepted, ${count(answer.rejected)} rejected${open}.`;
    sayStored(text, given.yes.length + given.no.length, answer, { trouble });
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
    if (grid()) await store(tag, answers(true));
    const answer = await decide(`api/v1/tags/${tag}/finish`, {});
    await go(addressOf(tag));
    sayFinished(`${name}: rejected for ${counted(answer.rejected, "photograph")} without an answer.`, answer);
  } catch (error) {
    complain(error);
  } finally {
    isBusy = false;
  }
}

function markEvent(event = current()?.closest(".event")) {
  if (!event) return;
  const all = toggleEvent(event);
  const n = all.reduce((sum, tile) => sum + sizeOf(tile), 0);
  const marked = isLikely(all[0]) ? "marked as wrong" : "marked as right";
  say(`${counted(n, "photograph")} of this event ${isPressed(all[0]) ? marked : "unmarked"}.`);
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
  marksChanged();
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
    const heading = event.target.closest(".mark-event");
    if (heading) markEvent(heading.closest(".event"));
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
  bind("tag", ["Enter", "a"], "Accept the likely ones, except those marked as wrong", () => void accept(), "#accept");
  bind("tag", ["Shift+Enter", "A"], "The same, and reject the others below the line", () => void accept(true), "#accept-and-reject");
  bind("tag", ["x"], "Mark or unmark the whole event", () => markEvent(), "#mark-event");
  bind("tag", ["e"], "I have seen everything for this tag", () => void finish(), "#finish");
  bind("tag", ["o"], "Show each photograph of a burst", () => openStack(current()) || say("This photograph is not in a burst."));
  bind("tag", ["n"], "The next tag", () => find("#then")?.click());
  bind("tag", ["b", "Escape"], "Back to all tags", () => go(withFilters("tags")).catch(complain));
  bind("tags", ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], "Move", moveCard);
  bind("tag", ["q"], "The best page of any tag", () => go(question()).catch(complain), "#go-on");
  bind("tags", ["Enter", "q"], "The best page of any tag", () => go(question()).catch(complain));
  bind("tags", ["/"], "Find a tag", () => find("#filter")?.focus());
}
