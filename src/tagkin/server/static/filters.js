// Filters: choices with counts, kept in the address of every page.
import { find, findAll, mode } from "./dom.js";
import { bind } from "./keys.js";
import { complain } from "./message.js";
import { fresh, go, onShown } from "./page.js";

const CURSORS = ["after", "start"];

// An address with the filters of this page, unless it sets them itself.
export function withFilters(address) {
  const own = new URLSearchParams(address.split("?")[1]);
  const pairs = [...new URLSearchParams(document.body.dataset.filters)].filter(([name]) => !own.has(name));
  if (!pairs.length) return address;
  return `${address}${address.includes("?") ? "&" : "?"}${new URLSearchParams(pairs)}`;
}

let openFor = null; // the choice that had the focus, while the next page is on its way

async function showChoices() {
  const panel = find("#filters .panel");
  const { page } = await fresh(withFilters("filters"));
  if (!panel.isConnected) return;
  panel.replaceChildren(...page.body.children);
  if (openFor) find(`[name="${openFor}"]`, panel)?.focus();
  openFor = null;
}

function choose({ name, value }) {
  const given = new URLSearchParams(location.search);
  given.delete("not"); // events that were passed
  for (const one of name === "tag" ? CURSORS : [name, ...CURSORS]) given.delete(one);
  if (value) given.append(name, value);
  openFor = name;
  const path = ["event", "photograph"].includes(mode()) ? "events" : location.pathname; // another may be next
  go(given.size ? `${path}?${given}` : path).catch(complain);
}

function shown() {
  for (const link of findAll(".top [data-mode]")) link.setAttribute("href", withFilters(link.dataset.mode));
  if (openFor && find("#filters")) find("#filters").open = true; // which shows the choices
}

export function listen() {
  onShown(shown);
  document.addEventListener("toggle", (event) => {
    if (event.target.id === "filters" && event.target.open) showChoices().catch(complain);
  }, true);
  document.addEventListener("change", (event) => event.target.closest("#choices") && choose(event.target));
  document.addEventListener("click", (event) => {
    const link = event.target.closest(".chosen-filters a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(link.getAttribute("href")).then(() => find("#filters summary")?.focus({ focusVisible: false }), complain);
  });
  // before other meanings of the key, which would leave the page or the field
  document.addEventListener("keydown", (event) => {
    const panel = find("#filters[open]");
    if (event.key !== "Escape" || !panel || find("dialog[open]")) return;
    event.preventDefault();
    panel.open = false;
    find("summary", panel).focus();
  }, true);
  bind("all", ["v"], "Filter the photographs", () => {
    const panel = find("#filters");
    if (!panel) return false;
    panel.open = !panel.open;
    find("summary", panel).focus();
    return true;
  });
}
