// Ranks beside each other, those that did the same as one; where they differ is marked.

import { code, count, h, pieces, seconds } from "./dom.js";

export function ranks(data, state, app) {
  const rows = [
    ["functions", (run) => run.summary.functions], ["versions", (run) => run.summary.versions],
    ["graphs", (run) => run.summary.graphs], ["graph breaks", (run) => run.summary.breaks],
    ["recompiles", (run) => run.summary.recompiles],
    ["not compiled", (run) => run.summary.limit + run.summary.failed + run.summary.skipped + run.summary.unknown]];
  const heads = data.heads;
  const titles = [...new Set(heads.flatMap((run) => run.units.map((unit) => unit.title)))];
  const differ = (values) => new Set(values.map(String)).size > 1;
  const cells = (values, words = String) => values.map((value) => h("td", {}, words(value)));
  const line = (name, values, words) => h("tr", { class: differ(values) ? "differ" : null },
    h("th", { scope: "row" }, name, differ(values) ? h("span", { class: "tag" }, "differs") : null), cells(values, words));
  const head = h("tr", {}, h("th", { scope: "col" }, ""), heads.map((run, index) => h("th", { scope: "col" },
    h("a", { href: app.link("overview", {}, index) }, run.name || "run"),
    run.ranks > 1 ? h("span", { class: "soft" }, ` ${run.ranks} alike`) : null)));
  const functions = titles.map((title) => {
    const of = (run) => run.units.find((unit) => unit.title === title);
    const facts = ["versions", "graphs", "breaks", "recompiles"];
    return h("tbody", {}, h("tr", {}, h("th", { colspan: String(heads.length + 1), scope: "rowgroup" }, code(title))),
      facts.map((name) => line(name, heads.map((run) => of(run)?.[name] ?? 0))),
      line("breaks at", heads.map((run) => (of(run)?.at ?? []).join("; ")), (text) => text || "none"),
      h("tr", {}, h("th", { scope: "row" }, "time"), heads.map((run) => h("td", {}, seconds(of(run)?.seconds ?? 0)))));
  });
  const all = heads.reduce((sum, run) => sum + (run.ranks ?? 1), 0);
  return h("section", { class: "view ranks", "aria-label": "Ranks" }, h("div", { class: "column wide" },
    h("h2", {}, heads.length < all ? `${count(all, "rank")}, of which ${count(heads.length, "kind")}` : "Ranks side by side"),
    (data.missing ?? []).map((sentence) => h("p", {}, pieces(sentence))),
    data.left_out?.length ? h("p", {}, `Too many differ for one page: ${data.left_out.join(", ")} are in index.md only.`) : null,
    data.differences?.length ? h("ul", { class: "differences" }, data.differences.map((sentence) => h("li", {}, pieces(sentence)))) : null,
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "table of ranks" }, h("table", {}, h("thead", {}, head),
      h("tbody", {},
        heads.some((run) => run.ended === false) ? line("ended", heads.map((run) => run.ended), (ended) => ended ? "yes" : "no") : null,
        rows.map(([name, of]) => line(name, heads.map(of))),
        h("tr", {}, h("th", { scope: "row" }, "time"), heads.map((run) => h("td", {}, run.time ?? seconds(run.summary.seconds))))),
      functions))));
}
