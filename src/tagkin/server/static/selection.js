// Tag, untag or finish several selected photographs at once.
import { counted } from "./dom.js";
import { complain } from "./message.js";
import { decide, sayFinished, sayStored } from "./state.js";

// Returns whether it was stored.
export async function tagAll(verdict, tag, contents) {
  try {
    const answer = await decide("api/v1/decisions", { [verdict]: contents.map((content) => [content, tag]) });
    const n = answer.accepted + answer.rejected;
    sayStored(`${tag}: ${verdict === "accept" ? "added to" : "removed from"} ${counted(n, "photograph")}.`, contents.length, answer);
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}

export async function finishAll(photographs) {
  try {
    const answer = await decide("api/v1/finish", { photographs });
    const already = photographs.length - answer.finished;
    const others = already ? ` ${counted(already, "photograph")} finished already.` : "";
    sayFinished(`${counted(answer.finished, "photograph")} finished; ${counted(answer.rejected, "suggestion")} rejected.${others}`, answer);
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}
