// Keyboard shortcuts and the dialog that lists them.
import { find, findAll, make, mode, remembered } from "./dom.js";

const MODES = {
  all: "Everywhere",
  tags: "Tags",
  tag: "By tag",
  event: "By event",
  photograph: "A photograph",
  doubtful: "Doubtful",
  search: "Search",
  write: "Write",
  overview: "Overview",
  closer: "While looking closer",
};
const SHOWN = {
  ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Enter: "↵", " ": "Space", Escape: "Esc",
};
const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];

const bound = [];
let pending = "";
let pendingTimer;

// `where` is a mode, "all", or the id of a dialog. `run` gets the event of a key, or of a click on
// `button`; if it returns false, the browser handles the key.
export function bind(where, keys, text, run, button = null) {
  bound.push({ where, keys, text, run, button });
}

function clicked(event) {
  for (const { where, run, button } of bound) {
    if (button && ["all", mode()].includes(where) && event.target.closest(button)) run(event);
  }
}

function nameOf(event) {
  const digit = /^(?:Digit|Numpad)(\d)$/.exec(event.code);
  const key = digit ? digit[1] : event.key;
  const control = event.ctrlKey || event.metaKey ? "Ctrl+" : "";
  const isSign = key.length === 1 && !digit && key !== " ";
  const shift = event.shiftKey && (!isSign || control) ? "Shift+" : "";
  return control + shift + (control && isSign ? key.toLowerCase() : key);
}

const isText = (element) =>
  element.matches("textarea, select, [contenteditable], input:not([type=checkbox], [type=radio], [type=button])");

// A focused button or link handles Enter and Space itself.
function isItsOwn(element, name) {
  if (name !== "Enter" && name !== " ") return false;
  return element.matches("a, button, summary, input") && !element.matches("#grid [aria-pressed]");
}

function pressed(event) {
  if (event.defaultPrevented || event.altKey || event.isComposing) return;
  const dialog = find("dialog[open]");
  if (isText(event.target)) {
    if (event.key === "Escape" && !dialog) event.target.blur(); // shortcuts work again
    return;
  }
  const name = nameOf(event);
  if (isItsOwn(event.target, name)) return;
  const isSingle = name.length === 1 && name !== " ";
  if (isSingle && !dialog && name !== "?" && remembered("letters") === "off") return;
  const sequence = pending ? `${pending} ${name}` : name;
  pending = "";
  clearTimeout(pendingTimer);
  const places = dialog ? [dialog.id] : ["all", mode()];
  const here = bound.filter((one) => places.includes(one.where));
  const match = here.find((one) => one.keys.includes(sequence));
  if (match) {
    if (match.run(event) !== false) event.preventDefault();
  } else if (here.some((one) => one.keys.some((key) => key.startsWith(`${name} `)))) {
    pending = name;
    pendingTimer = setTimeout(() => (pending = ""), 1500);
  }
}

function shown(key) {
  const parts = key.split(key === " " ? "\0" : " ");
  return parts.map((part) =>
    make("kbd", {}, part.split(/(?<=.)\+/).map((one) => SHOWN[one] ?? one).join(" + ")),
  );
}

function listed(given) {
  const term = make("dt");
  const isRange = given.length === 4 && ARROWS.every((key) => given.includes(`Shift+${key}`));
  const keys = isRange ? ["Shift", ...ARROWS] : given;
  keys.forEach((key) => term.append(...shown(key)));
  return term;
}

function section(where) {
  const list = make("dl");
  for (const one of bound.filter((other) => other.where === where && other.text)) {
    list.append(make("div", {}, listed(one.keys), make("dd", {}, one.text)));
  }
  return make("section", {}, make("h3", {}, MODES[where]), list);
}

function showKeys() {
  const dialog = find("#keys");
  const columns = make("div", { class: "columns" });
  const own = mode();
  const rest = Object.keys(MODES).filter((where) => where !== own && where !== "all");
  for (const where of [own, "all", ...rest]) {
    if (bound.some((one) => one.where === where)) columns.append(section(where));
  }
  const letters = make("input", { type: "checkbox", id: "letters" });
  letters.checked = remembered("letters") !== "off";
  letters.addEventListener("change", () => remembered("letters", letters.checked ? "on" : "off"));
  const close = make("button", { type: "button" }, "Close");
  close.addEventListener("click", () => dialog.close());
  const choice = make("label", { class: "check" }, letters, "Single-letter shortcuts");
  const header = make("header", {}, make("h2", { id: "keys-title" }, "Shortcuts"), choice, close);
  dialog.replaceChildren(header, columns);
  dialog.showModal();
  close.focus();
}

export function listen() {
  document.addEventListener("keydown", pressed);
  document.addEventListener("click", clicked);
  bind("all", ["?"], "Show these shortcuts", showKeys, "#help");
  for (const link of findAll(".top nav a")) {
    const letter = { tags: "t", events: "e", doubtful: "d", search: "s", write: "w", overview: "o" }[
      link.dataset.mode
    ];
    bind("all", [`g ${letter}`], link.textContent.trim(), () => link.click());
  }
}
