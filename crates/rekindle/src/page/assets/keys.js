// Keys of every page; the help lists them. A log has keys of its own, in log.js.
import { say, inRun } from "./page.js";
import { askFor } from "./acts.js";

const pages = { o: "/", e: "/events", q: "/questions", c: "/cost", s: "/search", r: "/runs" };
let going = 0;

/** Whether a key is text for a field. */
export function typing(event) {
  return event.target.closest?.("input:not([type=checkbox]), textarea, select") || document.querySelector("dialog[open]");
}

function step(by) {
  const rows = [...document.querySelectorAll("#main table.rows tbody tr, #main .story > li, #main .hits li")];
  if (!rows.length) return;
  const now = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[Math.min(rows.length - 1, Math.max(0, now < 0 && by > 0 ? 0 : now + by))];
  const goal = next.querySelector("a, button");
  if (goal) goal.focus();
  else {
    next.tabIndex = -1;
    next.focus();
  }
  next.scrollIntoView({ block: "nearest" });
}

function press(event) {
  if (going && performance.now() - going < 1500 && pages[event.key]) {
    going = 0;
    location.href = inRun(pages[event.key]);
    return true;
  }
  going = 0;
  switch (event.key) {
    case "?":
      document.getElementById("help").showModal();
      return true;
    case "/": {
      const field = document.querySelector("#main input[type=search]");
      field?.focus();
      field?.select();
      return Boolean(field);
    }
    case "g":
      going = performance.now();
      return true;
    case "j":
      return step(1) ?? true;
    case "k":
      return step(-1) ?? true;
    case "r": {
      const button = document.querySelector('button.act[data-act="retry"]');
      if (button) askFor(button);
      return Boolean(button);
    }
    case "y":
      navigator.clipboard.writeText(location.href).then(() => say("address copied"), () => say("the browser does not let this page copy"));
      return true;
    default:
      return false;
  }
}

export function startKeys() {
  document.getElementById("open-help").addEventListener("click", () => document.getElementById("help").showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape" && event.target.matches?.("input, textarea, select") && !document.querySelector("dialog[open]")) {
      // A browser would empty the field: what is filtered stays so.
      event.preventDefault();
      event.target.blur();
      document.getElementById("main").focus();
      return;
    }
    if (!typing(event) && press(event)) event.preventDefault();
  });
}
