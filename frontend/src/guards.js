// Guards of a version, as a tree by object; those that failed first.

import { code, count, h, short } from "./dom.js";
import { placeLink } from "./overview.js";

export function guards(run, state, app) {
  if (!run.guards.length) return h("section", { class: "view" }, h("p", { class: "empty" }, "There are no guards."));
  const chosen = run.guards.find((found) => found.id === state.id) ?? run.guards[0];
  const failed = chosen.groups.filter((group) => group[4].length);
  const tree = h("div", { class: "tree" });
  const filter = h("input", { type: "search", placeholder: "object or condition", "aria-label": "filter guards",
                              oninput: () => draw(filter.value.toLowerCase()) });
  const view = h("section", { class: "view guards", "aria-label": "Guards" },
    h("div", { class: "bar" },
      h("label", {}, "version ", h("select", { onchange: (event) => app.go("guards", { id: event.target.value }) },
        run.guards.map((found) => h("option", { value: found.id, selected: found === chosen },
          `${found.id} ${found.frame}: ${count(found.count, "condition")}`)))),
      filter,
      h("a", { href: app.link("side", { panes: [{ key: run.docs[chosen.doc].key, line: 0 }, ...sourcePane(run, chosen)] }) },
        "as Python"),
      h("span", { class: "soft" }, `${count(chosen.count, "condition")} on ${count(chosen.groups.length, "object")}`)),
    h("div", { class: "column" },
      failed.length || chosen.failed.length ? h("article", { class: "card warn" }, h("h2", {}, "Failed at recompiles"),
        h("ul", {}, failed.map((group) => h("li", {},
          group[4].slice(0, 4).map((text, index) => [index ? "; " : "", short(text, 200)]),
          group[4].length > 4 ? `; and ${group[4].length - 4} more` : "", conditions(run, group, app, true))),
          chosen.failed.map((text) => h("li", {}, code(text))))) : null,
      cost(run, chosen, app),
      tree));

  function draw(text) {
    const root = { children: new Map(), groups: [], checks: 0, objects: 0 };
    for (const group of chosen.groups) {
      if (text && !group[0].toLowerCase().includes(text) && !group[5].some(([words]) => words.toLowerCase().includes(text))) continue;
      const checks = group[2] * group[5].length;
      let node = root;
      for (const step of group[1].length ? group[1] : ["global state"]) {
        if (!node.children.has(step)) node.children.set(step, { children: new Map(), groups: [], checks: 0, objects: 0 });
        node = node.children.get(step);
        node.checks += checks;
      }
      node.groups.push(group);
    }
    tree.replaceChildren(...branches(root, Boolean(text), 0));
    if (!root.children.size) tree.append(h("p", { class: "empty" }, "Nothing fits."));
  }

  function branches(node, open, depth) {
    return [...node.children].sort(([a], [b]) => Number(a === "global state") - Number(b === "global state")).map(([step, child]) => {
      let label = step;
      // A way without branches stands on one line.
      while (child.children.size === 1 && !child.groups.length) {
        const [[next, only]] = child.children;
        label += next.startsWith("[") ? next : `.${next}`;
        child = only;
      }
      const bad = child.groups.some((group) => group[4].length);
      return h("details", { open: open || depth < 2 || child.checks <= 6 },
        h("summary", { class: bad ? "bad" : null }, code(label), h("span", { class: "soft" }, ` ${count(child.checks, "condition")}`),
          bad ? [" ", h("span", { class: "tag" }, "failed")] : null),
        child.groups.map((group) => conditions(run, group, app)), branches(child, open, depth + 1));
    });
  }

  view.ready = () => draw("");
  return view;
}

/** What there is to check most of. Torch measures no single guard, only all of a version together. */
function cost(run, chosen, app) {
  const checks = (group) => group[2] * group[5].length;
  const all = chosen.groups.reduce((sum, group) => sum + checks(group), 0);
  const most = [...chosen.groups].sort((a, b) => checks(b) - checks(a)).slice(0, 5);
  if (all < 2) return null;
  return h("article", { class: "card cost" }, h("h2", {}, "Most checks"),
    h("p", { class: "soft" }, `${count(all, "condition")} in all, before each call that this version serves`, chosen.microseconds
      ? `: one look at all of them took torch ${chosen.microseconds} \u00b5s, when they were made` : "", "."),
    h("ol", {}, most.map((group) => h("li", {}, h("b", {}, String(checks(group))), ` (${Math.round(100 * checks(group) / all)} %) on `,
      group[0] ? code(group[0]) : "global state", " ", placeLink(run, app, group[5].find(([, place]) => place >= 0)?.[1] ?? -1)))));
}

/** The conditions of a group, or only those that failed. */
function conditions(run, group, app, failed = false) {
  return h("ul", { class: "conditions" }, group[5].filter(([, , bad]) => bad || !failed).map(([text, place, bad]) => h("li", { class: bad ? "bad" : null },
    bad ? h("span", { class: "sign break", title: "failed" }, "\u2716") : null, code(text), " ", placeLink(run, app, place),
    bad && !failed ? [" ", h("span", { class: "tag" }, "failed")] : null)),
    group[3] && !failed ? h("li", { class: "soft" }, code(group[3]), `: ${group[2]} objects`) : null);
}

function sourcePane(run, chosen) {
  const place = run.place(run.entries.get(chosen.id)?.frame.place ?? -1);
  return place && place.file.doc >= 0 ? [{ key: run.docs[place.file.doc].key, line: 0 }] : [];
}
