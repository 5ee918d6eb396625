// The data of a page (see src/depyf/views/page/data.py for its terms) with what ties it together, made when asked for.

const NODE = 5; // numbers of a node: line, place, captured, module, is a call

/** The data of the page: its head. Each run has a part of its own, which `open` unpacks when it is first looked at. */
export async function read() {
  const parts = [...document.querySelectorAll("script.part")];
  const data = await unpacked(document.getElementById("data"));
  const opened = new Map();
  const open = (number) => {
    if (!opened.has(number)) {
      opened.set(number, unpacked(parts[number]).then((raw) => (data.runs[number] = new Run({ ...data.runs[number], ...raw }))));
    }
    return opened.get(number);
  };
  return Object.assign(data, { open, heads: [...data.runs] });
}

async function unpacked(element) {
  const held = JSON.parse(element.textContent);
  element.remove();
  const bytes = Uint8Array.from(atob(held.data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(held.encoding));
  return JSON.parse(await new Response(stream).text());
}

function put(map, key, value) {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else if (list[list.length - 1] !== value) list.push(value);
}

export class Run {
  constructor(raw) {
    Object.assign(this, raw);
    this.docs.forEach((doc, index) => {
      doc.index = index;
      doc.key = doc.key.replace(/[\ud800-\udfff]/gu, "\ufffd"); // an address cannot hold half a letter
    });
    this.byKey = new Map(this.docs.map((doc) => [doc.key, doc]));
    this.placeIds = new Map();
    for (let id = 0; id < this.places.length / 2; id++) {
      this.placeIds.set(this.places[2 * id] + ":" + this.places[2 * id + 1], id);
    }
    this.compilationsById = new Map(this.compilations.map((found) => [found.id, found]));
    this.frames = new Map();
    this.entries = new Map();
    for (const unit of this.units) {
      for (const frame of unit.frames) {
        if (!this.frames.has(frame.name)) this.frames.set(frame.name, frame);
        for (const entry of frame.entries) this.entries.set(entry.id, { frame, entry, unit });
      }
    }
    this.graphByName = new Map(this.graphs.map((graph, index) => [graph.name, index]));
    this._lines = new Map();
    this._colours = null;
  }

  // --- places ---
  place(id) {
    if (!(id >= 0)) return null;
    const file = this.files[this.places[2 * id]];
    return { id, file, line: this.places[2 * id + 1], name: `${file.short}:${this.places[2 * id + 1]}` };
  }

  placeAt(file, line) {
    return this.placeIds.get(file + ":" + line) ?? -1;
  }

  lines(doc) {
    return (doc.split ??= doc.text.split("\n"));
  }

  textOf(id) {
    const place = this.place(id);
    const doc = place && this.docs[place.file.doc];
    return doc ? (this.lines(doc)[place.line - 1] ?? "").trim() : "";
  }

  /** 0 to 7, or -1: neighbouring lines that went into a graph differ. */
  colour(place) {
    if (!this._colours) {
      this._colours = new Map();
      const used = new Set();
      for (const doc of this.docs) {
        if (doc.kind !== "graph") continue;
        for (let at = 0; at < doc.nodes.length; at += NODE) if (doc.nodes[at + 1] >= 0) used.add(doc.nodes[at + 1]);
      }
      const key = (id) => this.places[2 * id] * 1e7 + this.places[2 * id + 1];
      [...used].sort((a, b) => key(a) - key(b)).forEach((id, index) => this._colours.set(id, index % 8));
    }
    return this._colours.get(place) ?? -1;
  }

  // --- what a line is tied to ---
  /** Of a document: for each line its nodes and places, and back. */
  index(doc) {
    const known = this._lines.get(doc.index);
    if (known) return known;
    const found = { nodes: new Map(), places: new Map(), byPlace: new Map(), byCaptured: new Map(), graphs: new Map(),
                    calls: new Map() };
    const tie = (line, place) => {
      put(found.places, line, place);
      put(found.byPlace, place, line);
    };
    if (doc.kind === "source") {
      for (let id = 0; id < this.places.length / 2; id++) {
        if (this.places[2 * id] === doc.file) tie(this.places[2 * id + 1], id);
      }
    } else if (doc.kind === "graph") {
      for (let at = 0, node = 0; at < doc.nodes.length; at += NODE, node++) {
        const [line, place, captured, , call] = doc.nodes.slice(at, at + NODE);
        if (line <= 0) continue;
        put(found.nodes, line, node);
        if (place >= 0 && call) tie(line, place);
        if (captured >= 0) put(found.byCaptured, captured, line);
      }
    } else if (doc.kind === "kernel") {
      const stage = this.docs[doc.stage];
      doc.calls.forEach(([, , first, last, call, nodes], number) => {
        const lines = [call];
        for (let line = first; first > 0 && line <= last; line++) lines.push(line);
        for (const line of lines) {
          put(found.calls, line, number);
          for (const node of stage ? nodes : []) {
            const place = stage.nodes[node * NODE + 1];
            const captured = stage.nodes[node * NODE + 2];
            if (place >= 0) tie(line, place);
            if (captured >= 0) put(found.byCaptured, captured, line);
          }
        }
      });
    } else {
      for (let at = 0; at < (doc.links ?? []).length; at += 3) {
        for (let line = doc.links[at]; line <= doc.links[at + 1]; line++) tie(line, doc.links[at + 2]);
      }
      if (doc.kind === "transformed") {
        this.lines(doc).forEach((text, at) => {
          for (const [name] of text.matchAll(/__compiled_fn_\w+/g)) {
            const graph = this.graphByName.get(name);
            if (graph !== undefined) put(found.graphs, at + 1, graph);
          }
        });
      }
    }
    this._lines.set(doc.index, found);
    return found;
  }

  /** What a line of a document stands for: `{places, graph, captured, stage, nodes, graphs}`. */
  selection(doc, line) {
    const index = this.index(doc);
    const found = { doc, line, places: new Set(index.places.get(line) ?? []), graph: -1, captured: null, stage: -1,
                    nodes: null, graphs: new Set(index.graphs.get(line) ?? []) };
    const stage = doc.kind === "kernel" ? this.docs[doc.stage] : doc.kind === "graph" ? doc : null;
    if (stage) {
      const nodes = doc.kind === "kernel"
        ? (index.calls.get(line) ?? []).flatMap((call) => doc.calls[call][5]) : index.nodes.get(line) ?? [];
      found.stage = stage.index;
      found.graph = doc.graph;
      found.nodes = new Set(nodes);
      found.captured = new Set(nodes.map((node) => stage.nodes[node * NODE + 2]).filter((id) => id >= 0));
      for (const node of nodes) {
        if (stage.nodes[node * NODE + 1] >= 0) found.places.add(stage.nodes[node * NODE + 1]);
      }
    }
    for (const graph of found.graphs) for (const place of this.placesOfGraph(graph)) found.places.add(place);
    return found;
  }

  placesOfGraph(graph) {
    const captured = this.graphs[graph].stages.map((id) => this.docs[id]).find((doc) => doc.captured)
      ?? this.docs[this.graphs[graph].stages[0]];
    return captured ? [...this.index(captured).byPlace.keys()] : [];
  }

  /** Lines of a document that a selection leads to: the same nodes, and others of the same lines of the user's. */
  linked(doc, selection) {
    const index = this.index(doc);
    const exact = new Set();
    const same = new Set();
    for (const place of selection.places) for (const line of index.byPlace.get(place) ?? []) same.add(line);
    if (doc.graph !== undefined && doc.graph === selection.graph) {
      if (doc.kind === "graph" && doc.index === selection.stage) {
        for (const node of selection.nodes) exact.add(doc.nodes[node * NODE]);
      } else if (doc.kind === "kernel" && doc.stage === selection.stage) {
        doc.calls.forEach(([, , first, last, call, nodes]) => {
          if (!nodes.some((node) => selection.nodes.has(node))) return;
          exact.add(call);
          for (let line = first; first > 0 && line <= last; line++) exact.add(line);
        });
      } else {
        for (const id of selection.captured) for (const line of index.byCaptured.get(id) ?? []) exact.add(line);
      }
    }
    if (doc.kind === "transformed") {
      const graphs = new Set(selection.graphs);
      if (selection.graph >= 0 && selection.captured?.size) graphs.add(selection.graph);
      if (selection.doc.kind === "source") for (const graph of this.graphsOf(selection.places)) graphs.add(graph);
      for (const [line, held] of index.graphs) if (held.some((graph) => graphs.has(graph))) same.add(line);
    }
    if (exact.size) {
      for (const line of exact) same.delete(line);
      return { exact, same };
    }
    return { exact: same, same: new Set() };
  }

  graphsOf(places) {
    const found = new Set();
    this.graphs.forEach((graph, number) => {
      for (const id of graph.stages) {
        const index = this.index(this.docs[id]);
        for (const place of places) if (index.byPlace.has(place)) found.add(number);
      }
    });
    return found;
  }

  /** Where a name of torch's leads: the captured graph, or what goes on behind a break. */
  definition(name) {
    const graph = this.graphByName.get(name);
    if (graph !== undefined) return this.docs[this.graphs[graph].stages[0]] ?? null;
    const frame = this.frames.get(name);
    if (!frame) return null;
    const entry = frame.entries.find((found) => found.transformed >= 0);
    return this.docs[entry ? entry.transformed : frame.original] ?? null;
  }

  /** The first line of a graph or of kernels of which there is something to say; Infinity: none. */
  firstTied(doc) {
    let first = doc.kind === "kernel" || doc.kind === "graph" ? Infinity : 0;
    if (doc.kind === "kernel") for (const [, , defined, , call] of doc.calls) first = Math.min(first, defined || call);
    if (doc.kind === "graph") for (const line of this.index(doc).places.keys()) first = Math.min(first, line);
    return first;
  }

  /** Calls of modules as spans of lines of a graph, outermost first: `{path, cls, first, last, depth, count}`. */
  spans(doc) {
    if (doc.spans) return doc.spans;
    const modules = this.graphs[doc.graph].modules;
    const chain = new Map([[-1, []]]);
    const above = (index) => {
      if (!chain.has(index)) {
        const outer = modules[index][2];
        chain.set(index, [...above(outer < index ? outer : -1), index]);
      }
      return chain.get(index);
    };
    const spans = [];
    let open = [];
    const rows = [];
    for (let at = 0; at < doc.nodes.length; at += NODE) {
      if (doc.nodes[at + 4] && doc.nodes[at] > 0) rows.push([doc.nodes[at], doc.nodes[at + 3]]);
    }
    rows.sort((a, b) => a[0] - b[0]);
    for (const [line, module] of rows) {
      const path = above(module);
      let same = 0;
      while (same < open.length && same < path.length && open[same].module === path[same]) same++;
      open = open.slice(0, same);
      for (const index of path.slice(same)) {
        const span = { module: index, path: modules[index][0] || "the module", cls: modules[index][1], first: line,
                       last: line, depth: open.length, count: 0 };
        spans.push(span);
        open.push(span);
      }
      for (const span of open) {
        span.last = line;
        span.count++;
      }
    }
    return (doc.spans = spans);
  }
}
