// The dialog with the kin of a suggestion in a grid.
import { find, make, mode } from "./dom.js";
import { current } from "./grid.js";
import { bind } from "./keys.js";
import { complain } from "./message.js";
import { get } from "./server.js";

const percent = (share) => `${Math.round(100 * share)} %`;

function kinOf(one) {
  const list = make("ul", { class: "kin" });
  for (const kin of one.kin) {
    const image = make("img", { src: kin.thumbnail, alt: kin.name, decoding: "async" });
    const link = make("a", { href: `photographs/${kin.content}`, title: kin.name }, image);
    list.append(make("li", {}, link, make("span", {}, percent(kin.share))));
  }
  return list;
}

function evidence(photograph, one) {
  const parts = [make("h2", { id: "kin-title" }, one.name, " ", make("span", { class: "quiet" }, percent(one.confidence)))];
  const shares = one.shares ? `Suggested ${one.shares}.` : one.kin.length ? "" : "Suggested from the tag's name alone.";
  if (shares) parts.push(make("p", { class: "quiet" }, shares));
  if (one.kin.length) parts.push(make("p", { class: "quiet" }, "Kin with this tag"), kinOf(one));
  else if (one.shares) parts.push(make("p", { class: "quiet" }, "No kin adds 2 % or more."));
  const open = make("a", { class: "button", href: `photographs/${photograph.content}` }, "Open the photograph");
  const close = make("button", { type: "button", autofocus: "" }, "Close");
  close.addEventListener("click", () => find("#why").close());
  parts.push(make("p", { class: "both" }, close, open));
  return make("div", { class: "side" }, ...parts);
}

let asked = 0;

async function showKin() {
  const tile = current();
  if (!tile) return;
  const mine = ++asked;
  const tag = Number(find("#grid").dataset.tag);
  try {
    const photograph = await get(`api/v1/photographs/${tile.dataset.content}`);
    // the person has asked again, or gone on to another page or dialog
    if (mine !== asked || !tile.isConnected || find("dialog[open]")) return;
    const one = photograph.suggestions.find((other) => other.tag === tag);
    if (!one) throw new Error("It is no longer suggested.");
    const dialog = find("#why");
    dialog.replaceChildren(
      make("img", { src: photograph.thumbnail, srcset: photograph.srcset, sizes: "16rem", alt: photograph.name }),
      evidence(photograph, one),
    );
    dialog.showModal();
  } catch (error) {
    complain(error);
  }
}

export function listen() {
  document.addEventListener("click", (event) => {
    if (mode() === "tag" && event.target.closest("#kin-here")) showKin();
  });
  find("#why").addEventListener("click", (event) => event.target.id === "why" && event.target.close());
  bind("why", ["k"], "", () => find("#why").close());
  bind("tag", ["k"], "Kin behind this suggestion", () => void showKin());
}
