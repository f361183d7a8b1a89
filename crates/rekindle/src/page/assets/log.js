// A log of any length: only the lines in sight are on the page. Rows have one height; with wrapping on, a window of lines flows.
import { inRun, say } from "./page.js";
import { onNews } from "./live.js";
import { typing } from "./keys.js";

const ROW = 20; // As in app.css.
const PAGE = 400; // Lines fetched at once.
const KEPT = 30; // Pages remembered.
const TALLEST = 15_000_000; // Pixels; browsers cut off elements that are taller than about 17 million.
const AROUND = 30; // Rows drawn outside the sight.
const FLOW = 300; // Lines of the window that flows.
const HITS = 100_000; // Hits remembered.

class Log {
  constructor(root) {
    this.root = root;
    this.attempt = root.dataset.log;
    this.view = root.querySelector(".view");
    this.total = 0;
    this.pages = new Map();
    this.wanted = new Set();
    this.hits = [];
    this.search = "";
    this.picked = -1;
    this.fresh = 0;
    this.flowFrom = 0;
    this.first = 0;
    this.spacer = document.createElement("div");
    this.spacer.className = "spacer";
    this.list = document.createElement("ol");
    this.list.className = "lines";
    this.view.replaceChildren(this.spacer, this.list);
    this.tools();
    this.view.addEventListener("scroll", () => this.scrolled());
    this.view.addEventListener("click", (event) => this.clicked(event));
    this.view.addEventListener("keydown", (event) => this.pressed(event));
    new ResizeObserver(() => this.draw()).observe(this.view);
    this.begin();
  }

  get follows() { return this.boxes.follow.checked; }
  get wraps() { return this.boxes.wrap.checked; }
  get seen() { return Math.max(1, Math.floor(this.view.clientHeight / ROW)); }
  get live() { return this.root.hasAttribute("data-live-log"); }

  tools() {
    const box = (name) => this.root.querySelector(`input[name=${name}]`);
    this.boxes = { follow: box("follow"), wrap: box("wrap"), times: box("times") };
    this.count = this.root.querySelector(".total");
    this.new = this.root.querySelector("button.new");
    this.find = this.root.querySelector("form.find");
    this.find.hidden = false;
    this.out = this.find.querySelector("output");
    this.boxes.follow.addEventListener("change", () => this.follows && this.toEnd());
    this.boxes.wrap.addEventListener("change", () => this.wrap());
    this.boxes.times.addEventListener("change", () => this.view.classList.toggle("no-times", !this.boxes.times.checked));
    this.new.addEventListener("click", () => this.toEnd());
    this.find.addEventListener("submit", (event) => {
      event.preventDefault();
      this.seek(1);
    });
    this.find.elements.previous.addEventListener("click", () => this.seek(-1));
    this.find.elements.next.addEventListener("click", () => this.seek(1));
    addEventListener("hashchange", () => this.toHash());
  }

  async begin() {
    // On a phone long lines wrap unless somebody says otherwise.
    if (matchMedia("(max-width: 640px)").matches && !this.wraps) {
      this.boxes.wrap.checked = true;
      this.wrap();
    }
    await this.look();
    if (!this.toHash()) this.live ? this.toEnd() : this.draw();
    onNews(() => this.look());
    // Lines are no events: while an agent writes, somebody has to look.
    setInterval(() => this.live && !document.hidden && this.look(), 700);
  }

  async ask(path) {
    const response = await fetch(inRun(`/api/logs/${this.attempt}${path}`));
    if (!response.ok) throw new Error(`the server said ${response.status}`);
    return response.json();
  }

  /** Asks how many lines there are by now. */
  async look() {
    if (this.looking) return;
    this.looking = true;
    try {
      const { total } = await this.ask("?from=0&many=0");
      if (total !== this.total) this.grown(total);
    } catch {
      // The stream says when the server is gone.
    }
    this.looking = false;
  }

  grown(total) {
    const more = total - this.total;
    const first = this.total === 0;
    // The page that was not full is fetched again.
    this.pages.delete(Math.floor(this.total / PAGE));
    const top = this.top();
    this.total = total;
    this.count.textContent = `${total.toLocaleString("en")} lines`;
    this.view.dataset.total = total;
    if (this.follows) this.toEnd();
    else {
      if (!first) this.fresh += more;
      this.stay(top);
    }
    this.tellNew();
  }

  tellNew() {
    this.new.hidden = this.follows || !this.fresh;
    this.new.textContent = `↓ ${this.fresh.toLocaleString("en")} new`;
  }

  height() { return Math.min(this.total * ROW, TALLEST); }
  room() { return Math.max(0, this.height() - this.view.clientHeight); }
  lastTop() { return Math.max(0, this.total - this.view.clientHeight / ROW); }

  /** The first line in sight, with a fraction. */
  top() {
    if (this.wraps) return this.flowTop();
    const room = this.room();
    return room ? (this.view.scrollTop / room) * this.lastTop() : 0;
  }

  /** Brings a line to the top of the sight. */
  goTo(line) {
    if (this.wraps) {
      this.flow(Math.max(0, Math.floor(line)), Math.floor(line));
      return;
    }
    this.spacer.style.height = `${this.height()}px`;
    const last = this.lastTop();
    this.moved = true;
    this.view.scrollTop = last ? (Math.min(Math.max(0, line), last) / last) * this.room() : 0;
    this.draw();
  }

  stay(top) {
    if (!this.wraps) this.goTo(top);
    else if (this.flowFrom + FLOW * 2 > this.total) this.flow(this.flowFrom);
  }

  toEnd() {
    this.boxes.follow.checked = true;
    this.fresh = 0;
    this.tellNew();
    if (!this.wraps) {
      this.goTo(this.total);
      return;
    }
    this.flow(Math.max(0, this.total - FLOW)).then(() => {
      this.moved = true;
      this.view.scrollTop = this.view.scrollHeight;
    });
  }

  scrolled() {
    const bottom = this.view.scrollTop + this.view.clientHeight >= this.view.scrollHeight - 2;
    // Whoever scrolls up wants to read; whoever is back at the end wants what comes.
    if (!this.moved && !bottom && this.view.scrollTop < (this.before ?? 0)) this.boxes.follow.checked = false;
    if (bottom && !this.wraps && this.live) {
      this.boxes.follow.checked = true;
      this.fresh = 0;
    }
    this.before = this.view.scrollTop;
    this.moved = false;
    this.tellNew();
    if (this.wraps) this.flowOn();
    else this.draw();
  }

  /** Lines from memory; those that are missing are fetched. */
  lines(from, to) {
    const found = [];
    for (let page = Math.floor(from / PAGE); page <= Math.floor((to - 1) / PAGE); page += 1) {
      const lines = this.pages.get(page);
      // One that was under way while the log grew has too few.
      if (lines && lines.length >= Math.min(PAGE, this.total - page * PAGE)) {
        this.pages.delete(page);
        this.pages.set(page, lines);
      } else this.fetch(page);
    }
    for (let n = from; n < to; n += 1) found.push(this.pages.get(Math.floor(n / PAGE))?.[n % PAGE]);
    return found;
  }

  async fetch(page) {
    if (this.wanted.has(page)) return;
    this.wanted.add(page);
    try {
      const { lines } = await this.ask(`?from=${page * PAGE}&many=${PAGE}`);
      this.pages.set(page, lines);
      while (this.pages.size > KEPT) this.pages.delete(this.pages.keys().next().value);
    } catch {
      say("lines could not be read");
    }
    this.wanted.delete(page);
    if (this.wraps) this.flow(this.flowFrom);
    else this.draw();
  }

  draw() {
    if (this.wraps || this.drawn) return;
    this.drawn = requestAnimationFrame(() => {
      this.drawn = 0;
      if (!this.wraps) this.rows();
    });
  }

  rows() {
    this.spacer.style.height = `${this.height()}px`;
    const top = this.top();
    const from = Math.max(0, Math.floor(top) - AROUND);
    const to = Math.min(this.total, Math.ceil(top) + this.seen + AROUND);
    const lines = this.lines(from, to);
    this.list.style.transform = `translateY(${this.view.scrollTop - (top - from) * ROW}px)`;
    this.fill(lines, from);
  }

  fill(lines, from) {
    const old = this.list.children;
    lines.forEach((line, index) => {
      const row = old[index] ?? this.list.appendChild(newRow());
      this.set(row, line, from + index);
    });
    while (old.length > lines.length) this.list.lastChild.remove();
    this.view.dataset.from = from;
    if (!this.wraps) this.first = Math.floor(this.top());
  }

  set(row, line, n) {
    const [no, at, mark, text] = row.children;
    row.id = `L${n + 1}`;
    const error = line?.stream === "stderr";
    row.className = `row${error ? " err" : ""}${n === this.picked ? " picked" : ""}${this.isHit(n) ? " hit" : ""}`;
    if (n === this.picked) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
    const label = String(n + 1);
    if (no.textContent !== label) {
      no.textContent = label;
      no.setAttribute("href", `#L${label}`);
    }
    at.textContent = line ? line.at : "";
    mark.textContent = error ? "err" : "";
    text.textContent = line ? line.text.replaceAll("\n", " ") + (line.torn ? " (torn)" : "") : "…";
  }

  // Wrapping: a window of lines that flows.

  wrap() {
    if (!this.wraps) this.flowTopLast = this.flowTop();
    const top = this.first;
    this.view.classList.toggle("wraps", this.wraps);
    this.spacer.hidden = this.wraps;
    this.list.style.transform = "";
    if (this.wraps) {
      this.spacer.style.height = "0px";
      this.follows ? this.toEnd() : this.flow(Math.max(0, top - FLOW / 3), top);
    } else {
      this.spacer.hidden = false;
      this.goTo(this.flowTopLast ?? 0);
    }
  }

  flowTop() {
    const edge = this.view.getBoundingClientRect().top;
    for (const row of this.list.children) {
      if (row.getBoundingClientRect().bottom > edge) return Number(row.id.slice(1)) - 1;
    }
    return this.flowFrom;
  }

  async flow(from, goal) {
    const anchor = goal ?? this.flowTop();
    const before = this.list.querySelector(`#L${anchor + 1}`)?.getBoundingClientRect().top;
    const edge = this.view.getBoundingClientRect().top;
    this.flowFrom = Math.max(0, Math.floor(from));
    this.fill(this.lines(this.flowFrom, Math.min(this.total, this.flowFrom + FLOW)), this.flowFrom);
    const row = this.list.querySelector(`#L${anchor + 1}`);
    if (!row) return;
    const now = row.getBoundingClientRect().top;
    this.moved = true;
    this.view.scrollTop += goal === undefined && before !== undefined ? now - before : now - edge;
  }

  flowOn() {
    const near = 400;
    const end = this.view.scrollHeight - this.view.clientHeight - this.view.scrollTop;
    if (this.view.scrollTop < near && this.flowFrom > 0) this.flow(this.flowFrom - FLOW / 3);
    else if (end < near && this.flowFrom + FLOW < this.total) this.flow(this.flowFrom + FLOW / 3);
  }

  // Places in the log.

  toHash() {
    const wanted = /^#L(\d+)$/.exec(location.hash);
    if (!wanted) return false;
    this.pick(Number(wanted[1]) - 1);
    return true;
  }

  pick(line) {
    if (!this.total) return;
    this.picked = Math.min(Math.max(0, line), this.total - 1);
    this.boxes.follow.checked = false;
    const top = this.top();
    const inSight = !this.wraps && this.picked >= top + 1 && this.picked < top + this.seen - 2;
    if (inSight) this.draw();
    else this.goTo(this.wraps ? this.picked : this.picked - Math.floor(this.seen / 3));
    this.view.focus({ preventScroll: true });
    this.tellNew();
  }

  clicked(event) {
    const link = event.target.closest("a.no");
    if (!link) return;
    event.preventDefault();
    history.replaceState(null, "", link.getAttribute("href"));
    this.toHash();
  }

  pressed(event) {
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: this.seen - 1, PageUp: 1 - this.seen };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves && !this.wraps) {
      if (moves[event.key] < 0) this.boxes.follow.checked = false;
      this.goTo(this.top() + moves[event.key]);
      this.moved = false;
    } else if (event.key === "End") this.toEnd();
    else if (event.key === "Home") {
      this.boxes.follow.checked = false;
      this.goTo(0);
    } else return;
    event.preventDefault();
    this.tellNew();
  }

  /** Keys that work wherever the focus is. */
  key(event) {
    const toggle = (box) => box.click();
    switch (event.key) {
      case "n": this.seek(1); return true;
      case "N": this.seek(-1); return true;
      case "f": toggle(this.boxes.follow); return true;
      case "w": toggle(this.boxes.wrap); return true;
      case "t": toggle(this.boxes.times); return true;
      case "j": this.goTo(this.top() + 1); return true;
      case "k": this.boxes.follow.checked = false; this.goTo(this.top() - 1); return true;
      case "G":
      case "End": this.toEnd(); return true;
      default: return false;
    }
  }

  // Search.

  isHit(n) {
    let [low, high] = [0, this.hits.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.hits[middle] < n) low = middle + 1;
      else high = middle;
    }
    return this.hits[low] === n;
  }

  async seek(by) {
    const words = this.find.querySelector("input").value.trim();
    if (!words) return;
    if (words !== this.search) await this.collect(words);
    if (!this.hits.length) return;
    const here = this.picked >= 0 ? this.picked : Math.floor(this.top());
    let index = by > 0 ? this.hits.findIndex((hit) => hit > here) : this.hits.findLastIndex((hit) => hit < here);
    if (index < 0) index = by > 0 ? 0 : this.hits.length - 1;
    history.replaceState(null, "", `#L${this.hits[index] + 1}`);
    this.pick(this.hits[index]);
    this.out.textContent = `${(index + 1).toLocaleString("en")} of ${this.hits.length.toLocaleString("en")}${this.moreHits ? "+" : ""}`;
  }

  async collect(words) {
    this.search = words;
    this.hits = [];
    this.moreHits = false;
    let next = 0;
    while (next !== null && this.hits.length < HITS && this.search === words) {
      this.out.textContent = `${this.hits.length.toLocaleString("en")} so far…`;
      const found = await this.ask(`/find?q=${encodeURIComponent(words)}&from=${next}`).catch(() => ({ lines: [], next: null }));
      this.hits.push(...found.lines);
      next = found.next;
    }
    this.moreHits = next !== null;
    const told = this.hits.length ? `${this.hits.length.toLocaleString("en")} hits` : "no hit";
    this.out.textContent = told;
    say(told);
    this.draw();
  }
}

function newRow() {
  const row = document.createElement("li");
  const no = document.createElement("a");
  no.className = "no";
  row.append(no, ...["at", "mark", "text"].map((name) => {
    const part = document.createElement("span");
    part.className = name;
    return part;
  }));
  return row;
}

let log = null;

function attach() {
  const root = document.querySelector("section.log[data-log]");
  if (root && (!log || log.root !== root || log.attempt !== root.dataset.log)) log = new Log(root);
}

export function startLogs() {
  attach();
  document.addEventListener("rekindle:changed", attach);
  document.addEventListener("keydown", (event) => {
    if (!log || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || typing(event)) return;
    if (log.key(event)) event.preventDefault();
  });
}
