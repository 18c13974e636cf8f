// Requests to the server. Errors are sentences that can be shown.

async function answered(response) {
  const kind = response.headers.get("content-type") ?? "";
  if (response.ok) return kind.startsWith("application/json") ? response.json() : response.text();
  if (response.status === 401) throw new Error("Your session has ended. Reload the page to log in again.");
  if (response.status === 403) {
    throw new Error("The review restarted. Open the new address it printed.");
  }
  const found = kind.startsWith("application/json") ? await response.json() : {};
  throw new Error(found.error ?? "The review gave an unexpected answer.");
}

const PATIENCE = 60000; // ms for the answer to a decision

// No answer came, so the request may be stored or not.
export class NoAnswer extends Error {
  constructor() {
    super("The review does not answer. Is `tagkin review` still running?");
  }
}

// The connection broke or timed out during an answer.
const isCut = (error) => error instanceof TypeError || error instanceof DOMException;

async function asked(address, options) {
  let response;
  try {
    response = await fetch(address, options);
    return await answered(response);
  } catch (error) {
    throw response && !isCut(error) ? error : new NoAnswer();
  }
}

export function get(address) {
  return asked(address, {});
}

let nBegun = 0; // steps of this window
let nEnded = 0;

export async function post(address, body = {}) {
  nBegun += 1;
  try {
    return await asked(address, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(PATIENCE),
    });
  } finally {
    nEnded += 1;
  }
}

// Calls back with the state whenever it changes, in this window or in another, and with an error if
// there is no answer. A state that was asked for beside a step of this window is not looked at: it may
// be older or newer than the state in the answer to the step.
export function watch(callback, complain, everyMs = 2000) {
  let last = "";
  const look = async () => {
    if (document.visibilityState === "visible") {
      try {
        const nBefore = nEnded;
        const state = await get("api/v1/state");
        if (nBefore === nBegun && nBegun === nEnded) {
          const now = JSON.stringify(state);
          if (now !== last) callback(state);
          last = now;
        }
      } catch (error) {
        last = ""; // the next request may succeed
        complain(error);
      }
    }
    setTimeout(look, everyMs);
  };
  look();
}
