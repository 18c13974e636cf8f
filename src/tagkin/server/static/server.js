// Requests to the server. Errors are sentences that can be shown.

async function answered(response) {
  const kind = response.headers.get("content-type") ?? "";
  if (response.ok) return kind.startsWith("application/json") ? response.json() : response.text();
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

export const text = get;

export function post(address, body = {}) {
  return asked(address, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(PATIENCE),
  });
}

// Call back whenever the state changes, in this window or another, and complain on errors.
export function watch(callback, complain, everyMs = 2000) {
  let last = "";
  const look = async () => {
    if (document.visibilityState === "visible") {
      try {
        const state = await get("api/state");
        const now = JSON.stringify(state);
        if (now !== last) callback(state);
        last = now;
      } catch (error) {
        last = ""; // the next request may succeed
        complain(error);
      }
    }
    setTimeout(look, everyMs);
  };
  look();
}
