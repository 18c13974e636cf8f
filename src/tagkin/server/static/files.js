// The files page: declare folders incomplete, and undo that.
import { counted, mode } from "./dom.js";
import { complain, say } from "./message.js";
import { refresh } from "./page.js";
import { decide, undo } from "./state.js";

async function declare(form) {
  const folder = new FormData(form).get("folder");
  const answer = await decide("api/v1/incomplete", { folder });
  const effect = `${counted(answer.photographs, "photograph")} no longer ${answer.photographs === 1 ? "counts" : "count"} as complete.`;
  say(answer.run === null ? "Declared already." : effect);
  await refresh();
}

export function listen() {
  document.addEventListener("submit", (event) => {
    if (event.target.id !== "incomplete") return;
    event.preventDefault();
    declare(event.target).catch(complain);
  });
  document.addEventListener("click", (event) => {
    const run = mode() === "files" && event.target.closest("[data-undo]");
    if (run) undo(Number(run.dataset.undo));
  });
}
