// Explain missing pictures, and load them again when the review answers.
import { find, findAll, make } from "./dom.js";
import { onShown } from "./page.js";
import { NoAnswer, get } from "./server.js";

export const GONE = "The review has ended";
const BROKEN = "This picture cannot be shown";
const AGAIN = 500; // ms in which pictures that fail together share a reason

let looking = null;

// Ask the review once for all pictures that fail together.
function findReason() {
  looking ??= get("api/v1/state").then(
    () => ({ text: BROKEN, isGone: false }),
    (error) => ({ text: error instanceof NoAnswer ? GONE : error.message, isGone: true }),
  );
  setTimeout(() => (looking = null), AGAIN);
  return looking;
}

// The replacement for a picture.
export function makeSign(text, alt = "") {
  const label = `${alt} ${text}`.trim();
  return make("span", { class: "unseen failed", role: "img", "aria-label": label, title: text }, make("span", {}, text));
}

async function explain(image) {
  if (!image.complete || !image.getAttribute("src") || image.naturalWidth) return;
  const { text, isGone } = await findReason();
  if (image.hidden || !image.isConnected) return;
  if (!isGone && !("again" in image.dataset)) {
    image.dataset.again = ""; // the review answers, perhaps again: ask once more
    image.src = image.getAttribute("src");
    return;
  }
  const sign = makeSign(text, image.alt);
  if (isGone) sign.dataset.gone = "";
  image.hidden = true;
  image.before(sign);
}

export function showPicturesAgain() {
  for (const sign of findAll(".failed[data-gone]")) {
    const image = sign.nextElementSibling;
    sign.remove();
    image.hidden = false;
    image.src = image.getAttribute("src"); // loads it again
  }
}

export function listen() {
  document.addEventListener("error", (event) => event.target.matches?.("img") && explain(event.target), true);
  onShown(() => findAll("img", find("#main")).forEach(explain)); // also pictures that failed before this module ran
}
