// Ctrl-K: one list of pages, tasks, agents and acts, found by a few letters of their names.
import { inRun, say } from "./page.js";
import { ask } from "./acts.js";

const MOST = 50;
let entries = [];
let shown = [];
let at = 0;

const input = () => document.getElementById("palette-input");
const list = () => document.getElementById("palette-list");

function pages() {
  const links = [...document.querySelectorAll("#top nav a")];
  return links.map((link) => ({ name: link.firstChild.textContent.trim(), kind: "page", go: () => { location.href = link.href; } }));
}

function acts() {
  return [{ name: "keys and help", kind: "act", go: () => document.getElementById("help").showModal() }];
}

/** Asks the server what an act would do now, then the person. */
async function askServer(from, verb) {
  const response = await fetch(inRun(from));
  const { acts: known } = response.ok ? await response.json() : { acts: [] };
  const act = known.find((one) => one.act === verb);
  if (act?.possible) ask({ verb, place: act.path, consequence: act.consequence, parts: act.asks_for, least: act.least, present: act.present });
  else say(act?.refusal ?? `${verb} makes no sense now`);
}

const ENDED = ["complete", "failed", "skipped"];

/** What can be done with the run and with each task; nothing where nothing can be ordered. */
function orders(tasks) {
  if ("readOnly" in document.body.dataset) return [];
  const entry = (name, from, verb) => ({ name, kind: "act", go: () => askServer(from, verb) });
  const found = [entry("retry failed tasks", "/api/acts", "retry failed"), entry("pause the run", "/api/acts", "pause"), entry("resume the run", "/api/acts", "resume"), entry("add a task", "/api/acts", "add")];
  for (const { id, state } of tasks) {
    const verbs = [...(ENDED.includes(state) ? ["retry"] : ["skip", "split", "stop", "recover"]), "edit", "change checks"];
    const from = `/api/tasks/${encodeURIComponent(id)}/acts`;
    for (const verb of verbs) found.push(entry(`${verb} ${id}`, from, verb));
  }
  return found;
}

async function fromServer() {
  const response = await fetch(inRun("/api/status"));
  if (!response.ok) return [];
  const status = await response.json();
  const tasks = (status.tasks ?? []).map((task) => ({
    name: `${task.id} ${task.title ?? ""}`, kind: (task.state ?? "task").replaceAll("_", " "),
    go: () => { location.href = inRun(`/tasks/${encodeURIComponent(task.id)}`); },
  }));
  const agents = (status.agents ?? []).map((agent) => ({
    name: `${agent.name} log`, kind: "agent",
    go: () => { location.href = inRun(`/logs/${agent.attempt}`); },
  }));
  return [...tasks, ...agents, ...orders(status.tasks ?? [])];
}

/** How well words fit a name, each for itself: less is better, nothing when one of them does not. */
function score(words, name) {
  const text = name.toLowerCase();
  const whole = text.indexOf(words);
  if (whole >= 0) return whole;
  const scores = words.split(/\s+/).map((word) => fit(word, text));
  return scores.includes(null) ? null : scores.reduce((sum, one) => sum + one, 0);
}

/** How well the letters of one word fit a text. */
function fit(letters, text) {
  const whole = text.indexOf(letters);
  if (whole >= 0) return whole;
  let from = 0;
  let gaps = 0;
  for (const letter of letters) {
    const found = text.indexOf(letter, from);
    if (found < 0) return null;
    gaps += found - from;
    from = found + 1;
  }
  return 100 + gaps;
}

function draw() {
  const letters = input().value.trim().toLowerCase();
  const scored = entries.map((entry, order) => ({ entry, order, score: score(letters, entry.name) }));
  const fit = scored.filter((one) => one.score !== null).sort((a, b) => a.score - b.score || a.order - b.order);
  shown = fit.slice(0, MOST).map((one) => one.entry);
  at = Math.min(at, Math.max(0, shown.length - 1));
  list().replaceChildren(...shown.map((entry, index) => {
    const item = document.createElement("li");
    item.id = `palette-${index}`;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", String(index === at));
    const name = document.createElement("span");
    name.textContent = entry.name;
    const kind = document.createElement("span");
    kind.className = "dim";
    kind.textContent = entry.kind;
    item.append(name, kind);
    item.addEventListener("click", () => choose(index));
    return item;
  }));
  input().setAttribute("aria-activedescendant", shown.length ? `palette-${at}` : "");
  list().children[at]?.scrollIntoView({ block: "nearest" });
}

function choose(index) {
  const entry = shown[index];
  if (!entry) return;
  document.getElementById("palette").close();
  entry.go();
}

async function open() {
  const dialog = document.getElementById("palette");
  if (document.querySelector("dialog[open]")) return;
  entries = [...pages(), ...acts()];
  at = 0;
  input().value = "";
  dialog.showModal();
  draw();
  entries = [...entries, ...await fromServer().catch(() => [])];
  if (dialog.open) draw();
}

export function startPalette() {
  document.getElementById("open-palette").addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open();
    }
  });
  input().addEventListener("input", () => {
    at = 0;
    draw();
  });
  input().addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
    if (event.key in steps) {
      at = Math.min(shown.length - 1, Math.max(0, at + steps[event.key]));
      draw();
    } else if (event.key === "Enter") choose(at);
    else return;
    event.preventDefault();
  });
}
