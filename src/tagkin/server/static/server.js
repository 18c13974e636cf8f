// Requests to the server. Errors are sentences that can be shown.

async function answered(response) {
  const kind = response.headers.get("content-type") ?? "";
  if (response.ok) return kind.startsWith("application/json") ? response.json() : response.text();
  if (response.status === 403) {
    throw new Error("The review was started again: open the address that it has printed.");
  }
  const found = kind.startsWith("application/json") ? await response.json() : {};
  throw new Error(found.error ?? "The review does not answer as it should.");
}

async function asked(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch {
    throw new Error("The review does not answer. Is `tagkin review` still running?");
  }
  return answered(response);
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
  });
}

// Calls back with the state whenever it is another one, in this window or in another.
export function watch(callback, everyMs = 2000) {
  let last = "";
  const look = async () => {
    if (document.visibilityState === "visible") {
      try {
        const state = await get("api/state");
        const now = JSON.stringify(state);
        if (now !== last) callback(state);
        last = now;
      } catch {
        // the next look may find it again
      }
    }
    setTimeout(look, everyMs);
  };
  look();
}
