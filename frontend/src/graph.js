// A graph by module, with shapes and dtypes; repeated layers are told once.

import { count, h } from "./dom.js";
import { sourceOf } from "./side.js";

export function graph(run, state, app) {
  const docs = run.docs.filter((doc) => doc.kind === "graph");
  if (!docs.length) return h("section", { class: "view" }, h("p", { class: "empty" }, "There are no graphs."));
  const doc = run.byKey.get(state.key)?.kind === "graph" ? run.byKey.get(state.key) : docs[0];
  const [inputs, operations, results] = doc.inputs;
  const tree = h("div", { class: "tree outline" });
  const from = sourceOf(run, run.graphs[doc.graph]);
  const left = from ? [{ key: from.key, line: 0 }] : [];

  function build(text) {
    const wanted = doc.outline.map(([, words]) => !text || words.toLowerCase().includes(text));
    if (text) { // what stands above a hit stays
      const above = [];
      doc.outline.forEach(([depth], at) => {
        above.length = depth;
        above[depth] = at;
        if (wanted[at]) for (const other of above) if (other !== undefined) wanted[other] = true;
      });
    }
    const stack = [{ depth: -1, element: tree }];
    tree.replaceChildren();
    doc.outline.forEach(([depth, words, line], at) => {
      if (!wanted[at] || !words) return;
      while (stack[stack.length - 1].depth >= depth) stack.pop();
      const isModule = (doc.outline[at + 1]?.[0] ?? -1) > depth;
      const link = line ? h("a", { class: "line", href: app.link("side", { panes: [...left, { key: doc.key, line }] }),
                                   "aria-label": `line ${line} of the graph` }, String(line)) : null;
      const parts = words.match(/^(.*?)( {2,}.*)$/);
      const label = parts ? [h("span", { class: "what" }, parts[1]), h("span", { class: "types" }, parts[2])] : [
        h("span", { class: "what" }, words)];
      if (!isModule) {
        const isLike = /, like /.test(words);
        stack[stack.length - 1].element.append(h("div", { class: isLike ? "leaf like" : "leaf" }, link, label));
        return;
      }
      const element = h("details", { open: Boolean(text) || depth < 2 }, h("summary", {}, label));
      stack[stack.length - 1].element.append(h("div", { class: "item" }, link, element));
      stack.push({ depth, element });
    });
    if (!tree.childNodes.length) tree.append(h("p", { class: "empty" }, text ? "Nothing fits." : "This graph has no operations."));
  }

  const filter = h("input", { type: "search", placeholder: "module, operation, shape", "aria-label": "filter the outline",
                              oninput: () => build(filter.value.toLowerCase()) });
  const all = (open) => () => tree.querySelectorAll("details").forEach((element) => { element.open = open; });
  const view = h("section", { class: "view graph", "aria-label": "Graph" },
    h("div", { class: "bar" },
      h("label", {}, "graph ", h("select", { onchange: (event) => app.go("graph", { key: event.target.value }) },
        run.graphs.map((found) => h("optgroup", { label: [`${found.name} ${found.id}`.trim(), found.backend].filter(Boolean).join(", ") }, found.stages.map((id) =>
          h("option", { value: run.docs[id].key, selected: run.docs[id] === doc }, run.docs[id].title)))))),
      filter,
      h("button", { type: "button", onclick: all(true) }, "open all"), h("button", { type: "button", onclick: all(false) }, "close all"),
      h("a", { href: app.link("side", { panes: [...left, { key: doc.key, line: 0 }] }) }, "text"),
      h("span", { class: "soft" }, `${count(operations, "operation")} on ${count(inputs, "input")}, ${count(results, "result")}`)),
    h("div", { class: "column wide" },
      doc.captured ? null : h("p", { class: "soft" }, "Torch's print of this graph names user lines only: modules are inferred from them and from the order."),
      tree));
  view.ready = () => build("");
  return view;
}
