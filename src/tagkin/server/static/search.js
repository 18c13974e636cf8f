// Search: tags, words and names; more results while scrolling.
import { find, mode } from "./dom.js";
import { withFilters } from "./filters.js";
import { changed, current, onChange, openStack, press, tiles } from "./grid.js";
import { bind } from "./keys.js";
import { complain } from "./message.js";
import { loadMore, go, onShown } from "./page.js";
import { chosen } from "./selection.js";

const N_MORE = 120;

// --- more results while scrolling ---------------------------------------------------------

async function more() {
  const grid = find("#grid");
  const address = new URLSearchParams(location.search);
  address.set("after", grid.dataset.next);
  address.set("n", N_MORE);
  const isMore = await loadMore(grid, `search?${address}`);
  if (grid.isConnected) find("#more").hidden = !grid.dataset.next;
  return isMore;
}

const isNearEnd = () => innerHeight + scrollY > document.body.scrollHeight - 4800;

async function scrolled() {
  while (mode() === "search" && find("#grid")?.dataset.next && isNearEnd() && (await more()));
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

export function listen() {
  onChange(() => mode() === "search" && (find("#similar").hidden = chosen().length !== 1));
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
    if (event.target.closest("#more a")) {
      event.preventDefault();
      more();
    }
  });
  document.addEventListener("dblclick", (event) => mode() === "search" && open(event.target.closest("#grid .tile")));
  bind("search", ["Enter", "o"], "Open the photograph; of a burst, show each", () => open(current()));
  bind("search", ["s"], "Similar photographs", (event) => similarTo(event.type === "click" ? chosen()[0] : current()), "#similar");
  bind("search", ["Ctrl+a"], "Select all shown", () => {
    for (const tile of tiles()) press(tile, true);
    changed();
  });
  bind("search", ["/"], "Search for a tag", () => find("#with").focus());
}
