// Completion of tags, in the browser's own list below a field.
import { find, make } from "./dom.js";
import { get } from "./server.js";

let asked = 0;

export async function tagsFor(text) {
  const { tags } = await get(`api/v1/tags/complete?text=${encodeURIComponent(text)}`);
  return tags;
}

async function offer(field) {
  const mine = ++asked;
  const text = field.value.trim();
  const tags = text ? await tagsFor(text).catch(() => []) : [];
  if (mine === asked) find("#completions").replaceChildren(...tags.map(({ name }) => make("option", { value: name })));
}

export function listen() {
  document.addEventListener("input", (event) => event.target.matches("[list=completions]") && offer(event.target));
}
