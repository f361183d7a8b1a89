// What runs on every page: it joins the parts, copies texts and counts spans. Pages are whole without any of it.
import { elapsed, inRun, say } from "./page.js";
import { startLive } from "./live.js";
import { startActs } from "./acts.js";
import { startKeys } from "./keys.js";
import { startPalette } from "./palette.js";
import { startLogs } from "./log.js";

function count() {
  const now = Date.now();
  for (const time of document.querySelectorAll("time.count")) {
    const { until, since } = time.dataset;
    if (!until && !since) continue;
    const ms = until ? Number(until) - now : now - Number(since);
    const text = ms <= 0 && until ? "a moment" : elapsed(Math.max(0, ms));
    if (time.textContent !== text) time.textContent = text;
  }
}

async function copy(button) {
  const text = button.dataset.copy ?? button.parentElement.querySelector("pre")?.textContent ?? "";
  try {
    await navigator.clipboard.writeText(text);
    say("copied");
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 1200);
  } catch {
    say("the browser does not let this page copy");
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button.copy");
  if (button) {
    event.preventDefault();
    copy(button);
    return;
  }
  // Drawings lead to pages of the newest run; whoever looks at another one stays in it.
  const link = event.target.closest?.("svg a, a");
  const href = link?.getAttribute("href");
  if (href?.startsWith("/") && document.body.dataset.run) link.setAttribute("href", inRun(href));
}, true);

startLogs();
startLive();
startActs();
startKeys();
startPalette();
count();
setInterval(count, 1000);
document.documentElement.dataset.ready = "1";
