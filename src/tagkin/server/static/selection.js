// Tag, untag or finish the photographs that are marked in a search or on the map.
import { counted, find, mode } from "./dom.js";
import { current, focusOn, isPressed, onChange, press, sizeOf, stackOf, tiles } from "./grid.js";
import { bind } from "./keys.js";
import { complain, say } from "./message.js";
import { decide, sayFinished, sayStored } from "./state.js";

const MODES = ["search", "overview"];
const isHere = () => MODES.includes(mode());

export const chosen = () => tiles().filter(isPressed);

const contents = () => [...new Set(chosen().flatMap((tile) => [Number(tile.dataset.content), ...stackOf(tile)]))];

function selectionChanged() {
  if (!isHere()) return;
  const n = chosen().reduce((sum, tile) => sum + sizeOf(tile), 0);
  find("#selection").hidden = !n;
  find("#chosen").textContent = `${counted(n, "photograph")} selected`;
}

function clear() {
  for (const tile of chosen()) press(tile, false);
  selectionChanged();
  focusOn(current(), { visible: false });
}

async function tagAll(verdict) {
  const name = find("#tag").value.trim();
  if (!name) return find("#tag").focus();
  const each = contents();
  try {
    const answer = await decide("api/v1/decisions", { [verdict]: each.map((content) => [content, name]) });
    const n = answer.accepted + answer.rejected;
    sayStored(`${name}: ${verdict === "accept" ? "added to" : "removed from"} ${counted(n, "photograph")}.`, each.length, answer);
    find("#tag").value = "";
    clear();
  } catch (error) {
    complain(error);
  }
}

async function finishAll() {
  const photographs = contents();
  if (!photographs.length) return say("Select photographs first.");
  try {
    const answer = await decide("api/v1/finish", { photographs });
    const already = photographs.length - answer.finished;
    const others = already ? ` ${counted(already, "photograph")} finished already.` : "";
    sayFinished(`${counted(answer.finished, "photograph")} finished; ${counted(answer.rejected, "suggestion")} rejected.${others}`, answer);
    clear();
  } catch (error) {
    complain(error);
  }
}

// Without a selection, tag the photograph that has the focus.
function tag() {
  const here = document.activeElement.closest("#grid [aria-pressed]");
  if (!chosen().length && here) press(here, true);
  selectionChanged();
  if (find("#selection").hidden) return false;
  find("#tag").focus();
}

export function listen() {
  onChange(selectionChanged);
  document.addEventListener("click", (event) => {
    if (isHere() && event.target.closest("#remove")) tagAll("reject");
  });
  document.addEventListener("submit", (event) => {
    if (!isHere() || event.target.id !== "add") return;
    event.preventDefault();
    tagAll("accept");
  });
  for (const where of MODES) {
    bind(where, ["t"], "Tag the selection", tag);
    bind(where, ["f"], "Finished: the selection has all its tags", () => void finishAll(), "#finish");
    bind(where, ["Escape"], "Clear selection", () => (chosen().length ? clear() : false), "#clear");
  }
}
