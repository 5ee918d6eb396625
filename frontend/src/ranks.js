// Several ranks beside each other; where they differ is marked.

import { code, h, seconds } from "./dom.js";

export function ranks(data, state, app) {
  const rows = [
    ["functions", (run) => run.summary.functions], ["versions", (run) => run.summary.versions],
    ["graphs", (run) => run.summary.graphs], ["graph breaks", (run) => run.summary.breaks],
    ["recompiles", (run) => run.summary.recompiles],
    ["not compiled", (run) => run.summary.limit + run.summary.failed + run.summary.skipped + run.summary.unknown]];
  const titles = [...new Set(data.runs.flatMap((run) => run.units.map((unit) => unit.title)))];
  const differ = (values) => new Set(values.map(String)).size > 1;
  const cells = (values, words = String) => values.map((value) => h("td", {}, words(value)));
  const line = (name, values, words) => h("tr", { class: differ(values) ? "differ" : null },
    h("th", { scope: "row" }, name, differ(values) ? h("span", { class: "tag" }, "differs") : null), cells(values, words));
  const heads = h("tr", {}, h("th", { scope: "col" }, ""), data.runs.map((run, index) => h("th", { scope: "col" },
    h("a", { href: app.link("overview", {}, index) }, run.name || "run"))));
  const functions = titles.map((title) => {
    const of = (run) => run.units.filter((unit) => unit.title === title);
    const sum = (run, name) => of(run).reduce((all, unit) => all + unit[name], 0);
    const facts = ["versions", "graphs", "breaks", "recompiles"];
    return h("tbody", {}, h("tr", {}, h("th", { colspan: String(data.runs.length + 1), scope: "rowgroup" }, code(title))),
      facts.map((name) => line(name, data.runs.map((run) => sum(run, name)))),
      line("breaks at", data.runs.map((run) => breaksOf(run, title)), (text) => text || "none"),
      h("tr", {}, h("th", { scope: "row" }, "time"), data.runs.map((run) => h("td", {}, seconds(sum(run, "seconds"))))));
  });
  return h("section", { class: "view ranks", "aria-label": "Ranks" }, h("div", { class: "column wide" },
    h("h2", {}, "Ranks side by side"),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "table of ranks" }, h("table", {}, h("thead", {}, heads),
      h("tbody", {}, rows.map(([name, of]) => line(name, data.runs.map(of))),
        h("tr", {}, h("th", { scope: "row" }, "time"), data.runs.map((run) => h("td", {}, seconds(run.summary.seconds))))),
      functions))));
}

function breaksOf(run, title) {
  return run.breaks.flatMap((reason) => reason.places.filter((at) => at.of === title || at.of.startsWith(`${title},`)).map(
    (at) => `${run.place(at.place)?.name ?? "?"} ${reason.title}`)).join("; ");
}
