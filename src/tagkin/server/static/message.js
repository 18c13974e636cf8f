// Messages at the foot of the page and for screen readers.
import { find, make } from "./dom.js";

const COMPLAINT = 3000; // ms for which an error message stays beside newer messages

let timer;
let complainedAt = -COMPLAINT;

export function say(text, { bad = false, button = null } = {}) {
  const message = find("#message");
  const complaint = !bad && performance.now() < complainedAt + COMPLAINT ? find("span", message) : null;
  if (bad) complainedAt = performance.now();
  message.classList.toggle("bad", bad || complaint !== null);
  message.replaceChildren(...(complaint ? [complaint, " "] : []), make("span", {}, text));
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
