// What every part of the script needs: a voice, addresses that stay in the run, spans in words.

/** A span in words, two units at most: as the server writes it. */
export function elapsed(ms) {
  const s = Math.floor(ms / 1000);
  const two = (n) => String(n).padStart(2, "0");
  if (s < 1) return "0s";
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${two(s % 60)}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h${two(Math.floor(s / 60) % 60)}m`;
  return `${Math.floor(s / 86400)}d${two(Math.floor(s / 3600) % 24)}h`;
}

/** Says something to whoever listens to the page instead of looking at it. */
export function say(text) {
  const region = document.getElementById("said");
  if (region && text) region.textContent = region.textContent === text ? `${text}\u00a0` : text;
}

/** An address on this server, in the run that is looked at. */
export function inRun(path) {
  const run = document.body.dataset.run;
  if (!run) return path;
  const url = new URL(path, location.origin);
  if (!url.searchParams.has("run")) url.searchParams.set("run", run);
  return url.pathname + url.search + url.hash;
}
