// The progress line, undo and redo, and background work.
import { count, counted, find, mode } from "./dom.js";
import { withFilters } from "./filters.js";
import { bind } from "./keys.js";
import { complain, say } from "./message.js";
import { forget, go, refresh } from "./page.js";
import { showPicturesAgain } from "./pictures.js";
import { NoAnswer, post, watch } from "./server.js";

let version = null;
const stateHooks = [];

// Called with every state that the server tells.
export function onState(run) {
  stateHooks.push(run);
}
let fit = "idle";

export function tell(state) {
  version = state.version;
  find("#progress").textContent =
    `${counted(state.suggestions, "suggestion")} left for ${counted(state.to_review, "photograph")}, ` +
    `about ${count(state.expected)} correct`;
  const decided = state.accepted + state.rejected;
  find("#share").max = Math.max(1, decided + state.suggestions);
  find("#share").value = decided;
  find("#undo").disabled = !state.can_undo;
  find("#redo").disabled = !state.can_redo;
  tellFit(state.fit, state);
  for (const run of stateHooks) run(state);
}

function tellFit(now, order) {
  const line = find("#fit");
  line.dataset.state = now.state;
  const share = now.total ? ` ${Math.floor((100 * now.done) / now.total)} %` : "";
  const texts = {
    running: `Training in the background: ${(now.what ?? "").toLowerCase()}${share}`,
    done: "Model retrained; new order",
    failed: now.error,
  };
  const follows = order.is_live ? "Live ranking follows your decisions" : order.is_opening ? "Preparing live ranking" : "";
  const told = texts[now.state] ?? follows;
  if (line.textContent !== told) line.textContent = told;
  if (fit === "running" && now.state === "done") {
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
    forget();
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
    const answer = await decide(`api/${what}`, body);
    if (answer.run === null) {
      say(`Nothing to ${what}.`);
      return;
    }
    const finished = answer.finished ? `${counted(answer.finished, "finished photograph")} and ` : "";
    say(`${said} ${finished}${counted(answer.decisions, "decision")}${namesOf(answer.tags)}.`);
    const [tag] = answer.tags;
    if (mode() === "tag" && answer.tags.length === 1) await go(withFilters(`tags/${tag.id}`), { keepPlace: true });
    else await refresh();
  } catch (error) {
    complain(error);
  }
}

export const undo = (run) => takeBack("undo", "Undone", run === undefined ? {} : { run });
export const redo = () => takeBack("redo", "Redone");

// Another window made decisions; show them unless the user is busy here.
function changedElsewhere() {
  forget();
  const isBusy = find("#main :is(input, select):focus") || (mode() === "tag" && find("#grid[data-changed]"));
  if (["overview", "photograph", "tags"].includes(mode()) && !isBusy) {
    refresh().catch(() => {});
  } else {
    say("Another window made decisions.", {
      button: { text: "Show", run: () => refresh().catch(complain) },
    });
  }
}

export function follow() {
  version = Number(document.body.dataset.version);
  bind("all", ["u", "Ctrl+z"], "Undo the last step, without limit", () => undo());
  bind("all", ["U", "Ctrl+Shift+z", "Ctrl+y"], "Redo", () => redo());
  find("#undo").addEventListener("click", () => undo());
  find("#redo").addEventListener("click", () => redo());
  watch(
    (state) => {
      const isNews = state.version !== version;
      const isFit = fit === "running" && state.fit.state !== "running";
      tell(state);
      showPicturesAgain();
      if (isFit) forget(); // what was fetched before is old
      else if (isNews) changedElsewhere();
    },
    (error) => {
      const line = find("#fit");
      line.dataset.state = "gone";
      if (line.textContent !== error.message) line.textContent = error.message;
    },
  );
}
