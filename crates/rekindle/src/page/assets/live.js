// Keeps a page up to date: on news it fetches the page again and changes what differs, in place. Focus, scrolling, typed text and
// open details stay as they are.
import { say, inRun } from "./page.js";

// The only way from text to markup, and only for pages of this server.
const own = window.trustedTypes?.createPolicy("rekindle", { createHTML: (text) => text }) ?? { createHTML: (text) => text };

const QUIET_MS = 5000;
const PATIENCE_MS = 1500; // A server that is only slow answers within it.
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

/** Says that the server does not answer, in the words of one of two paragraphs, or that it does. */
function gone(which) {
  const notice = document.getElementById("gone");
  const link = document.getElementById("link");
  if (link) link.hidden = !which;
  if (!notice) return;
  for (const words of notice.querySelectorAll("p")) words.hidden = words.id !== which;
  const since = document.getElementById("gone-since");
  if (which && notice.hidden) {
    since.dataset.since = String(Date.now());
    since.textContent = "a moment";
  }
  notice.hidden = !which;
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
  let opened = false;
  let waiting = 0;
  source.onopen = () => {
    clearTimeout(waiting);
    waiting = 0;
    gone(null);
    // What happened while nobody listened.
    if (opened) refresh();
    opened = true;
  };
  source.onerror = () => {
    // The browser tries again by itself unless it was turned away: then the server is another one, with another token.
    if (source.readyState === EventSource.CLOSED) gone("gone-other");
    else waiting ||= setTimeout(() => gone("gone-away"), PATIENCE_MS);
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
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}
