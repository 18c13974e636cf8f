// Pages come from the server complete.
import { find, findAll } from "./dom.js";
import { complain } from "./message.js";
import { get } from "./server.js";

const SOON = 300; // ms

const shownHooks = [];

// Called for every page in the window, including the first.
export function onShown(run) {
  shownHooks.push(run);
}

export function shown() {
  for (const run of shownHooks) run();
}

export async function fresh(address) {
  const page = new DOMParser().parseFromString(await get(address), "text/html");
  return { address, page };
}

let isLoading = false;

// Append the next part of a list, without those that are known. Returns whether it came; after a failure
// only the next scroll asks again.
export async function loadMore(list, address, isKnown = () => false) {
  if (!list?.dataset.next || isLoading) return false;
  isLoading = true;
  try {
    const found = find(`#${list.id}`, (await fresh(address)).page);
    const items = [...(found?.children ?? [])].filter((item) => !isKnown(item));
    list.append(...items);
    for (const one of items.flatMap((item) => (item.hasAttribute("tabindex") ? item : findAll(".tile", item)))) one.tabIndex = -1;
    list.dataset.next = found?.dataset.next ?? "";
    return true;
  } catch (error) {
    complain(error);
    return false;
  } finally {
    isLoading = false;
  }
}

// Show that the page is loading, unless it is fast.
async function awaited(promise) {
  const timer = setTimeout(() => document.body.setAttribute("aria-busy", "true"), SOON);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    document.body.removeAttribute("aria-busy");
  }
}

// Let the browser fetch the pictures of a page that may be next.
export async function prepare(address) {
  const { page } = await fresh(address);
  for (const one of findAll("img", page)) {
    const image = new Image();
    image.sizes = one.sizes;
    image.srcset = one.srcset;
    image.src = one.src;
  }
}

// Replace the shown page.
function put({ address, page }, { push = true, keepPlace = false } = {}) {
  const place = scrollY;
  find("#main").replaceChildren(...find("#main", page).childNodes);
  document.title = page.title;
  for (const name of ["mode", "filters"]) document.body.dataset[name] = page.body.dataset[name];
  const own = find("#main [data-address]")?.dataset.address ?? address; // where it was led to
  if (push && new URL(own, document.baseURI).href !== location.href.split("#")[0]) history.pushState({}, "", own);
  shown(); // which may put more on the page
  scrollTo({ top: keepPlace ? place : 0, behavior: "instant" });
}

const here = () => location.pathname + location.search;

// Answers may arrive in another order than the requests. Requests are numbered in their order.
let asked = 0;
let goal = 0; // the last request of a person to go somewhere
let newest = 0; // the last request whose answer was shown

export async function go(address, options = {}) {
  const mine = ++asked;
  goal = mine;
  const page = await awaited(fresh(address));
  if (mine !== goal) return; // gone elsewhere since, as with two steps back
  newest = Math.max(newest, mine);
  put(page, options);
}

// Show the same page as it is now, unless a newer answer or another page is shown by then, or the
// person is busy by then. The focus stays on the element that has it, if that is still there.
export async function refresh({ isBusy = () => false } = {}) {
  const mine = ++asked;
  const address = here();
  const page = await awaited(fresh(address));
  if (mine < newest || address !== here() || isBusy()) return;
  newest = mine;
  const focused = document.activeElement;
  const marks = ["data-content", "data-tag", "data-run", "data-verdict"];
  const selector = (element) =>
    element.id
      ? `#${element.id}`
      : marks.filter((m) => element.hasAttribute(m)).map((m) => `[${m}="${element.getAttribute(m)}"]`).join("");
  const parent = focused?.parentElement?.closest("[data-content], [data-tag], [data-run]");
  const path = [parent, focused].filter(Boolean).map(selector).filter(Boolean).join(" ");
  put(page, { push: false, keepPlace: true });
  if (path) find(path)?.focus({ preventScroll: true });
}

addEventListener("popstate", () => go(here(), { push: false }).catch(complain));

// Addresses are relative to the base of the page, so the browser would leave the page for "#main".
document.addEventListener("click", (event) => {
  if (!event.target.matches(".skip")) return;
  event.preventDefault();
  find("#main").focus();
});
