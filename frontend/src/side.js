// Side by side: two or three texts, their lines tied together.

import { append, code, count, h, short } from "./dom.js";
import { Editor } from "./pane.js";

/** Above the line that all panes begin with: pixels, room for the head of its function. */
const HEAD = 140;
const KINDS = [
  ["source", "your files"], ["original", "what continues after a break"], ["guards", "guards"],
  ["transformed", "transformed code"], ["graph", "graphs"], ["kernel", "kernels"]];

/** The file of the user's that most of a graph comes from. */
export function sourceOf(run, graph) {
  const counts = new Map();
  const captured = graph && run.docs[graph.stages[0]];
  for (const place of captured ? run.index(captured).byPlace.keys() : []) {
    const doc = run.place(place).file.doc;
    if (doc >= 0) counts.set(doc, (counts.get(doc) ?? 0) + 1);
  }
  const best = [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
  return run.docs[best] ?? run.docs.find((doc) => doc.kind === "source");
}

/** The first version that was compiled with a graph, and that graph. */
function firstCompiled(run) {
  for (const { id } of run.compilations) {
    const found = run.entries.get(id);
    if (found?.entry.graphs.length) return { entry: found.entry, graph: run.graphs[found.entry.graphs[0]] };
  }
  return { entry: null, graph: run.graphs[0] };
}

/** The documents to begin with: source, captured graph, and the last of what was made of it for the forward. */
export function firstPanes(run) {
  const { entry, graph } = firstCompiled(run);
  const docs = [sourceOf(run, graph)];
  if (graph) {
    const stages = graph.stages.map((id) => run.docs[id]);
    const made = [...stages, ...graph.kernels.map((id) => run.docs[id])];
    docs.push(stages.find((doc) => doc.captured) ?? stages[0]);
    const last = made.filter((doc) => doc.direction === "forward").pop() ?? made[made.length - 1];
    if (last && !docs.includes(last)) docs.push(last);
  }
  if (docs.length < 3) {
    const transformed = run.docs[entry?.transformed] ?? run.docs.find((doc) => doc.kind === "transformed");
    if (transformed) docs.splice(1, 0, transformed);
  }
  return docs.filter(Boolean).slice(0, 3);
}

/** The line of the captured graph to begin with: the first operation that can be seen in all texts. */
function firstOperation(run, docs) {
  const captured = docs.find((doc) => doc.kind === "graph" && doc.captured);
  if (!captured) return null;
  const lines = [...run.index(captured).places.keys()].sort((a, b) => a - b).slice(0, 200);
  const seen = (line) => docs.filter((doc) => {
    const { exact, same } = run.linked(doc, run.selection(captured, line));
    return exact.size || same.size;
  }).length;
  const line = lines.find((found) => seen(found) === docs.length) ?? lines[0];
  return line ? [captured, line] : null;
}

/** `state`: `{panes: [{key, line}]}`; `app.moved(state)` is told when it changes. */
export function side(run, state, app) {
  const panes = [];
  let chosen = null;
  const body = h("div", { class: "panes" });
  const status = h("p", { class: "hint", role: "status" });
  const view = h("section", { class: "view side", "aria-label": "Side by side" },
    h("div", { class: "bar" },
      h("button", { type: "button", onclick: () => add() }, "+ pane"),
      h("label", { class: "check" }, h("input", {
        type: "checkbox", checked: true,
        onchange: (event) => body.classList.toggle("plain", !event.target.checked) }), "colours"),
      status),
    body);

  function tell() {
    const words = [];
    if (chosen) {
      const places = [...chosen.selection.places];
      const shown = places.length > 3 ? [8, 30] : [3, 70]; // lines, letters of each
      words.push(...places.slice(0, shown[0]).flatMap((id, index) => [
        index ? ", " : "", code(run.place(id).name), " ", h("span", { class: "soft" }, short(run.textOf(id), shown[1]))]));
      if (places.length > shown[0]) words.push(` and ${places.length - shown[0]} more lines`);
      if (!places.length) words.push("Nothing is tied to this line.");
    } else words.push("Point at a line to see where it went; click to stay with it. Underlined names lead to their definition.");
    status.replaceChildren();
    append(status, words);
  }

  function moved() {
    app.moved({ panes: panes.map((pane) => ({ key: pane.doc.key, line: pane.editor.current || 0 })) });
  }

  function hover(from, line) {
    const selection = line ? run.selection(from.doc, line) : null;
    const tied = selection && (selection.places.size || selection.captured?.size);
    for (const pane of panes) {
      pane.editor.mark({ hover: tied ? run.linked(pane.doc, selection) : null });
    }
  }

  function pin(from, line, quiet) {
    if (!line) {
      chosen = null;
      for (const pane of panes) pane.editor.mark({ pinned: null, at: 0 });
    } else {
      chosen = { pane: from, selection: run.selection(from.doc, line) };
      for (const pane of panes) follow(pane, pane === from);
      if (!from.editor.isVisible(line)) from.editor.reveal(line, quiet ? "nearest" : "center");
    }
    tell();
    moved();
  }

  /** Chooses a line, and brings what it is tied to to the same height in all panes. */
  function align(from, line) {
    pin(from, line);
    const wanted = panes.map((pane) => {
      const { exact, same } = run.linked(pane.doc, chosen.selection);
      return [pane.editor, pane === from ? line : Math.min(...(exact.size ? exact : same)), run.lines(pane.doc).length];
    }).filter(([, at, last]) => at <= last);
    // (a line near the top of its text can stand no lower)
    const head = Math.min(HEAD, ...wanted.map(([editor, at]) => editor.above(at)));
    for (const [editor, at] of wanted) editor.reveal(at, "start", head);
  }

  function follow(pane, isOwn) {
    const found = run.linked(pane.doc, chosen.selection);
    const nothing = !chosen.selection.places.size && !chosen.selection.captured?.size && !found.exact.size;
    pane.editor.mark({ pinned: nothing ? null : found, hover: null, at: isOwn ? chosen.selection.line : 0 });
    const lines = [...(found.exact.size ? found.exact : found.same)].sort((a, b) => a - b);
    const calls = pane.doc.kind === "kernel" ? new Set(lines.flatMap((line) => run.index(pane.doc).calls.get(line) ?? [])) : null;
    pane.count.textContent = isOwn || nothing ? "" : !lines.length ? "none tied"
      : calls ? count(calls.size, "call") : count(lines.length, "line");
    if (!isOwn && lines.length) {
      pane.editor.unfold(lines[0]);
      if (!lines.some((line) => pane.editor.isVisible(line))) pane.editor.reveal(lines[0]);
    }
  }

  function show(pane, doc, line) {
    const first = line || (doc.kind === "source" ? home(doc) : run.firstTied(doc));
    const editor = new Editor(run, doc, {
      label: doc.title,
      // What is asked for stands in the middle; else the first line of which there is something to say, near the top.
      begin: line ? { line, y: "center" } : first > 12 && first < Infinity ? { line: Math.max(1, first - 3), y: "start" } : null,
      hover: (at) => hover(pane, at),
      pin: (at, quiet) => pin(pane, at, quiet),
      jump: (name) => {
        const target = run.definition(name);
        if (!target) return false;
        show(pane, target, 0);
        pane.editor.view.focus();
        if (chosen) follow(pane, false);
        moved();
        return true;
      },
    });
    pane.editor?.destroy();
    pane.editor?.host.remove();
    Object.assign(pane, { doc, editor });
    pane.select.value = String(doc.index);
    pane.select.title = doc.path ?? doc.title;
    pane.note.textContent = "";
    if (doc.fidelity) pane.note.textContent = doc.fidelity;
    pane.note.title = doc.note ?? "";
    pane.folds.hidden = !editor.spans.length;
    pane.kernels.hidden = doc.kind !== "kernel" || !doc.calls.length;
    pane.kernels.replaceChildren(h("option", { value: "" }, "go to kernel"), ...(pane.kernels.hidden ? [] : doc.calls.map(
      ([name], number) => h("option", { value: String(number) }, `${name} (call ${number + 1})`))));
    pane.element.append(editor.host);
  }

  /** Where the first compiled function of a file of the user's begins. */
  function home(doc) {
    const lines = run.units.map((unit) => run.place(unit.place)).filter((place) => place?.file.doc === doc.index)
      .map((place) => place.line);
    return lines[0] ?? doc.status.find((found) => found[1] === "graph")?.[0] ?? 0;
  }

  function add(doc, line = 0) {
    if (panes.length >= 3) return;
    const options = KINDS.map(([kind, words]) => {
      const docs = run.docs.filter((found) => found.kind === kind);
      return docs.length ? h("optgroup", { label: words }, docs.map(
        (found) => h("option", { value: String(found.index) }, found.title))) : null;
    });
    const pane = { doc: null, editor: null };
    pane.select = h("select", { class: "text", "aria-label": `text of pane ${panes.length + 1}`, onchange: (event) => {
      show(pane, run.docs[Number(event.target.value)], 0);
      if (chosen) follow(pane, false);
      moved();
    } }, options);
    pane.note = h("span", { class: "tag" });
    pane.count = h("span", { class: "soft count" });
    pane.folds = h("span", { class: "folds" },
      h("button", { type: "button", title: "fold repeated modules", onclick: () => pane.editor.foldModules(true) }, "fold"),
      h("button", { type: "button", title: "open all modules", onclick: () => pane.editor.foldModules(false) }, "open"));
    // In the order in which they are called; its definition is shown, or its call where it has none (a library's).
    pane.kernels = h("select", { class: "kernels", "aria-label": "go to kernel", onchange: () => {
      const [, , defined, , call] = pane.doc.calls[Number(pane.kernels.value)] ?? [];
      pane.kernels.value = "";
      if (!call) return;
      pin(pane, defined || call);
      pane.editor.reveal(defined || call, "start");
    } });
    const close = h("button", { type: "button", class: "close", "aria-label": "close this pane", onclick: () => {
      if (panes.length === 1) return;
      panes.splice(panes.indexOf(pane), 1);
      pane.editor.destroy();
      pane.element.remove();
      body.style.setProperty("--panes", panes.length);
      moved();
    } }, "\u00d7");
    pane.element = h("div", { class: "pane" },
      h("div", { class: "head" }, pane.select, pane.note, pane.folds, pane.kernels, pane.count,
        h("button", { type: "button", title: "search (/)", onclick: () => pane.editor.find() }, "find"), close));
    panes.push(pane);
    body.append(pane.element);
    body.style.setProperty("--panes", panes.length);
    show(pane, doc ?? firstPanes(run)[0] ?? run.docs[0], line);
    return pane;
  }

  const wanted = (state.panes ?? []).map(({ key, line }) => [run.byKey.get(key), line]).filter(([doc]) => doc);
  const first = wanted.length ? [] : firstPanes(run);
  const begin = firstOperation(run, first);
  const docs = wanted.length ? wanted : first.map((doc) => [doc, doc === begin?.[0] ? begin[1] : 0]);
  if (!docs.length) return h("section", { class: "view" }, h("p", { class: "empty" }, "There is no text in this run."));
  // All panes are made before the view is in the document: it is laid out once, and not once more for each of them.
  // Each is a step of its own, so that they can be made ahead while nothing else is to be done.
  let begun = null;
  view.steps = docs.map(([doc, line]) => () => {
    const pane = add(doc, line);
    if (!begun && line > 0 && line <= run.lines(doc).length) begun = [pane, line];
  });
  view.ready = () => {
    if (begun) requestAnimationFrame(() => (begin ? align(...begun) : pin(...begun)));
    else tell();
  };
  // The view is kept while others are looked at: the way back takes no time, and leads to where the reader was.
  view.leave = () => panes.forEach((pane) => pane.editor.rest());
  view.back = () => panes.forEach((pane) => pane.editor.wake());
  view.destroy = () => panes.forEach((pane) => pane.editor.destroy());
  return view;
}

/** What the first sight of a run takes, as steps: made while the reader looks at something else. */
export function prepare(run) {
  const docs = firstPanes(run);
  return [...docs.map((doc) => () => run.lines(doc)), ...docs.map((doc) => () => run.index(doc)),
          ...docs.filter((doc) => doc.kind === "graph").map((doc) => () => run.spans(doc)), () => run.colour(0)];
}
