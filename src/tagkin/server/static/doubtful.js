// Doubtful: one key confirms a doubt, another dismisses it.
import { find, findAll, mode, rove, stepIn } from "./dom.js";
import { withFilters } from "./filters.js";
import { sizeOf, stackOf } from "./grid.js";
import { bind } from "./keys.js";
import { complain } from "./message.js";
import { loadMore, onShown, refresh } from "./page.js";
import { decide, sayStored } from "./state.js";

const items = () => findAll("#doubts > li:not([hidden])");

const nShown = () => items().reduce((n, item) => n + sizeOf(item), 0);

function current() {
  return document.activeElement.closest?.("#doubts > li") ?? items()[0];
}

async function on(item, verdict) {
  if (!item) return;
  const all = items();
  const following = all[all.indexOf(item) + 1] ?? all[all.indexOf(item) - 1];
  item.hidden = true; // the next key is for the next doubt
  if (following) rove(items(), following);
  const contents = [Number(item.dataset.content), ...stackOf(item)];
  const pairs = contents.map((content) => [content, Number(item.dataset.tag), null, null]); // the page asked
  try {
    const answer = await decide("api/v1/decisions", { [verdict]: pairs });
    const name = find(".claim strong", item).textContent;
    const said = item.dataset.kind === "missing" ? { accept: "added", reject: "left out" } : { accept: "kept", reject: "removed" };
    sayStored(answer.run === null ? "No change." : `${name} ${said[verdict]}.`, pairs.length, answer);
    item.remove();
    if (!items().length) await refresh();
    if (items().length < 10) await more();
  } catch (error) {
    item.hidden = false;
    rove(items(), item);
    complain(error);
  }
}

function answer(isAgreed) {
  const button = current()?.querySelectorAll("[data-verdict]")[isAgreed ? 0 : 1];
  if (button) on(button.closest("li"), button.dataset.verdict);
}

function move(by) {
  const all = items();
  const to = stepIn(all, by);
  rove(all, to);
  if (all.indexOf(to) > all.length - 6) more();
}

// Decided doubts are gone from the list, so the next page starts after the doubts shown here.
async function more() {
  const list = find("#doubts");
  const keyOf = ({ dataset: { content, tag } }) => `${content} ${tag}`;
  const known = new Set(findAll("#doubts > li").map(keyOf));
  const { kind } = list.dataset;
  await loadMore(list, withFilters(`doubtful?start=${nShown()}${kind ? `&kind=${kind}` : ""}`), (item) => known.has(keyOf(item)));
}

export function listen() {
  onShown(() => mode() === "doubtful" && items()[0]?.focus({ preventScroll: true, focusVisible: false }));
  document.addEventListener("click", (event) => {
    if (mode() !== "doubtful") return;
    const button = event.target.closest("[data-verdict]");
    if (button) on(button.closest("li"), button.dataset.verdict);
  });
  addEventListener("scroll", () => {
    if (mode() === "doubtful" && innerHeight + scrollY > document.body.scrollHeight - 800) more();
  }, { passive: true });
  bind("doubtful", ["y"], "Yes: remove a wrong tag, add a missing tag", () => answer(true));
  bind("doubtful", ["n"], "No: change nothing", () => answer(false));
  bind("doubtful", ["ArrowDown", "ArrowRight", "j"], "The next doubt", () => move(1));
  bind("doubtful", ["ArrowUp", "ArrowLeft"], "The previous doubt", () => move(-1));
  bind("doubtful", ["o"], "Open the photograph", () => find("a.shown", current())?.click());
}
