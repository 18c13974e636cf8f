// Rename, merge, nest and forget a tag, in a dialog.
import { tagsFor } from "./complete.js";
import { counted, find } from "./dom.js";
import { bind } from "./keys.js";
import { complain, say } from "./message.js";
import { refresh } from "./page.js";
import { decide, undo } from "./state.js";

let tag = null;
let asked = 0; // answers about names may come in another order than the questions

const dialog = () => find("#edit-tag");
const tagOf = ({ dataset: { edit, name, forgotten } }) => ({ id: Number(edit), name, isForgotten: forgotten === "true" });
const lastLevel = (name) => name.split("|").at(-1);

function open(button) {
  tag = tagOf(button);
  find("#edit-title").textContent = tag.name;
  find("#new-name").value = tag.name;
  find("#parent").value = "";
  find("[data-change=forget]").hidden = tag.isForgotten;
  find("[data-change=restore]").hidden = !tag.isForgotten;
  announce(null);
  dialog().showModal();
  find("#new-name").select();
}

// Another tag with this name, in any spelling.
async function sameName(name) {
  const tags = await tagsFor(name);
  const plain = name.toLowerCase();
  return tags.find((one) => one.id !== tag.id && one.name.toLowerCase() === plain) ?? null;
}

function announce(other) {
  find("#edit-rename button").textContent = other ? "Merge" : "Rename";
  find("#edit-note").textContent = other ? `${other.name} is a tag already. The two become one tag.` : "";
}

const TEXTS = {
  rename: (name) => `${tag.name} renamed to ${name}.`,
  merge: (name) => `${tag.name} merged into ${name}.`,
  forget: () => `${tag.name} forgotten: it is neither learned nor suggested.`,
  restore: () => `${tag.name} is learned again by the next training.`,
};

async function change(what, into = null) {
  try {
    const answer = await decide(`api/v1/tags/${tag.id}/change`, { what, into });
    if (dialog().open) dialog().close();
    const photographs = answer.photographs && into ? ` Files of ${counted(answer.photographs, "photograph")} keep ${tag.name}.` : "";
    say(TEXTS[what](into) + photographs, { button: { text: "Undo", run: () => undo(answer.run) } });
    await refresh();
  } catch (error) {
    trouble(error);
  }
}

// The open dialog covers the messages of the page.
function trouble(error) {
  if (dialog().open) find("#edit-note").textContent = error.message;
  else complain(error);
}

async function rename(name) {
  const other = await sameName(name);
  if (other) await change("merge", other.name);
  else await change("rename", name);
}

async function forgetShown() {
  tag = tagOf(find("[data-edit]"));
  await change(tag.isForgotten ? "restore" : "forget");
}

export function listen() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-edit]");
    if (button) open(button);
    const what = event.target.closest("#edit-tag [data-change]")?.dataset.change;
    if (what) change(what);
    else if (what === "") dialog().close();
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.closest("#edit-tag")) return;
    event.preventDefault();
    const isNest = event.target.id === "edit-nest";
    const name = find("input", event.target).value.trim();
    if (name) rename(isNest ? `${name}|${lastLevel(tag.name)}` : name).catch(trouble);
  });
  dialog().addEventListener("input", async (event) => {
    if (event.target.id !== "new-name") return;
    const name = event.target.value.trim();
    const mine = ++asked;
    const other = name ? await sameName(name).catch(() => null) : null;
    if (mine === asked) announce(other);
  });
  bind("tag", ["r"], "Rename, merge or nest this tag", () => open(find("[data-edit]")));
  bind("tag", ["f"], "Forget this tag, or learn it again", () => void forgetShown().catch(complain), "#learn-again");
}
