// Write accepted tags into files: start, follow and undo a write.
import { count, find, mode } from "./dom.js";
import { withFilters } from "./filters.js";
import { bind } from "./keys.js";
import { complain, say } from "./message.js";
import { go, refresh } from "./page.js";
import { post } from "./server.js";
import { onState, tell } from "./state.js";

let last = null; // the state of the job that the page knows

async function start(address) {
  try {
    const { state } = await post(address);
    tell(state);
    if (mode() === "write") await refresh();
    else location.href = "write";
  } catch (error) {
    complain(error);
  }
}

function write() {
  const button = find("#write");
  if (!button) return false;
  button.disabled = true; // once is enough
  start(`api/v1/write${location.search}`);
  return true;
}

// Follow a job on any page; on its own page, the server renders each new state.
function follow({ write: job }) {
  const ended = last === "running" && job.state !== "running";
  last = job.state;
  if (mode() !== "write") {
    if (ended) say(job.text, { bad: job.state === "failed", button: { text: "Show", run: () => (location.href = "write") } });
    return;
  }
  const shown = find("#job");
  if (job.state === "running" && find("#job-share")) {
    find("#job-share").max = job.total;
    find("#job-share").value = job.done;
    find("#job-text").textContent = `${job.what}: ${count(job.done)} of ${count(job.total)}`;
  } else if (shown.dataset.state !== job.state || (find("#planning") && Number(shown.dataset.plans) !== job.plans)) {
    refresh().catch(complain);
  }
}

export function listen() {
  onState(follow);
  document.addEventListener("click", (event) => {
    const undo = event.target.closest("[data-undo-write]");
    if (undo) start(`api/v1/write/${undo.dataset.undoWrite}/undo`);
  });
  document.addEventListener("change", (event) => {
    const form = event.target.closest("#way");
    if (form) go(withFilters(`write?${new URLSearchParams([...new FormData(form)].filter(([, value]) => value))}`)).catch(complain);
  });
  bind("write", ["w"], "Write the files", write, "#write");
}
