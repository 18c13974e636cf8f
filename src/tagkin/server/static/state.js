// The progress line, undo and redo, and background work.
import { count, counted, find, mode } from "./dom.js";
import { withFilters } from "./filters.js";
import { bind } from "./keys.js";
import { complain, say } from "./message.js";
import { go, refresh } from "./page.js";
import { NoAnswer, post, watch } from "./server.js";

const PAUSE = 10000; // ms between two looks at what comes in the background

let version = null;
const stateHooks = [];

// Called with every state that the server tells.
export function onState(run) {
  stateHooks.push(run);
}
let fit = "idle";
let stored = ""; // photographs and suggestions that the page shows
let shownAt = 0;

export function tell(state) {
  version = state.version;
  find("#progress").textContent = state.progress;
  find("#pace").textContent = state.pace;
  const decided = state.accepted + state.rejected;
  find("#share").max = Math.max(1, decided + state.suggestions);
  find("#share").value = decided;
  find("#undo").disabled = !state.can_undo;
  find("#redo").disabled = !state.can_redo;
  tellFit(state.fit);
  for (const run of stateHooks) run(state);
}

function tellFit(now) {
  const line = find("#fit");
  line.dataset.state = now.state;
  if (line.textContent !== now.text) line.textContent = now.text; // a screen reader reads it again
  const large = find("#main [data-now]");
  if (large) large.textContent = now.text;
  if (fit === "running" && now.state === "done" && now.job === "fit") {
    say("The model was retrained.", { button: { text: "Show", run: () => refresh().catch(complain) } });
  }
  fit = now.state;
}

// A step without an answer may be stored. Sent again with its name, it is not done twice.
let unanswered = null;

function nameStep(address) {
  if (unanswered?.address === address) return unanswered.step;
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("-");
}

// Send decisions; the answer comes when they are on the disk.
export async function decide(address, body) {
  const step = nameStep(address);
  try {
    const answer = await post(address, { ...body, step });
    if (unanswered?.step === step) unanswered = null;
    tell(answer.state);
    return answer;
  } catch (error) {
    if (error instanceof NoAnswer) unanswered = { address, step };
    throw error;
  }
}

// The confidence and run that the page showed, which the decision stores.
export function shownOf({ dataset: { confidence, run } }) {
  return [confidence ? Number(confidence) : null, run ? Number(run) : null];
}

// Say how many of the `sent` decisions were stored, and how many were not.
export function sayStored(text, sent, answer, { trouble = "" } = {}) {
  const { run, accepted, rejected, already, kept } = answer;
  const lost = sent - accepted - rejected - already;
  const parts = [text];
  if (already > kept) parts.push(`${count(already - kept)} already decided.`);
  if (kept) parts.push(`${count(kept)} decided otherwise since this page was loaded; ${kept === 1 ? "that decision stays" : "those decisions stay"}.`);
  if (lost) parts.push(`${count(lost)} not stored. Reload the page and decide again.`);
  if (trouble) parts.push(trouble);
  const button = run === null ? null : { text: "Undo", run: () => undo(run) };
  say(parts.join(" "), { bad: Boolean(kept || lost || trouble), button });
}

export function sayFinished(text, { run }) {
  say(text, { button: run === null ? null : { text: "Undo", run: () => undo(run) } });
}

function namesOf(tags) {
  return tags.length ? `: ${tags.map((one) => one.name).join(", ")}` : "";
}

async function takeBack(what, said, body = {}) {
  try {
    const answer = await decide(`api/v1/${what}`, body);
    if (answer.run === null) {
      say(`Nothing to ${what}.`);
      return;
    }
    if (answer.edited.length) {
      say(`${said} the change of ${answer.edited.join(", ")}.`);
      await refresh();
      return;
    }
    const finished = answer.finished ? `${counted(answer.finished, "finished photograph")} and ` : "";
    const undone = `${finished}${counted(answer.decisions, "decision")}${namesOf(answer.tags)}`;
    say(`${said} ${answer.finished || answer.decisions || !body.run ? undone : `run ${body.run}`}.`);
    const [tag] = answer.tags;
    if (mode() === "tag" && answer.tags.length === 1) await go(withFilters(`tags/${tag.id}`), { keepPlace: true });
    else await refresh();
  } catch (error) {
    complain(error);
  }
}

export const undo = (run) => takeBack("undo", "Undone", run === undefined ? {} : { run });
const redo = () => takeBack("redo", "Redone");

// Another window made decisions; show them unless the user is busy here.
function changedElsewhere() {
  const isBusy = () => find("#main :is(input, select):focus") !== null;
  if (["overview", "photograph", "tags"].includes(mode()) && !isBusy()) {
    refresh({ isBusy }).catch(() => {});
  } else {
    say("Another window made decisions.", {
      button: { text: "Show", run: () => refresh().catch(complain) },
    });
  }
}

// Photographs and suggestions came in the background: show them, if nothing is lost by that. When
// the work ends, an empty page no longer promises any.
function showNew({ photographs, suggestions, fit: { state } }, { hasEnded }) {
  const now = `${photographs} ${suggestions}`;
  const isEmpty = !find("#main :is(img, [data-tag], [data-content])");
  const isDue = isEmpty || state !== "running" || Date.now() - shownAt > PAUSE;
  if ((now === stored && !(hasEnded && isEmpty)) || !isDue) return;
  [stored, shownAt] = [now, Date.now()];
  const isBusy = () => find("#main :is(input, select):focus, #main [aria-pressed=true]") !== null;
  const isWhole = mode() === "search" && !find("#next"); // otherwise more were loaded by scrolling
  if ((isEmpty || isWhole || ["overview", "tags"].includes(mode())) && !isBusy()) refresh({ isBusy }).catch(() => {});
}

// Suggest words that nobody here has used, because a person asked for them.
async function suggestCommonTags() {
  const { state } = await post("api/v1/common-tags", {});
  tell(state);
  await refresh();
}

export function follow() {
  document.addEventListener("click", (event) => event.target.id === "common-tags" && suggestCommonTags().catch(complain));
  version = Number(document.body.dataset.version);
  ({ stored } = document.body.dataset);
  bind("all", ["u", "Ctrl+z"], "Undo the last step, without limit", () => undo(), "#undo");
  bind("all", ["U", "Ctrl+Shift+z", "Ctrl+y"], "Redo", () => redo(), "#redo");
  watch(
    (state) => {
      const isNews = state.version !== version;
      const hasEnded = fit === "running" && state.fit.state !== "running";
      tell(state);
      if (isNews && !hasEnded) changedElsewhere();
      else showNew(state, { hasEnded });
    },
    (error) => {
      const line = find("#fit");
      line.dataset.state = "gone";
      if (line.textContent !== error.message) line.textContent = error.message;
    },
  );
}
