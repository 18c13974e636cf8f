// A photograph: suggestions by number with their kin, and tags.
import { counted, find, findAll, mode, rove, stepIn } from "./dom.js";
import { withFilters } from "./filters.js";
import { bind } from "./keys.js";
import { complain, say } from "./message.js";
import { go, onShown, prepare, refresh } from "./page.js";
import { decide, sayFinished, sayStored, undo } from "./state.js";

const LIKELY = 0.5;

const shownContent = () => Number(find("#photograph")?.dataset.content);
const rows = () => findAll("#suggestions .row");

// Decide on tags of this photograph and stay on it. With several at once, decisions of another
// window are kept.
async function decideHere(verdict, pairs, textFor, together = false) {
  try {
    const answer = await decide("api/v1/decisions", { [verdict]: pairs, together, only_open: together });
    sayStored(answer.run === null ? "No change." : textFor(answer), pairs.length, answer);
    await refresh();
    if (document.activeElement === document.body) rows()[0]?.focus({ focusVisible: false });
  } catch (error) {
    complain(error);
  }
}

// This photograph and the others of its burst.
const contents = () => [shownContent(), ...JSON.parse(find("#burst")?.dataset.members ?? "[]")];

// The decisions on a tag: on a suggestion, for those that have it; else for all of the burst.
function pairsOf(item) {
  const tag = Number(item.dataset.tag);
  if (!item.dataset.confidence) return contents().map((content) => [content, tag]);
  return JSON.parse(item.dataset.decisions).map(([content, ...shown]) => [content, tag, ...shown]);
}

function on(item, verdict) {
  const name = find(".name", item).textContent;
  const done = verdict === "accept" ? "accepted" : "rejected";
  return decideHere(verdict, pairsOf(item), ({ accepted, rejected }) => {
    const n = accepted + rejected;
    return `${name} ${done}${n > 1 ? ` for ${counted(n, "photograph")}` : ""}.`;
  });
}

function byNumber(event) {
  const row = rows()[Number(event.code.slice(-1)) - 1];
  if (!row) return false;
  on(row.closest("li"), event.shiftKey ? "reject" : "accept");
  return true;
}

function all(verdict) {
  const items = rows().map((row) => row.closest("li"));
  const isMeant = (item) => verdict === "reject" || Number(item.dataset.confidence) >= LIKELY;
  const pairs = items.filter(isMeant).flatMap(pairsOf);
  if (!pairs.length) return;
  const textFor = ({ accepted, rejected }) =>
    `${counted(accepted + rejected, "suggestion")} ${verdict === "accept" ? "accepted" : "rejected"}.`;
  decideHere(verdict, pairs, textFor, rows().length > 1);
}

async function finish() {
  if (!find("#finish")) return say("This photograph is finished already.");
  try {
    const answer = await decide("api/v1/finish", { photographs: contents() });
    sayFinished(`Finished; ${counted(answer.rejected, "suggestion")} rejected.`, answer);
    await refresh();
    if (document.activeElement === document.body) find("#next")?.focus({ focusVisible: false });
  } catch (error) {
    complain(error);
  }
}

function showKin(button, value = button.ariaExpanded !== "true") {
  button.ariaExpanded = String(value);
  find(`#${button.getAttribute("aria-controls")}`).hidden = !value;
}

function kinHere() {
  const row = document.activeElement.closest("#suggestions .row") ?? rows()[0];
  if (!row) return;
  row.focus();
  showKin(find("[data-kin]", row));
}

const move = (by) => rove(rows(), stepIn(rows(), by));

async function next() {
  await go(find("#next")?.getAttribute("href") ?? withFilters("events")).catch(complain);
}

function shown() {
  if (mode() !== "photograph" || !find("#photograph")) return;
  prepare(find("#next").getAttribute("href")).catch(() => {});
  if (document.activeElement === document.body) rows()[0]?.focus({ preventScroll: true, focusVisible: false });
}

export function listen() {
  onShown(shown);
  document.addEventListener("click", (event) => {
    if (mode() !== "photograph") return;
    const button = event.target.closest("[data-verdict]");
    if (button) on(button.closest("[data-tag]"), button.dataset.verdict);
    const kin = event.target.closest("[data-kin]");
    if (kin) showKin(kin);
    const unfinish = event.target.closest("#unfinish");
    if (unfinish) undo(Number(unfinish.dataset.run));
    const link = event.target.closest("#next, #previous");
    if (link) {
      event.preventDefault();
      if (link.id === "next") next();
      else history.back();
    }
  });
  document.addEventListener("submit", (event) => {
    if (mode() !== "photograph" || event.target.id !== "add") return;
    event.preventDefault();
    const field = event.target.elements.tag;
    const name = field.value.trim();
    if (!name) return;
    field.value = "";
    decideHere("accept", contents().map((content) => [content, name]), () => `${name} added.`);
  });
  bind("photograph", Array.from({ length: 9 }, (_, i) => String(i + 1)), "", byNumber);
  bind("photograph", Array.from({ length: 9 }, (_, i) => `Shift+${i + 1}`), "", byNumber);
  bind("photograph", ["1–9"], "Accept this suggestion", () => false);
  bind("photograph", ["Shift+1–9"], "Reject it", () => false);
  bind("photograph", ["a"], "Accept all likely suggestions", () => all("accept"), "#accept-all");
  bind("photograph", ["x"], "Reject all suggestions", () => all("reject"), "#reject-all");
  bind("photograph", ["f"], "Finished: it has all its tags", () => void finish(), "#finish");
  bind("photograph", ["k"], "Kin behind a suggestion", kinHere);
  bind("photograph", ["ArrowDown", "j"], "The next suggestion", () => move(1));
  bind("photograph", ["ArrowUp"], "The previous suggestion", () => move(-1));
  bind("photograph", ["ArrowRight", "Enter", "n"], "The next photograph, or event", () => void next());
  bind("photograph", ["ArrowLeft", "b"], "Back", () => history.back());
  bind("photograph", ["t", "/"], "Type a tag", () => find("#tag")?.focus());
  bind("photograph", ["s"], "Similar photographs", () => find("#similar")?.click());
}
