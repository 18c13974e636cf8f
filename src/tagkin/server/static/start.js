// The start page: what opens a collection, and what happens meanwhile.
import { find, make } from "./dom.js";
import { complain } from "./message.js";
import "./presence.js";
import { get, post } from "./server.js";

const EVERY = 400; // ms between two looks at what is being opened

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

function tell({ state, text }) {
  document.body.dataset.state = state;
  const line = find("#opening");
  if (line.textContent !== text) line.textContent = text;
}

// Wait for the collection that is being opened, and go to it.
async function follow(state) {
  tell(state);
  find("#opening").scrollIntoView({ block: "nearest" });
  while (state.state === "opening") {
    await pause(EVERY);
    state = await get("api/v1/desk");
    tell(state);
  }
  if (state.state !== "failed" && state.open) location.assign(`${state.number}/tags`);
}

async function open(address, body) {
  if (document.body.dataset.state === "opening") return;
  document.body.dataset.state = "opening";
  try {
    await follow(await post(address, body));
  } catch (error) {
    document.body.dataset.state = "idle";
    complain(error);
  }
}

async function quit() {
  await post("api/v1/desk/quit");
  find("#main").replaceChildren(make("p", { class: "done" }, "tagkin has ended. You can close this window."));
  for (const left of [".top > a:not(.brand)", ".top .tools", "footer"]) find(left)?.remove();
}

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-open]");
  if (opener) open(`api/v1/desk/open?${opener.dataset.open}`);
  else if (event.target.id === "sample") open("api/v1/desk/sample");
  else if (event.target.id === "quit") quit().catch(complain);
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "immich") return;
  event.preventDefault();
  open("api/v1/desk/immich", Object.fromEntries(new FormData(event.target)));
});
if (document.body.dataset.state === "opening") get("api/v1/desk").then(follow).catch(complain);
