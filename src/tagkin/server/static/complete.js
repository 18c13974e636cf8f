// Completion of tags in a list below a field.
import { findAll, make } from "./dom.js";
import { get } from "./server.js";

let asked = 0;

export async function tagsFor(text) {
  const { tags } = await get(`api/v1/tags/complete?text=${encodeURIComponent(text)}`);
  return tags;
}

function close(field) {
  field.parentElement.querySelector(".completions")?.remove();
  field.setAttribute("aria-expanded", "false");
  field.removeAttribute("aria-activedescendant");
}

function options(field) {
  return findAll(".completions [role=option]", field.parentElement);
}

function choose(field, option) {
  field.value = option.dataset.name;
  close(field);
  const detail = { id: Number(option.dataset.id), name: option.dataset.name };
  field.dispatchEvent(new CustomEvent("chosen", { bubbles: true, detail }));
}

async function offer(field) {
  const mine = ++asked;
  const text = field.value.trim();
  if (!text) return close(field);
  const tags = await tagsFor(text).catch(() => []);
  if (mine !== asked || document.activeElement !== field) return;
  close(field);
  if (!tags.length) return;
  const list = make("ul", { class: "completions", role: "listbox", id: `${field.id}-list`, "aria-label": "Tags" });
  tags.forEach((one, i) => {
    const option = make("li", { role: "option", id: `${field.id}-${i}`, "aria-selected": "false", "data-id": one.id, "data-name": one.name }, one.name);
    option.addEventListener("mousedown", (event) => {
      event.preventDefault();
      choose(field, option);
    });
    list.append(option);
  });
  field.parentElement.append(list);
  const room = innerWidth - 8 - field.parentElement.getBoundingClientRect().left - list.offsetWidth;
  list.style.left = `${Math.min(field.offsetLeft, room)}px`;
  const below = innerHeight - field.getBoundingClientRect().bottom;
  if (below < 260) list.style.bottom = `${field.parentElement.offsetHeight - field.offsetTop + 4}px`;
  else list.style.top = `${field.offsetTop + field.offsetHeight + 4}px`;
  field.setAttribute("aria-expanded", "true");
}

function step(field, by) {
  const all = options(field);
  if (!all.length) return;
  const at = all.findIndex((one) => one.ariaSelected === "true");
  const to = all[(at + by + all.length + (at < 0 && by < 0 ? 1 : 0)) % all.length];
  for (const one of all) one.ariaSelected = String(one === to);
  to.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", to.id);
}

function pressed(event) {
  const field = event.target.closest?.("[data-complete]");
  if (!field) return;
  const chosen = options(field).find((one) => one.ariaSelected === "true");
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    step(field, event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Enter" && (chosen || field.dataset.complete === "only")) {
    const first = chosen ?? options(field)[0];
    if (first) {
      event.preventDefault();
      choose(field, first);
    }
  } else if (event.key === "Escape" && !(field.closest("dialog") && !options(field).length)) {
    event.preventDefault();
    field.value = ""; // discard the typed text
    field.blur(); // shortcuts work again, and the list closes
  }
}

export function listen() {
  document.addEventListener("focusin", (event) => {
    if (!event.target.matches("[data-complete]")) return;
    event.target.setAttribute("role", "combobox");
    event.target.setAttribute("aria-autocomplete", "list");
    event.target.setAttribute("aria-expanded", "false");
    event.target.setAttribute("aria-controls", `${event.target.id}-list`);
  });
  document.addEventListener("input", (event) => event.target.matches("[data-complete]") && offer(event.target));
  document.addEventListener("focusout", (event) => event.target.matches("[data-complete]") && close(event.target));
  document.addEventListener("keydown", pressed);
}
