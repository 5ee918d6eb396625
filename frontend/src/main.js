// The page: reads its data, shows one view at a time; where it stands is in the address behind the #.

import { append, h } from "./dom.js";
import { read, Run } from "./model.js";
import { overview } from "./overview.js";
import { source } from "./source.js";
import { prepare, side } from "./side.js";
import { guards } from "./guards.js";
import { graph } from "./graph.js";
import { ranks } from "./ranks.js";

const VIEWS = [["overview", "Overview", overview], ["source", "Source", source], ["side", "Side by side", side],
               ["guards", "Guards", guards], ["graph", "Graph", graph]];

// --- addresses: #/side/0/model.py@12/__compiled_fn_1.Captured_Graph.0@40 -------------------------------
const encode = (text) => encodeURIComponent(text).replace(/%20/g, "+");
const decode = (text) => {
  try {
    return decodeURIComponent(text.replace(/\+/g, "%20"));
  } catch {
    return "";
  }
};

export function address(view, state, run) {
  const parts = [view, String(run)];
  if (view === "side") parts.push(...(state.panes ?? []).map(({ key, line }) => encode(key) + (line ? `@${line}` : "")));
  else if (view === "source" && state.key !== undefined) parts.push(encode(state.key) + (state.line ? `@${state.line}` : ""));
  else if (view === "guards" && state.id !== undefined) parts.push(encode(state.id));
  else if (view === "graph" && state.key !== undefined) parts.push(encode(state.key));
  else if (view === "overview" && state.to) parts.push(encode(state.to));
  return `#/${parts.join("/")}`;
}

function parse(hash) {
  const [view = "", run = "0", ...rest] = hash.replace(/^#\/?/, "").split("/");
  const at = (text) => {
    const found = /^(.*?)(?:@(\d+))?$/s.exec(text);
    return { key: decode(found[1]), line: Number(found[2] ?? 0) };
  };
  const state = {};
  if (view === "side" && rest.length) state.panes = rest.slice(0, 3).map(at);
  else if (view === "source" && rest.length) Object.assign(state, at(rest[0]));
  else if (view === "guards" && rest.length) state.id = decode(rest[0]);
  else if (view === "graph" && rest.length) state.key = decode(rest[0]);
  else if (view === "overview" && rest.length) state.to = decode(rest[0]);
  return { view, run: Number(run) || 0, state };
}

function stored(name, value) {
  try { // (a file of its own origin may have no storage)
    if (value === undefined) return localStorage.getItem(name);
    localStorage.setItem(name, value);
  } catch { /* the choice holds for this visit */ }
  return null;
}

/** What was run, with which backend, when, and on what. */
function about(data) {
  const { command, date, torch, python } = data.environment;
  const backends = data.backends.join(", ");
  const rest = [backends, date, torch && `torch ${torch.split("+")[0]}`, python && `Python ${python}`].filter(Boolean);
  return h("span", { class: "soft environment", title: [command, ...rest].filter(Boolean).join(", ") },
    command ? h("code", {}, command.replace(/^python /, "")) : null, h("span", {}, rest.join(", ")));
}

/** (Safari has no idle callbacks.) */
const later = window.requestIdleCallback ?? ((act) => setTimeout(act, 50));

/** In the frame of a notebook (srcdoc) a page has no address: links would lead to the notebook's. It keeps it itself. */
const OWN_ADDRESS = location.protocol !== "about:";

class App {
  constructor(data, root) {
    Object.assign(this, { data, root, number: 0, name: "", seen: null, states: new Map(), here: "", trail: [] });
    this.views = data.runs.length > 1 ? [...VIEWS, ["ranks", "Ranks", null]] : VIEWS;
    this.main = h("main", { id: "main", tabindex: "-1" });
    this.tabs = h("nav", { "aria-label": "Views" });
    this.runs = data.runs.length > 1 ? h("select", { "aria-label": "rank", onchange: (event) => this.go(
      this.name === "ranks" ? "overview" : this.name, {}, Number(event.target.value)) },
    data.runs.map((run, index) => h("option", { value: String(index) }, run.name || `run ${index}`))) : null;
    const keys = h("button", { type: "button", "aria-label": "keyboard", title: "keyboard (?)", onclick: () => this.help() }, "?");
    this.back = h("button", { type: "button", "aria-label": "back", title: "back", onclick: () => this.backwards() }, "\u2190");
    this.back.disabled = true;
    const theme = h("button", { type: "button", class: "theme", onclick: () => this.theme() }, "");
    this.themeButton = theme;
    root.replaceChildren(
      h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); this.main.focus(); } }, "to the content"),
      h("header", {}, h("h1", {}, "depyf"), OWN_ADDRESS ? null : this.back, this.tabs, this.runs, about(data), keys, theme),
      this.main);
    this.theme(stored("depyf-theme") ?? "auto");
    window.addEventListener("hashchange", () => this.show());
    if (!OWN_ADDRESS) document.addEventListener("click", (event) => this.follow(event));
    document.addEventListener("keydown", (event) => this.key(event));
    this.show();
  }

  link(view, state, run = this.number) {
    return address(view, state, run);
  }

  go(view, state, run = this.number) {
    this.visit(address(view, state, run));
  }

  visit(to) {
    if (!OWN_ADDRESS) {
      if (to !== this.here) this.trail.push(this.here);
      this.here = to;
      this.back.disabled = !this.trail.length;
      this.show();
    } else if (location.hash === to) this.show();
    else location.hash = to;
  }

  /** A link within the page, where it cannot lead to an address. */
  follow(event) {
    const link = event.composedPath().find((element) => element instanceof Element && element.matches("a[href^='#/']"));
    if (!link || event.defaultPrevented) return;
    event.preventDefault();
    this.visit(link.getAttribute("href"));
  }

  /** The way back, where the browser has none for us. */
  backwards() {
    if (this.trail.length) this.here = this.trail.pop();
    this.back.disabled = !this.trail.length;
    this.show();
  }

  /** The view tells where it stands now. */
  moved(state) {
    this.states.set(this.name, state);
    if (this.kept?.view === this.seen) this.kept.address = address(this.name, state, this.number);
    const at = address(this.name, state, this.number);
    if (!OWN_ADDRESS) this.here = at;
    else {
      try {
        history.replaceState(null, "", at);
      } catch { /* (browsers take only so many in a minute) */ }
    }
    this.drawTabs();
  }

  show() {
    const wanted = parse(OWN_ADDRESS ? location.hash : this.here);
    const found = this.views.find(([name]) => name === wanted.view) ?? this.views[this.data.runs.length > 1 && !wanted.view ? 5 : 0];
    const asked = this.asked = Math.min(Math.max(wanted.run, 0), this.data.runs.length - 1);
    if (found[2] && !(this.data.runs[asked] instanceof Run)) {
      this.data.open(asked).catch((error) => this.failed(error)).then((run) => run && this.asked === asked && this.show());
      return;
    }
    this.seen?.leave?.();
    if (wanted.run !== this.number) this.states.clear();
    if (wanted.run !== this.number) this.forget();
    this.number = asked;
    this.name = found[0];
    this.states.set(this.name, wanted.state);
    if (this.runs) this.runs.value = String(this.number);
    this.drawTabs();
    const run = this.data.runs[this.number];
    const to = address(this.name, wanted.state, this.number);
    try {
      const known = this.kept?.address === to ? this.kept : null;
      const view = known?.view ?? (found[2] ? found[2](run, wanted.state, this) : ranks(this.data, wanted.state, this));
      if (view.back && !known) this.keep(to, view);
      while (view.steps?.length) view.steps.shift()();
      this.main.replaceChildren(view);
      this.seen = view;
      if (known?.shown) view.back();
      else view.ready?.();
      if (view === this.kept?.view) this.kept.shown = true;
    } catch (error) { // the other views can still be used
      this.failed(error);
    }
    if (found[2]) this.prepare();
  }

  failed(error) {
    this.main.replaceChildren(h("p", { class: "empty", role: "alert" }, `This view could not be shown: ${error.message}`));
    console.error(error);
  }

  keep(address, view) {
    this.forget();
    this.kept = { address, view, shown: false };
  }

  /** Releases the view that is kept. */
  forget() {
    this.kept?.view.destroy();
    this.kept = null;
  }

  /** Makes "Side by side" ahead, step by step while nothing else is to be done: it takes longest to make. */
  prepare() {
    const run = this.data.runs[this.number];
    if (this.prepared === run) return;
    this.prepared = run;
    const steps = prepare(run);
    const next = () => {
      if (run !== this.data.runs[this.number] || this.kept && !steps.length && !this.kept.view.steps.length) return;
      if (steps.length) steps.shift()();
      else if (this.kept) this.kept.view.steps.shift()();
      else {
        const view = side(run, {}, this);
        if (!view.back) return;
        this.keep(address("side", {}, this.number), view);
      }
      later(next);
    };
    later(next);
  }

  drawTabs() {
    this.tabs.replaceChildren();
    append(this.tabs, this.views.map(([name, words], index) => h("a", {
      href: address(name, this.states.get(name) ?? {}, this.number), "aria-current": name === this.name ? "page" : null,
      title: `${words} (${index + 1})` }, words)));
  }

  theme(wanted) {
    const order = ["auto", "light", "dark"];
    const value = order.includes(wanted) ? wanted : order[(order.indexOf(this.chosen) + 1) % 3];
    this.chosen = value;
    if (value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = value;
    this.themeButton.textContent = { auto: "\u25d0", light: "\u2600", dark: "\u263e" }[value];
    this.themeButton.setAttribute("aria-label", `colours: ${value}`);
    this.themeButton.title = `colours: ${value} (t)`;
    if (wanted === undefined) stored("depyf-theme", value);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.composedPath()[0];
    if (target instanceof Element && target.matches("input, select, textarea")) return;
    const number = Number(event.key);
    if (number >= 1 && number <= this.views.length) this.go(this.views[number - 1][0], this.states.get(this.views[number - 1][0]) ?? {});
    else if (event.key === "t") this.theme();
    else if (event.key === "?") this.help();
    else return;
    event.preventDefault();
  }

  help() {
    const rows = [["1 to 6", "the views"], ["\u2191 \u2193", "the next line, in a text"], ["/ or Ctrl-F", "search in a text"],
                  ["g", "the definition of the name in the line"], ["Esc", "release the line"], ["t", "light, dark or the system's"],
                  ["?", "this"]];
    const dialog = h("dialog", { "aria-label": "Keyboard", onclose: () => dialog.remove() }, h("h2", {}, "Keyboard"),
      h("dl", {}, rows.map(([keys, words]) => [h("dt", {}, h("kbd", {}, keys)), h("dd", {}, words)])),
      h("button", { type: "button", onclick: () => dialog.close() }, "close"));
    document.body.append(dialog);
    dialog.showModal();
  }
}

async function begin() {
  const root = document.getElementById("app");
  try {
    const data = await read();
    // What is looked at first is there before anything is drawn; of several ranks that is the table of all.
    const { view, run } = parse(OWN_ADDRESS ? location.hash : "");
    const first = Math.min(Math.max(run, 0), data.runs.length - 1);
    if (data.runs.length === 1 || view && view !== "ranks") await data.open(first);
    root.app = new App(data, root);
    document.documentElement.dataset.ready = String(Math.round(performance.now()));
  } catch (error) {
    root.replaceChildren(h("p", { class: "empty" }, typeof DecompressionStream === "undefined"
      ? "This browser is too old to unpack the page (Chrome 80, Firefox 113, Safari 16.4 can). index.md, beside it, says the same."
      : `The page could not be shown: ${error.message}. index.md, beside it, says the same.`));
    throw error;
  }
}

begin();
