// What all modes share: talking to the server, the progress line, undo.
import { post, watch } from "./server.js";

const message = document.getElementById("message");

export function say(text) {
  message.textContent = text;
}

async function act(address, body = {}) {
  try {
    return await post(address, body);
  } catch (error) {
    say(error.message);
    return null;
  }
}

for (const what of ["undo", "redo"]) {
  document.getElementById(what).addEventListener("click", async () => {
    if (await act(`/api/${what}`)) location.reload();
  });
}

const grid = document.getElementById("grid");
if (grid) {
  grid.addEventListener("click", (event) => {
    const one = event.target.closest("button[data-content]");
    if (one) one.setAttribute("aria-pressed", one.getAttribute("aria-pressed") !== "true");
  });
  document.getElementById("accept").addEventListener("click", async () => {
    const every = [...grid.querySelectorAll("button[data-content]")];
    const numbers = (wrong) =>
      every
        .filter((one) => (one.getAttribute("aria-pressed") === "true") === wrong)
        .map((one) => Number(one.dataset.content));
    const body = { accept: numbers(false), reject: numbers(true) };
    if (await act(`/api/tags/${grid.dataset.tag}/decisions`, body)) location.reload();
  });
}

for (const one of document.querySelectorAll("[data-verdict]")) {
  one.addEventListener("click", async () => {
    const item = one.closest("[data-tag]");
    const content = Number(one.closest("[data-content]").dataset.content);
    const pair = [content, Number(item.dataset.tag)];
    if (await act("/api/decisions", { [one.dataset.verdict]: [pair] })) location.reload();
  });
}

for (const one of document.querySelectorAll("[data-undo]")) {
  one.addEventListener("click", async () => {
    if (await act("/api/undo", { run: Number(one.dataset.undo) })) location.reload();
  });
}

document.getElementById("add")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const content = Number(document.getElementById("photograph").dataset.content);
  const tag = event.target.elements.tag.value;
  if (await act("/api/decisions", { accept: [[content, tag]] })) location.reload();
});

watch((state) => {
  const n = new Intl.NumberFormat("en");
  document.getElementById("progress").textContent =
    `${n.format(state.suggestions)} suggestions left for ${n.format(state.to_review)} ` +
    `photographs, about ${n.format(Math.round(state.expected))} right`;
  const fit = { running: "Learning in the background", failed: state.fit.error };
  document.getElementById("fit").textContent = fit[state.fit.state] ?? "";
  document.getElementById("undo").disabled = !state.can_undo;
  document.getElementById("redo").disabled = !state.can_redo;
});
