// Search: more results while scrolling, and tags for several photographs at once.
import { kindLabel, tagsFor } from "./complete.js";
import { counted, find, findAll, make, mode } from "./dom.js";
import { withFilters } from "./filters.js";
import { current, focusOn, isPressed, onChange, openStack, press, sizeOf, stackOf, tiles } from "./grid.js";
import { bind } from "./keys.js";
import { complain, say } from "./message.js";
import { fresh, go, onShown } from "./page.js";
import { finishAll, tagAll } from "./selection.js";

const N_MORE = 120;
const chosen = () => tiles().filter(isPressed);

function selectionChanged() {
  if (mode() !== "search") return;
  const n = chosen().reduce((sum, tile) => sum + sizeOf(tile), 0);
  find("#selection").hidden = !n;
  find("#similar").hidden = chosen().length !== 1;
  find("#chosen").textContent = `${counted(n, "photograph")} selected`;
}

function clear() {
  for (const tile of chosen()) press(tile, false);
  selectionChanged();
}

const chosenContents = () => [...new Set(chosen().flatMap((tile) => [Number(tile.dataset.content), ...stackOf(tile)]))];

async function finish() {
  const photographs = chosenContents();
  if (!photographs.length) return say("Select photographs first.");
  if (await finishAll(photographs)) settle();
}

async function decideOnChosen(verdict, tag) {
  if (await tagAll(verdict, tag, chosenContents())) settle();
}

function settle() {
  clear();
  focusOn(current(), { visible: false });
}

// --- more results while scrolling ---------------------------------------------------------

let isLoading = false;

// Returns whether more results came; after a failure only the next scroll asks again.
async function more() {
  const grid = find("#grid");
  if (mode() !== "search" || !grid?.dataset.next || isLoading) return false;
  isLoading = true;
  try {
    const address = new URLSearchParams(location.search);
    address.set("after", grid.dataset.next);
    address.set("n", N_MORE);
    const { page } = await fresh(`search?${address}`);
    const found = find("#grid", page);
    for (const tile of findAll(".tile", found ?? page)) tile.tabIndex = -1;
    if (found) grid.append(...found.children);
    grid.dataset.next = found?.dataset.next ?? "";
    find("#more").hidden = !grid.dataset.next;
    return true;
  } catch (error) {
    complain(error);
    return false;
  } finally {
    isLoading = false;
  }
}

const isNearEnd = () => innerHeight + scrollY > document.body.scrollHeight - 4800;

async function scrolled() {
  if (mode() !== "search" || isLoading) return;
  while (find("#grid")?.dataset.next && isNearEnd() && (await more()));
}

// Going back restores the number of results and the scroll position.
const placeKey = () => `tagkin.place ${location.search}`;

function leave() {
  if (mode() !== "search") return;
  sessionStorage.setItem(placeKey(), JSON.stringify([tiles().length, scrollY]));
}

async function comeBack() {
  const isBack = performance.getEntriesByType("navigation")[0]?.type !== "navigate";
  const [n, top] = JSON.parse(sessionStorage.getItem(placeKey()) ?? "[0, 0]");
  if (!isBack || !top) return;
  while (find("#grid")?.dataset.next && tiles().length < n && (await more()));
  scrollTo({ top, behavior: "instant" });
}

function open(tile) {
  if (tile && !openStack(tile)) location.href = withFilters(`photographs/${tile.dataset.content}`);
}

function similarTo(tile) {
  if (tile) go(withFilters(`search?similar=${tile.dataset.content}`)).catch(complain);
}

function addToken({ id, name, kind }) {
  const field = find("#with");
  field.value = "";
  const form = find("#search");
  field.before(make("span", { class: "token" }, name, kindLabel(kind), make("input", { type: "hidden", name: "tag", value: id })));
  ask(form);
}

// Enter can come before the list of tags.
async function askWithTyped(form) {
  const text = find("#with").value.trim();
  if (!text) return ask(form);
  const [tag] = await tagsFor(text, true);
  if (tag) addToken(tag);
  else say(`There is no tag ${text}.`, { bad: true });
}

function ask(form) {
  const data = new FormData(form);
  const given = new URLSearchParams([...data].filter(([, value]) => value !== ""));
  const field = find("#with");
  const typed = document.activeElement?.id === "words" ? "#words" : "#with";
  go(`search?${given}`).then(() => {
    if (mode() !== "search") return; // gone elsewhere since
    find("#with").value = field.value; // typed while the results were on their way
    find(typed).focus();
  }, complain);
}

export function listen() {
  onChange(selectionChanged);
  onShown(() => {
    if (mode() !== "search") return;
    if (document.activeElement === document.body && location.search) {
      find("#grid .tile[tabindex='0'], #grid .tile")?.focus({ preventScroll: true, focusVisible: false });
    }
    comeBack().then(scrolled, complain);
  });
  addEventListener("scroll", scrolled, { passive: true });
  addEventListener("pagehide", leave);
  document.addEventListener("click", (event) => {
    if (mode() !== "search") return;
    if (event.target.closest("#clear")) clear();
    if (event.target.closest("#finish")) finish();
    if (event.target.closest("#similar")) similarTo(chosen()[0]);
    if (event.target.closest("#more a")) {
      event.preventDefault();
      more();
    }
    if (event.target.closest("#remove")) {
      const name = find("#tag").value.trim();
      if (name) decideOnChosen("reject", name);
      else find("#tag").focus();
    }
  });
  document.addEventListener("dblclick", (event) => mode() === "search" && open(event.target.closest("#grid .tile")));
  document.addEventListener("submit", (event) => {
    if (mode() !== "search") return;
    event.preventDefault();
    if (event.target.id === "search") askWithTyped(event.target).catch(complain);
    const name = find("#tag").value.trim();
    if (event.target.id === "add" && name) decideOnChosen("accept", name).then(() => (find("#tag").value = ""));
  });
  document.addEventListener("chosen", (event) => mode() === "search" && event.target.id === "with" && addToken(event.detail));
  bind("search", ["Enter", "o"], "Open the photograph; of a burst, show each", () => open(current()));
  bind("search", ["s"], "Similar photographs", () => similarTo(current()));
  bind("search", ["t"], "Tag the selection", () => {
    if (!chosen().length && current()) press(current(), true);
    selectionChanged();
    find("#tag").focus();
  });
  bind("search", ["f"], "Finished: the selection has all its tags", () => void finish());
  bind("search", ["Ctrl+a"], "Select all shown", () => {
    for (const tile of tiles()) press(tile, true);
    selectionChanged();
  });
  bind("search", ["Escape"], "Clear selection", clear);
  bind("search", ["/"], "Search for a tag", () => find("#with").focus());
}
