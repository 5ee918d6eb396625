// The user's files: what became of each line, and where it went.

import { append, code, count, h, prose, short } from "./dom.js";
import { Editor } from "./pane.js";

export const SIGNS = {
  graph: ["\u25cf", "compiled: it is in a graph"],
  folded: ["\u25cb", "traced, and nothing of it is left in a graph"],
  break: ["\u2716", "graph break"],
  python: ["Py", "runs in plain Python"],
  unreached: ["\u2013", "not reached in this run"],
  unknown: ["?", "in a compiled function; the records do not say whether torch came here"],
};
const MOST = 30;

export function source(run, state, app) {
  const docs = run.docs.filter((doc) => doc.kind === "source");
  if (!docs.length) return h("section", { class: "view" }, h("p", { class: "empty" }, "The records have no source."));
  const doc = run.byKey.get(state.key) ?? busiest(docs);
  const status = new Map(doc.status.map((found) => [found[0], found]));
  const detail = h("aside", { class: "detail", "aria-live": "polite", "aria-label": "Where the line went" });
  const editor = new Editor(run, doc, {
    label: `${doc.path}, annotated`, status: doc.status, signs: SIGNS, pin: (line) => choose(line) });

  function choose(line) {
    editor.mark({ at: line, pinned: line ? { exact: new Set([line]), same: new Set() } : null });
    if (line && !editor.isVisible(line)) editor.reveal(line, "nearest");
    detail.replaceChildren();
    append(detail, line ? about(line) : legend());
    app.moved({ key: doc.key, line });
  }

  function legend() {
    const counts = {};
    for (const found of doc.status) counts[found[1]] = (counts[found[1]] ?? 0) + 1;
    return [
      h("h2", {}, "What became of each line"),
      h("ul", { class: "legend" }, Object.entries(SIGNS).filter(([name]) => counts[name]).map(([name, [sign, words]]) =>
        h("li", {}, h("span", { class: `sign ${name}` }, sign), words, h("span", { class: "soft" }, ` ${counts[name]}`)))),
      h("p", { class: "soft" }, "Lines without a sign are in no function that torch traced. Click a line to see where it went.")];
  }

  function about(line) {
    const found = status.get(line);
    const place = run.placeAt(doc.file, line);
    const parts = [h("h2", {}, code(`${doc.title}:${line}`)), h("pre", {}, run.lines(doc)[line - 1].trim() || " ")];
    if (!found) return [...parts, h("p", {}, "Nothing is known of this line: torch traced no function that it is in.")];
    parts.push(h("p", {}, h("span", { class: `sign ${found[1]}` }, SIGNS[found[1]][0]), SIGNS[found[1]][1],
                 found[3] && [": ", prose(found[3])], "."));
    for (const reason of run.breaks) {
      for (const at of reason.places) {
        if (place >= 0 && at.place === place) {
          parts.push(h("p", {}, h("a", { href: app.link("overview", { to: "breaks" }) }, "The break and how to fix it")));
          break;
        }
      }
    }
    if (place < 0) return parts;
    const groups = new Map();
    for (const other of run.docs) {
      if (other.kind === "source") continue;
      const lines = run.index(other).byPlace.get(place);
      if (lines?.length) groups.set(other, [...new Set(lines)].sort((a, b) => a - b));
    }
    if (groups.size) parts.push(h("h3", {}, "Where it went"));
    for (const [other, lines] of groups) {
      const calls = other.kind === "kernel" ? new Set(lines.flatMap((at) => run.index(other).calls.get(at) ?? [])) : null;
      const shown = calls ? [...calls].map((number) => [other.calls[number][4], other.calls[number][0]])
        : lines.map((at) => [at, run.lines(other)[at - 1].trim()]);
      const isFirst = other === groups.keys().next().value;
      parts.push(h("details", { open: isFirst || shown.length <= 6 },
        h("summary", {}, other.title, h("span", { class: "soft" }, ` ${count(shown.length, calls ? "call" : "line")}`)),
        h("ol", { class: "went" }, shown.slice(0, MOST).map(([at, text]) => h("li", {}, h("a", {
          href: app.link("side", { panes: [{ key: doc.key, line }, { key: other.key, line: at }] }) },
        h("span", { class: "soft" }, `${at} `), code(short(text, 160)))))),
        shown.length > MOST ? h("p", { class: "soft" }, `and ${shown.length - MOST} more`) : null));
    }
    return parts;
  }

  const view = h("section", { class: "view source", "aria-label": "Source" },
    h("div", { class: "bar" },
      h("label", {}, "file ", h("select", {
        onchange: (event) => app.go("source", { key: event.target.value }), value: doc.key },
      docs.map((other) => h("option", { value: other.key, selected: other === doc }, other.title)))),
      h("span", { class: "soft path", title: doc.path }, h("bdi", {}, doc.path)),
      h("button", { type: "button", onclick: () => editor.find() }, "search"),
      h("button", { type: "button", onclick: () => choose(0) }, "legend")),
    h("div", { class: "split" }, h("div", { class: "pane" }, editor.host), detail));
  view.ready = () => {
    append(detail, legend());
    if (state.line > 0 && state.line <= run.lines(doc).length) {
      choose(state.line);
      editor.reveal(state.line);
    } else if (doc.status.length) editor.reveal(Math.max(1, doc.status[0][0] - 3), "start");
  };
  view.leave = () => editor.destroy();
  return view;
}

function busiest(docs) {
  return docs.reduce((best, doc) => (doc.status.length > best.status.length ? doc : best), docs[0]);
}
