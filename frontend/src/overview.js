// What happened, function by function: from the original to what runs, breaks and recompiles, time.

import { sourceOf } from "./side.js";
import { code, count, h, outside, pieces, prose, seconds, short } from "./dom.js";

export function overview(run, state, app) {
  const summary = run.summary;
  const view = h("section", { class: "view overview", "aria-label": "Overview" }, h("div", { class: "column" },
    verdict(run), head(run, summary), first(run),
    run.units.length ? h("section", { id: "functions" }, h("h2", {}, "Functions"),
                         run.units.map((unit) => flow(run, unit, app))) : null,
    withoutFunction(run, app),
    breaks(run, app), recompiles(run, app), lost(run, app), shapes(run, app), timeline(run), cost(run), notes(run)));
  view.ready = () => {
    if (state.to) view.querySelector(`#${CSS.escape(state.to)}`)?.scrollIntoView();
  };
  return view;
}

export function placeLink(run, app, id) {
  const place = run.place(id);
  if (!place) return null;
  if (place.file.doc < 0) return code(place.name, { title: place.file.path });
  return h("a", { class: "place", title: place.file.path,
                  href: app.link("source", { key: run.docs[place.file.doc].key, line: place.line }) }, place.name);
}

/** What the program asked for and did not get comes before all that it got. */
function verdict(run) {
  if (!run.verdict?.length) return null;
  return h("section", { class: "card bad verdict", "aria-label": "what was not compiled" },
    run.verdict.map((sentence) => h("p", {}, pieces(sentence))));
}

/** The places where a change saves most, of a run with more than a few. */
function first(run) {
  if (!run.first?.length) return null;
  return h("section", { class: "card first", "aria-label": "where to begin" },
    h("h2", {}, "Where to begin"),
    h("ol", {}, run.first.map((text) => h("li", {}, pieces(text)))));
}

function head(run, summary) {
  // (A file that torch saved does not say how its versions came to be.)
  const facts = summary.saved
    ? [[summary.functions, "function"], [summary.versions, "version"], [run.graphs.length, "graph"]].filter(([number]) => number)
    : [[summary.functions, "function"], [summary.versions, "version"], [summary.graphs, "graph"],
       [summary.breaks, "graph break", "breaks"], [summary.recompiles, "recompile", "recompiles"]];
  const direct = run.graphs.filter((graph) => graph.from).length;
  if (direct && !summary.saved) facts.push([direct, "graph without a function", "", "graphs without a function"]);
  const bad = [[summary.limit, "at the recompile limit"], [summary.failed, "failed"], [summary.skipped, "skipped"],
               [summary.unknown, "not finished"]].filter(([number]) => number);
  if (!run.compilations.length && !run.units.length && !run.graphs.length) {
    return h("p", { class: "empty" }, "Nothing was compiled: no function under torch.compile was called.");
  }
  return h("ul", { class: "facts", "aria-label": "in all" },
    facts.map(([number, word, to, many]) => h("li", { class: to && number ? "bad" : null },
      h("b", {}, String(number)), " ", number === 1 ? word : many ?? `${word}s`)),
    bad.map(([number, words]) => h("li", { class: "bad" }, h("b", {}, String(number)), " ", words)),
    (summary.saved || run.units.some((unit) => unit.open.length)) && !summary.seconds ? null
      : h("li", {}, h("b", {}, seconds(summary.seconds)), " compiling"));
}

// --- the flow of a function -------------------------------------------------------------------------
function flow(run, unit, app) {
  const frames = new Map(unit.frames.map((frame) => [frame.name, frame]));
  const shown = new Set();
  const body = unit.frames.length ? frameFlow(run, unit.frames[0], frames, shown, app) : null;
  const rest = unit.frames.filter((frame) => !shown.has(frame.name));
  return h("article", { class: "unit" },
    h("h3", {}, code(unit.title), " ", placeLink(run, app, unit.place),
      h("span", { class: "soft" }, ` ${count(unit.versions, "version")}, ${count(unit.graphs, "graph")}` +
        (run.summary.saved ? "" : `, ${count(unit.breaks, "break")}, ${count(unit.recompiles, "recompile")}`) +
        ((run.summary.saved || unit.open.length) && !unit.seconds ? "" : `, ${seconds(unit.seconds)}`))),
    unit.wrappers?.length ? h("p", { class: "soft" }, `called through ${count(unit.wrappers.length, "wrapper")}: `, unit.wrappers.map(
      ([place, name], index) => [index ? ", " : "", code(name), " ", placeLink(run, app, place)])) : null,
    body, rest.map((frame) => frameFlow(run, frame, frames, shown, app)),
    unit.open.map(([number, words]) => h("div", { class: "row" }, h("span", { class: "soft" }, `${words} `),
      arrow(), graphChip(run, run.graphs[number], app))),
    unit.lost.length ? h("p", { class: "broke" }, h("span", { class: "sign break" }, "\u2716"),
      h("a", { href: app.link("overview", { to: "lost" }) }, "not compiled"), ": ", unit.lost.slice(0, 8).map(
        ([id, outcome], index) => [index ? ", " : "", code(id), ` ${LOST[outcome] ?? outcome}`]),
      unit.lost.length > 8 ? ` and ${unit.lost.length - 8} more` : "") : null);
}

/** Graphs that no version calls: a compiler was called directly. */
function withoutFunction(run, app) {
  const graphs = run.graphs.filter((graph) => graph.from);
  if (!graphs.length) return null;
  return h("section", { id: "without" }, h("h2", {}, !run.summary.saved ? "Without a function" : run.units.length ? "Other graphs in the file" : "In the file"), graphs.map((graph) => h("article", { class: "unit" },
    h("h3", {}, code(graph.name), h("span", { class: "soft" }, " ", pieces(graph.from[0]), run.place(graph.from[1]) ? " at " : ""), placeLink(run, app, graph.from[1])),
    h("div", { class: "frame" }, h("div", { class: "row" }, graphChip(run, graph, app))))));
}

function chip(kind, label, text, href, title) {
  return h(href ? "a" : "span", { class: `chip ${kind}`, href, title },
           h("span", { class: "kind" }, label), text === "" ? null : h("span", {}, text));
}

function arrow() {
  return h("span", { class: "arrow", "aria-hidden": "true" }, "\u2192");
}

function frameFlow(run, frame, frames, shown, app) {
  shown.add(frame.name);
  const place = run.place(frame.place);
  const document = frame.original >= 0 ? run.docs[frame.original] : null;
  const href = document ? app.link("side", { panes: [{ key: document.key, line: 1 }] })
    : place && place.file.doc >= 0
      ? app.link("source", { key: run.docs[place.file.doc].key, line: place.line }) : null;
  const label = frame.resumes ? `continues at line ${frame.resumes}` : "original";
  return h("div", { class: "frame" },
    h("div", { class: "row first" }, chip("original", label, frame.title, href), branch(frame.branch), frame.entries.length > 1
      ? h("span", { class: "soft time" }, `${frame.entries.length} versions; torch begins with the one that was used last`) : null),
    h("ol", { class: "entries" }, frame.entries.map((entry) => entryFlow(run, entry, frames, shown, app)),
      frame.entries.length ? null : h("li", { class: "row soft" }, FATES[frame.fate] ?? FATES.unknown)));
}

/** Which branch a resume function continues. */
function branch(known) {
  return known ? h("span", { class: "soft" }, " where ", code(known[0]), known[1] ? " is true" : " is false") : null;
}

const FATES = { __proto__: null, unreached: "not reached in this run", plain: "runs in plain Python", failed: "was not compiled", unknown: "no compiled version" };

function entryFlow(run, entry, frames, shown, app) {
  const guards = run.docs[entry.guardsDoc];
  const compilation = run.compilationsById.get(entry.id);
  const row = [h("span", { class: "id", title: "torch's compile id: frame / recompile" }, entry.id),
               compilation && !run.summary.saved ? h("span", { class: "soft time" }, seconds(compilation.seconds)) : null, chip("guards", "guards", String(entry.guards), app.link("guards", { id: entry.id }),
                    `${guards.title}: they decide whether this version is used`)];
  if (entry.transformed >= 0) {
    const doc = run.docs[entry.transformed];
    row.push(arrow(), chip("transformed", "transformed code", entry.fidelity,
                           app.link("side", { panes: [{ key: doc.key, line: 0 }, ...graphPane(run, entry)] }), doc.note));
  }
  for (const number of entry.graphs) row.push(arrow(), graphChip(run, run.graphs[number], app));
  if (!entry.graphs.length) row.push(arrow(), h("span", { class: "soft" }, run.summary.saved ? "its graph is not in the file" : "no graph"));
  const broken = run.breaks.flatMap((reason) => reason.places.filter((at) => at.ids.includes(entry.id)).map(
    (at) => [reason, at]));
  const resumes = entry.resumes.map((name) => frames.get(name)).filter(Boolean);
  const again = resumes.filter((frame) => shown.has(frame.name));
  const fresh = resumes.filter((frame) => !shown.has(frame.name));
  return h("li", {}, h("div", { class: "row" }, row),
    compilation?.again ? h("p", { class: "why soft" }, "compiled again: ", changed(run, entry.id)) : null,
    broken.map(([reason, at]) => h("p", { class: "broke" }, h("span", { class: "sign break" }, "\u2716"),
      h("a", { href: app.link("overview", { to: "breaks" }) }, "graph break"), " at ", placeLink(run, app, at.place), ": ",
      prose(reason.title))),
    resumes.length ? h("div", { class: "resumes" }, again.length ? h("p", { class: "soft" }, "continues in ", again.map((frame, index) => [
      index ? ", " : "", code(frame.name)]), ", shown above") : null, fresh.map((frame) => frameFlow(run, frame, frames, shown, app))) : null);
}

function graphPane(run, entry) {
  const graph = run.graphs[entry.graphs[0]];
  return graph?.stages.length ? [{ key: run.docs[graph.stages[0]].key, line: 0 }] : [];
}

/** What was other than the versions expect: argument, from, to. */
function changed(run, id) {
  for (const group of run.recompiles) {
    const row = group.rows.find((found) => found.id === id);
    if (row?.text.length) return pieces(row.text);
  }
  return "no compiled version matched a call";
}

function graphChip(run, graph, app) {
  const captured = run.docs[graph.stages[0]];
  const source = sourceOf(run, graph);
  const left = source ? [{ key: source.key, line: 0 }] : [];
  const others = [...graph.stages.slice(1), ...graph.kernels].map((id) => run.docs[id]);
  const link = (doc) => h("a", { title: doc.title, href: app.link("side", { panes: [...left, { key: captured.key, line: 0 },
                                                                                 { key: doc.key, line: 0 }] }) },
    doc.kind === "kernel" ? count(doc.calls.length, "kernel call") : doc.stage.replace(/,? ?(forward|backward) ?/, "") || "graph");
  const groups = ["", "forward", "backward"].map((direction) => [direction, others.filter((doc) => doc.direction === direction)]);
  return h("span", { class: "chip graph" },
    captured ? h("a", { class: "kind", href: app.link("side", { panes: [...left, { key: captured.key, line: 0 }] }) },
                 graph.name) : h("span", { class: "kind" }, graph.name),
    captured?.inputs.some(Boolean) ? h("a", { href: app.link("graph", { key: captured.key }), title: "outline" }, count(captured.inputs[1], "operation")) : null,
    groups.map(([direction, docs]) => (docs.length ? h("span", { class: "direction" },
      direction ? h("b", {}, `${direction}:`) : null, docs.map((doc) => [" ", link(doc)])) : null)));
}

// --- breaks -----------------------------------------------------------------------------------------
function breaks(run, app) {
  if (!run.breaks.length) return null;
  return h("section", { id: "breaks" }, h("h2", {}, "Graph breaks"),
    run.breaks.map((reason) => h("article", { class: "card bad" },
      h("h3", {}, prose(reason.title), " ", reason.id ? h("span", { class: "tag" }, outside(reason.url, reason.id)) : null,
        reason.times > 1 ? h("span", { class: "soft" }, ` ${reason.times} times`) : null),
      reason.explanation ? h("p", {}, prose(reason.explanation.split("\n")[0])) : null,
      h("ul", {}, reason.places.slice(0, 12).map((at) => h("li", {},
        placeLink(run, app, at.place) ?? "a place that torch does not name", at.function ? [" in ", code(at.function)] : null,
        at.text ? [": ", code(at.text)] : null, at.times > 1 ? `, ${at.times} times` : "",
        at.path.length ? h("div", { class: "soft" }, "reached from ", at.path.map(([place, name], index) => [
          index ? " \u203a " : "", placeLink(run, app, place), " ", code(name)])) : null,
        h("div", { class: "soft" }, at.skips ? ["all of ", code(at.of), " runs in plain Python"]
          : at.resumes.length ? ["continues in ", at.resumes.slice(0, 4).map(([name, known], index) => [index ? ", " : "", resume(run, name, app), branch(known)]),
            at.resumes.length > 4 ? ` and ${at.resumes.length - 4} more` : ""]
            : "nothing is left to compile after it"),
        at.advice.length ? h("div", { class: "fix" }, h("ul", {}, at.advice.map((text) => h("li", {}, pieces(text))))) : null)),
      reason.places.length > 12 ? h("li", {}, `and ${reason.places.length - 12} more places`) : null),
      reason.hints.length ? h("div", { class: "fix" }, h("h4", {}, "Torch's advice"),
        h("ul", {}, reason.hints.map((hint) => h("li", {}, prose(hint))))) : null)));
}

function resume(run, name, app) {
  const doc = run.definition(name);
  return doc ? h("a", { href: app.link("side", { panes: [{ key: doc.key, line: 0 }] }) }, code(name)) : code(name);
}

// --- recompiles -------------------------------------------------------------------------------------
const MOST = 12;

function recompiles(run, app) {
  if (!run.recompiles.length) return null;
  return h("section", { id: "recompiles" }, h("h2", {}, "Recompiles"),
    h("p", { class: "soft" }, "No compiled version matched a call, so torch compiled another one. Each row says what changed: from \u2192 to."),
    run.recompiles.map((group) => h("article", { class: "card warn" },
      h("h3", {}, code(group.subject), h("span", { class: "soft" }, ` ${count(group.rows.length, "recompile")}`)),
      h("ul", { class: "events" }, group.rows.slice(0, MOST).map((row) => recompile(run, group, row, app)),
        group.rows.length > MOST ? h("li", {}, `and ${group.rows.length - MOST} more`) : null),
      group.advice.length ? h("div", { class: "fix" }, h("h4", {}, "Advice"),
        h("ul", {}, group.advice.map((text) => h("li", {}, pieces(text))))) : null)));
}

function recompile(run, group, row, app) {
  const causes = row.failures.flatMap((found) => found.causes);
  return h("li", {}, h("span", { class: "id" }, row.id), " ", row.text.length ? pieces(row.text) : "no compiled version matched",
    row.of === group.subject ? null : h("span", { class: "soft" }, " in ", code(row.of)),
    causes.length ? h("div", { class: "soft" }, "torch guards it because of ", causes.slice(0, 2).map(([place, text], index) => [
      index ? ", " : "", placeLink(run, app, place), text ? [" ", code(text)] : null])) : null,
    h("details", { class: "soft" }, h("summary", {}, "torch's words"), h("ul", {}, row.failures.map((found) => h("li", {},
      found.entries.map((id, index) => [index ? ", " : "", h("a", { href: app.link("guards", { id }) }, id)]),
      found.entries.length ? ": " : "", found.texts.map((text, index) => [index ? "; " : "", code(text)]))))));
}

// --- what was not compiled ----------------------------------------------------------------------------
const LOST = { __proto__: null, limit: "recompile limit", skipped: "skipped", failed: "failed",
               unknown: "the end of its compilation was not seen" };

function lost(run, app) {
  if (!run.lost.length) return null;
  return h("section", { id: "lost" }, h("h2", {}, "Not compiled"), run.lost.map((found) => h("article", { class: "card bad" },
    h("h3", {}, code(found.subject), " ", placeLink(run, app, found.place),
      h("span", { class: "soft" }, ` ${found.ids.slice(0, 4).join(", ")}${found.ids.length > 4 ? ", \u2026" : ""}, ${LOST[found.outcome] ?? found.outcome}`)),
    found.text.length ? h("p", {}, h("b", {}, pieces(found.text), ".")) : null,
    found.at >= 0 ? h("p", {}, "at ", placeLink(run, app, found.at)) : null,
    found.why.length ? h("p", {}, pieces(found.why), found.broke ? [" ", h("a", { href: app.link("overview", { to: "breaks" }) },
      "Graph breaks"), " has torch's words and advice."] : null) : null,
    found.rows.length ? h("ul", {}, found.rows.map((row) => h("li", {}, pieces(row)))) : null,
    found.hints.length ? h("div", { class: "fix" }, h("h4", {}, "How to fix it"),
      h("ul", {}, found.hints.map((hint) => h("li", {}, pieces(hint))))) : null)));
}

// --- shapes -------------------------------------------------------------------------------------------
function shapes(run, app) {
  if (!run.symbols.length) return null;
  const words = {
    __proto__: null, // (kinds come from the records)
    created: (found) => [code(found.source || "a value"), " (torch's ", code(found.symbol), "): ", pieces(found.range),
                         found.value ? [", first seen as ", code(found.value)] : null],
    unbacked: (found) => [code(found.symbol), " is unknown while torch compiles"],
    fixed: (found) => [h("b", {}, "fixed: "), found.source ? [code(found.source), " (torch's ", code(found.symbol), ")"] : code(found.symbol), " is ", code(found.value), " only",
                       found.reason ? [", because of ", code(short(found.reason, 120))] : null],
    guarded: (found) => ["condition ", code(found.symbol)],
  };
  const shown = run.symbols.slice(0, 60);
  return h("section", { id: "shapes" }, h("h2", {}, "Dynamic shapes"), h("ul", { class: "card" }, shown.map((found) => h("li", {},
    h("span", { class: "id" }, found.ids.slice(0, 3).join(" ") + (found.ids.length > 3 ? " \u2026" : "")), " ", (words[found.kind] ?? words.guarded)(found), " ",
    placeLink(run, app, found.place)))),
  run.symbols.length > 60 ? h("p", { class: "soft" }, `and ${run.symbols.length - 60} more (records.jsonl has all)`) : null);
}

// --- time ---------------------------------------------------------------------------------------------
function bar(element, left, width) {
  element.style.marginLeft = `${left}%`;
  element.style.width = `${Math.max(width, 0.4)}%`;
  return element;
}

function timeline(run) {
  const known = run.compilations.filter((found) => found.start > 0);
  if (!known.length) return null;
  const begin = Math.min(...known.map((found) => found.start));
  const end = Math.max(...known.map((found) => found.start + found.seconds));
  const whole = Math.max(end - begin, 1e-6);
  const shown = known.slice(0, 200);
  return h("section", { id: "timeline" }, h("h2", {}, "Timeline"),
    h("p", { class: "soft" }, `${seconds(whole)} from the first compilation to the end of the last. A bar counts its backward too.`),
    h("ol", { class: "timeline" }, shown.map((found) => h("li", {},
      h("span", { class: "who", title: `${found.id} ${found.subject}` }, h("span", { class: "id" }, found.id), " ", code(found.subject)),
      h("span", { class: "track" }, bar(h("span", { class: `mark ${found.outcome === "compiled" ? (found.again ? "again" : "done") : "not"}` }),
        (100 * (found.start - begin)) / whole, (100 * found.seconds) / whole)),
      h("span", { class: "much" }, `${seconds(found.seconds)}`,
        h("span", { class: "soft" }, found.outcome === "compiled" ? (found.again ? " again" : "") : ` ${found.outcome}`,
          found.broke ? " break" : ""))))),
    known.length > 200 ? h("p", { class: "soft" }, `and ${known.length - 200} more`) : null);
}

function cost(run) {
  if (!run.phases.length) return null;
  const most = Math.max(...run.phases.map(([, value]) => value), 1e-9);
  return h("section", { id: "cost" }, h("h2", {}, "Time by part of torch"),
    h("p", { class: "soft" }, "Inner parts count in outer ones."),
    h("ol", { class: "timeline phases" }, run.phases.map(([name, value]) => h("li", {}, h("span", { class: "who" }, name),
      h("span", { class: "track" }, bar(h("span", { class: "mark done" }), 0, (100 * value) / most)),
      h("span", { class: "much" }, seconds(value))))),
    run.caches.length ? h("p", {}, "Torch's caches: ", run.caches.slice(0, 12).map(([cache, outcome, reason, times], index) => [
      index ? ", " : "", code(cache), ` ${outcome}${times > 1 ? ` ${times} times` : ""}`, reason ? [" (", short(reason, 160), ")"] : ""])) : null);
}

function notes(run) {
  if (!run.notes.length) return null;
  return h("section", { id: "notes" }, h("h2", {}, "Notes"), h("ul", {}, run.notes.slice(0, 40).map((note) => h("li", {}, prose(note)))));
}
