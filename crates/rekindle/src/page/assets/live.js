// Keeps a page up to date: on news it fetches the page again and changes what differs, in place. Focus, scrolling, typed text and
// open details stay as they are.
import { say, inRun } from "./page.js";

// The only way from text to markup, and only for pages of this server.
const own = window.trustedTypes?.createPolicy("rekindle", { createHTML: (text) => text }) ?? { createHTML: (text) => text };

const QUIET_MS = 5000;
const listeners = new Set();
let last = 0;
let timer = 0;
let busy = false;
let again = false;
let spoken = 0;
let done = -1;

/** Calls back whenever something happened in the run. */
export function onNews(listener) {
  listeners.add(listener);
}

/** Brings the page up to date soon: at once, or when the page may be made again. */
export function refresh() {
  if (busy) {
    again = true;
    return;
  }
  if (timer) return;
  const every = Number(document.getElementById("main")?.dataset.every) || 250;
  timer = setTimeout(fetchAgain, Math.max(0, last + every - performance.now()));
}

async function fetchAgain() {
  timer = 0;
  busy = true;
  last = performance.now();
  const address = location.href;
  try {
    const response = await fetch(address, { headers: { Accept: "text/html" } });
    const ours = response.ok && !response.redirected && response.headers.get("content-type")?.startsWith("text/html");
    if (ours && address === location.href) {
      const page = new DOMParser().parseFromString(own.createHTML(await response.text()), "text/html");
      for (const id of ["top", "main", "news"]) {
        const [from, to] = [document.getElementById(id), page.getElementById(id)];
        if (from && to) morph(from, to);
      }
      if (document.title !== page.title) document.title = page.title;
      speak();
      document.dispatchEvent(new Event("rekindle:changed"));
    }
  } catch {
    // The stream says when the server is gone.
  }
  busy = false;
  if (again) {
    again = false;
    refresh();
  }
}

/** Makes an element like another one. */
export function morph(from, to) {
  if (from.hasAttribute("data-keep") && to.hasAttribute("data-keep")) return;
  attributes(from, to);
  children(from, to);
}

function attributes(from, to) {
  const stays = (name) => (name === "open" && from.localName === "details") || (name === "hidden" && from.id === "link");
  for (const { name, value } of to.attributes) {
    if (!stays(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  for (const name of from.getAttributeNames()) {
    if (!to.hasAttribute(name) && !stays(name)) from.removeAttribute(name);
  }
}

const keyOf = (node) => (node.nodeType === 1 ? node.id || node.getAttribute("data-key") || "" : "");
const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

/** Puts a node elsewhere without losing its focus, where the browser can. */
function move(parent, node, before) {
  if (parent.moveBefore) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
}

function children(from, to) {
  const keyed = new Map();
  for (const child of from.children) if (keyOf(child)) keyed.set(keyOf(child), child);
  const stay = new Set([...to.children].map(keyOf));
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const key = keyOf(wanted);
    // What goes makes room first, so that what stays need not move.
    while (at && keyOf(at) && !stay.has(keyOf(at))) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
    let node = null;
    if (key) node = keyed.get(key);
    else if (at && alike(at, wanted)) node = at;
    if (node && node.nodeName === wanted.nodeName) {
      if (node === at) at = at.nextSibling;
      else move(from, node, at);
      if (node.nodeType === 1) morph(node, wanted);
      else if (node.nodeValue !== wanted.nodeValue) node.nodeValue = wanted.nodeValue;
    } else {
      from.insertBefore(document.importNode(wanted, true), at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** Says what is new, in one sentence. */
function speak() {
  const news = document.getElementById("news");
  if (!news) return;
  const fresh = [...news.children].filter((item) => Number(item.dataset.seq) > spoken);
  const words = spoken ? fresh.slice(-3).map((item) => item.textContent) : [];
  const now = Number(news.dataset.done);
  if (done >= 0 && now > done) words.push(`${now} of ${news.dataset.all} tasks complete`);
  for (const item of fresh) spoken = Math.max(spoken, Number(item.dataset.seq));
  spoken = spoken || 1;
  done = now;
  say(words.join(". "));
}

/** A form of filters: what is chosen goes into the address, and the page follows. */
function follow(form) {
  const url = new URL(form.getAttribute("action") || location.pathname, location.origin);
  for (const [name, value] of new FormData(form)) if (value) url.searchParams.set(name, value);
  history.replaceState(null, "", url);
  last = 0;
  refresh();
}

export function startLive() {
  for (const kind of ["input", "change", "submit"]) {
    document.addEventListener(kind, (event) => {
      const form = event.target.closest?.("form[data-live]");
      if (!form) return;
      event.preventDefault();
      follow(form);
    });
  }
  speak();
  const source = new EventSource(inRun("/api/events?fold=1"));
  const link = document.getElementById("link");
  let opened = false;
  source.onopen = () => {
    document.getElementById("link").hidden = true;
    // What happened while nobody listened.
    if (opened) refresh();
    opened = true;
  };
  source.onerror = () => {
    const link = document.getElementById("link");
    link.hidden = false;
    // The browser tries again by itself unless it was turned away: then the server is another one, with another token.
    if (source.readyState === EventSource.CLOSED) link.textContent = "not live: open the address that rekindle serve printed last";
  };
  source.onmessage = (message) => {
    for (const listener of listeners) listener(message);
    refresh();
  };
  // Time passes without events too: bars grow, and a coordinator that died says nothing.
  setInterval(() => {
    const over = ["complete", "failed"].includes(document.getElementById("news")?.dataset.state);
    if (!over && !document.hidden) refresh();
  }, QUIET_MS);
  if (link) link.title = "the server does not answer; this page shows how it was";
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}
