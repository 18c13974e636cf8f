// What happened, at the foot of the page and for screen readers.
import { find, make } from "./dom.js";

let timer;

export function say(text, { bad = false, button = null } = {}) {
  const message = find("#message");
  message.classList.toggle("bad", bad);
  message.replaceChildren(make("span", {}, text));
  if (button) {
    const one = make("button", { type: "button" }, button.text);
    one.addEventListener("click", button.run);
    message.append(one);
  }
  message.classList.add("shown");
  clearTimeout(timer);
  timer = setTimeout(() => message.classList.remove("shown"), bad ? 10000 : 5000);
}

export function complain(error) {
  say(error.message, { bad: true });
}
