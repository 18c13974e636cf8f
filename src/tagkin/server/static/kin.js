// The dialog with the kin of a suggestion in a grid, from the page of its photograph.
import { find, make } from "./dom.js";
import { current } from "./grid.js";
import { bind } from "./keys.js";
import { complain } from "./message.js";
import { fresh } from "./page.js";

let asked = 0;

async function showKin() {
  const tile = current();
  if (!tile) return;
  const mine = ++asked;
  const address = `photographs/${tile.dataset.content}`;
  try {
    const { page } = await fresh(address);
    // the person has asked again, or gone on to another page or dialog
    if (mine !== asked || !tile.isConnected || find("dialog[open]")) return;
    const suggestion = find(`#suggestions [data-tag="${find("#grid").dataset.tag}"]`, page);
    if (!suggestion) throw new Error("It is no longer suggested.");
    const title = make("h2", { id: "kin-title" }, find(".name", suggestion).textContent, " ", find(".sure", suggestion));
    const close = make("button", { type: "button", autofocus: "" }, "Close");
    close.addEventListener("click", () => find("#why").close());
    const open = make("a", { class: "button", href: address }, "Open the photograph");
    const evidence = [...find(".evidence", suggestion).children];
    find("#why").replaceChildren(
      find(".large img", page),
      make("div", { class: "side" }, title, ...evidence, make("p", { class: "both" }, close, open)),
    );
    find("#why").showModal();
  } catch (error) {
    complain(error);
  }
}

export function listen() {
  find("#why").addEventListener("click", (event) => event.target.id === "why" && event.target.close());
  bind("why", ["k"], "", () => find("#why").close());
  bind("tag", ["k"], "Kin behind this suggestion", () => void showKin(), "#kin-here");
}
