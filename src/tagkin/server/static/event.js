// By event: give likely tags to all photographs of an event, except those that are taken out.
import { counted, find, findAll, mode } from "./dom.js";
import { withFilters } from "./filters.js";
import { current, focusOn, isPressed, openStack, stackOf, tiles } from "./grid.js";
import { bind } from "./keys.js";
import { complain, say } from "./message.js";
import { go, onShown, prepare, refresh } from "./page.js";
import { decide, sayFinished, sayStored } from "./state.js";

const offers = () => findAll("#offers > li");
const contentsOf = (tile) => [Number(tile.dataset.content), ...stackOf(tile)];
const contents = (isOut) => tiles().filter((tile) => isPressed(tile) === isOut).flatMap(contentsOf);

async function store(name, yes, no, onlyOpen) {
  try {
    const together = yes.length > 1;
    const answer = await decide("api/v1/decisions", { accept: yes, reject: no, together, only_open: onlyOpen });
    const parts = ["accepted", "rejected"].filter((what) => answer[what]).map((what) => `${what} for ${counted(answer[what], "photograph")}`);
    const text = `${name} ${parts.join(", ")}.`;
    sayStored(answer.run === null ? "No change." : text, yes.length + no.length, answer);
    await refresh();
    focusOn(tiles()[0], { visible: false });
  } catch (error) {
    complain(error);
  }
}

// Accept a likely tag where it is suggested, and reject it for the photographs that are taken out.
function give(item, verdict) {
  const out = new Set(contents(true));
  const pairs = JSON.parse(item.dataset.decisions).map(([content, ...shown]) => [content, Number(item.dataset.tag), ...shown]);
  const isRight = ([content]) => verdict === "accept" && !out.has(content);
  return store(find(".name", item).textContent, pairs.filter(isRight), pairs.filter((pair) => !isRight(pair)), true);
}

function byNumber(event) {
  const item = offers()[Number(event.code.slice(-1)) - 1];
  if (!item) return false;
  give(item, event.shiftKey ? "reject" : "accept");
  return true;
}

function addTyped(field) {
  const name = field.value.trim();
  const all = contents(false);
  if (!name || !all.length) return;
  field.value = "";
  store(name, all.map((content) => [content, name]), [], false);
}

async function finish() {
  const photographs = contents(false);
  if (!photographs.length) return;
  try {
    const answer = await decide("api/v1/finish", { photographs });
    sayFinished(`${counted(answer.finished, "photograph")} finished; ${counted(answer.rejected, "suggestion")} rejected.`, answer);
    await refresh();
  } catch (error) {
    complain(error);
  }
}

// Show to which photographs a tag would go.
function point({ target }) {
  if (mode() !== "event") return;
  const item = target.closest?.("#offers > li");
  const meant = new Set(item ? JSON.parse(item.dataset.decisions).map(([content]) => content) : []);
  for (const tile of tiles()) tile.classList.toggle("meant", contentsOf(tile).some((content) => meant.has(content)));
}

async function next() {
  const before = location.pathname;
  await go(find("#next")?.getAttribute("href") ?? withFilters("events")).catch(complain);
  if (location.pathname === before) say("No other event has likely tags.");
}

function shown() {
  if (mode() !== "event" || !find("#event")) return;
  focusOn(tiles()[0], { visible: false });
  prepare(find("#next").getAttribute("href")).catch(() => {});
}

export function listen() {
  onShown(shown);
  for (const kind of ["pointerover", "focusin"]) document.addEventListener(kind, point);
  document.addEventListener("click", (event) => {
    if (mode() !== "event") return;
    const button = event.target.closest("#offers [data-verdict]");
    if (button) give(button.closest("li"), button.dataset.verdict);
    const link = event.target.closest("#next");
    if (link && !(event.ctrlKey || event.metaKey || event.shiftKey)) {
      event.preventDefault();
      next();
    }
  });
  document.addEventListener("submit", (event) => {
    if (mode() !== "event" || event.target.id !== "add") return;
    event.preventDefault();
    addTyped(event.target.elements.tag);
  });
  bind("event", Array.from({ length: 9 }, (_, i) => String(i + 1)), "", byNumber);
  bind("event", Array.from({ length: 9 }, (_, i) => `Shift+${i + 1}`), "", byNumber);
  bind("event", ["1–9"], "Give this tag to its photographs, except those taken out", () => false);
  bind("event", ["Shift+1–9"], "Reject it for all of them", () => false);
  bind("event", ["Enter", "n"], "The next event", () => void next());
  bind("event", ["b"], "Back", () => history.back());
  bind("event", ["t", "/"], "Type a tag for all", () => find("#tag")?.focus());
  bind("event", ["f"], "Finished: they have all their tags", () => void finish(), "#finish");
  bind("event", ["o"], "Open the photograph; of a burst, show each", () => {
    const tile = current();
    if (!tile) return say("There is no photograph.");
    if (!openStack(tile)) go(withFilters(`photographs/${tile.dataset.content}`)).catch(complain);
  });
}
