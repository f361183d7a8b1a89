// What a person does from a page: answers, and acts that say first what they will do.
import { say, inRun } from "./page.js";
import { refresh } from "./live.js";

/** Orders something; gives back what became of it, or fails with the server's words. */
export async function post(place, body) {
  const response = await fetch(inRun(place), {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify(body ?? {}),
  });
  const told = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error([told.error ?? `the server said ${response.status}`, told.hint].filter(Boolean).join("; "));
  return told;
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
let pending = null;

/** Asks whether an act should be done; what it replaces stands in its field. */
export function ask({ verb, place, consequence, parts, least = 2, present = "", back }) {
  const dialog = document.getElementById("confirm");
  pending = { verb, place, parts, least, back: back ?? document.activeElement };
  dialog.querySelector("#confirm-title").textContent = `${capital(verb)}?`;
  dialog.querySelector("#confirm-text").textContent = consequence;
  dialog.querySelector("#confirm-yes").textContent = capital(verb);
  dialog.querySelector("#confirm-yes").disabled = false;
  dialog.querySelector("#confirm-error").hidden = true;
  const box = dialog.querySelector("#confirm-parts");
  box.hidden = !parts;
  box.querySelector("span").textContent = parts || "";
  box.querySelector("textarea").value = present;
  dialog.showModal();
  (parts ? box.querySelector("textarea") : dialog.querySelector("#confirm-no")).focus();
}

async function confirmed(event) {
  event.preventDefault();
  const dialog = document.getElementById("confirm");
  const { verb, place, parts, least, back } = pending;
  const wrong = dialog.querySelector("#confirm-error");
  let body = {};
  if (parts) {
    const text = dialog.querySelector("#confirm-parts textarea").value.trim();
    const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
    if (lines.length < least) {
      wrong.textContent = least > 1 ? "name two parts or more, one per line" : "type something first";
      wrong.hidden = false;
      return;
    }
    if (verb === "add") body = { title: lines[0], accept: lines.slice(1) };
    else if (verb === "edit") body = { text };
    else if (verb === "change checks") body = { accept: lines };
    else body = { parts: lines };
  }
  const yes = dialog.querySelector("#confirm-yes");
  yes.disabled = true;
  try {
    const told = await post(place, body);
    dialog.close();
    say(told.done ?? told.message ?? `${verb}: done`);
    back?.focus?.();
    refresh();
  } catch (error) {
    wrong.textContent = error.message;
    wrong.hidden = false;
    yes.disabled = false;
  }
}

async function answer(form, chosen) {
  const wrong = form.querySelector(".error");
  if (!chosen) {
    wrong.textContent = form.dataset.empty ?? "type an answer first";
    wrong.hidden = false;
    form.querySelector("input").focus();
    return;
  }
  try {
    const told = await post(form.dataset.answer, { [form.dataset.field ?? "answer"]: chosen });
    say(told.done ?? told.message ?? "answered");
    wrong.hidden = true;
    // A message may be followed by another one; an answer is the last word.
    form.querySelector("input").value = "";
    if (!form.dataset.field) document.getElementById("main").focus();
    refresh();
  } catch (error) {
    wrong.textContent = error.message;
    wrong.hidden = false;
  }
}

/** Takes an order back that was not acted on yet. */
async function takeBack(button) {
  button.disabled = true;
  try {
    say((await post(button.dataset.post)).done ?? "undone");
  } catch (error) {
    say(error.message);
  }
  refresh();
}

/** What an act would replace, asked only when somebody wants to change it. */
async function presentOf(act, place) {
  if (!place.endsWith("/edit")) return "";
  const response = await fetch(inRun(place.replace(/edit$/, "acts"))).catch(() => null);
  const { acts } = response?.ok ? await response.json() : { acts: [] };
  return acts.find((one) => one.act === act)?.present ?? "";
}

/** Asks for the act of a button. */
export async function askFor(button) {
  const { act, post: place, consequence, parts, least } = button.dataset;
  ask({ verb: act, place, consequence, parts, least: Number(least ?? 2), present: await presentOf(act, place), back: button });
}

export function startActs() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button.act");
    if (button) askFor(button);
    // No submit buttons: Enter in the field must not choose the first option.
    const option = event.target.closest?.(".options button");
    if (option) answer(option.form, option.value);
    const undo = event.target.closest?.("button.undo");
    if (undo) takeBack(undo);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target.closest?.("form[data-answer]");
    if (!form) return;
    event.preventDefault();
    answer(form, form.querySelector("input").value.trim());
  });
  const dialog = document.getElementById("confirm");
  dialog.querySelector("form").addEventListener("submit", confirmed);
  dialog.querySelector("#confirm-no").addEventListener("click", () => dialog.close());
}
