// A text in an editor that only reads: rendered where it is seen, searched, folded by module, its lines tied to others.

import { StateEffect, StateField, EditorState, RangeSetBuilder, Text, EditorSelection } from "@codemirror/state";
import {
  EditorView, Decoration, GutterMarker, MatchDecorator, ViewPlugin, WidgetType, gutter, highlightSpecialChars, keymap,
  lineNumbers, scrollPastEnd, drawSelection,
} from "@codemirror/view";
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { search, searchKeymap, openSearchPanel, highlightSelectionMatches } from "@codemirror/search";
import { python } from "@codemirror/legacy-modes/mode/python";
import { cpp } from "@codemirror/legacy-modes/mode/clike";
import { tags } from "@lezer/highlight";
import { h } from "./dom.js";

const NAMES = /__compiled_fn_\w+|__resume_at_\w+/g;
/** Longer graphs begin with their repeated layers folded. */
const LONG = 2000;

// --- languages -------------------------------------------------------------------------------------
/** Inductor's modules: Python, with C++ between r''' and '''. */
const generated = {
  name: "generated",
  startState: (unit) => ({ outer: python.startState(unit), inner: null }),
  copyState: (state) => ({
    outer: copy(python, state.outer), inner: state.inner && copy(cpp, state.inner) }),
  token(stream, state) {
    if (state.inner) {
      if (stream.match("'''")) {
        state.inner = null;
        return "string";
      }
      const kind = cpp.token(stream, state.inner);
      const at = stream.current().indexOf("'''");
      if (at > 0) stream.backUp(stream.current().length - at);
      return kind;
    }
    if (stream.match(/r'''(?=\s*$)/)) {
      state.inner = cpp.startState(2);
      return "string";
    }
    return python.token(stream, state.outer);
  },
  blankLine(state) {
    if (state.inner) cpp.blankLine?.(state.inner);
  },
  languageData: {},
};

function copy(mode, state) {
  if (mode.copyState) return mode.copyState(state);
  return Object.fromEntries(Object.entries(state).map(([key, value]) => [key, Array.isArray(value) ? [...value] : value]));
}

const PYTHON = StreamLanguage.define(python);
const GENERATED = StreamLanguage.define(generated);

const colours = HighlightStyle.define([
  { tag: tags.keyword, class: "tk" },
  { tag: [tags.string, tags.special(tags.string)], class: "ts" },
  { tag: tags.comment, class: "tc" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], class: "tn" },
  { tag: [tags.definition(tags.variableName), tags.function(tags.variableName)], class: "td" },
  { tag: [tags.meta, tags.processingInstruction], class: "tm" },
]);

const theme = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--paper)", fontSize: "13px" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { padding: "4px 0 40vh" },
  ".cm-line": { padding: "0 8px 0 6px" },
  ".cm-gutters": { backgroundColor: "var(--paper)", color: "var(--soft)", borderRight: "1px solid var(--line)" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 6px 0 8px", minWidth: "32px" },
  ".cm-places .cm-gutterElement": { padding: "0 6px", cursor: "pointer", color: "var(--soft)", fontSize: "11px",
    lineHeight: "inherit", whiteSpace: "nowrap" },
  ".cm-status .cm-gutterElement": { padding: "0 5px", textAlign: "center", minWidth: "20px" },
  ".tk": { color: "var(--keyword)", fontWeight: "600" },
  ".ts": { color: "var(--string)" },
  ".tc": { color: "var(--comment)", fontStyle: "italic" },
  ".tn": { color: "var(--number)" },
  ".td": { color: "var(--define)" },
  ".tm": { color: "var(--keyword)" },
  ".jump": { textDecoration: "underline", textUnderlineOffset: "2px", cursor: "pointer", color: "var(--accent)" },
  ...Object.fromEntries([...Array(8).keys()].map((n) => [`.c${n}`, {
    backgroundColor: `color-mix(in srgb, var(--c${n}) var(--tint), transparent)`,
    boxShadow: `inset 4px 0 0 var(--c${n})`,
  }])),
  ".hover": { backgroundColor: "var(--hover)" },
  ".same": { backgroundColor: "var(--same)" },
  ".exact": { backgroundColor: "var(--exact)", boxShadow: "inset 4px 0 0 var(--mark)" },
  ".at": { boxShadow: "inset 4px 0 0 var(--mark), inset -4px 0 0 var(--mark)", fontWeight: "600" },
  ".s-break": { backgroundColor: "color-mix(in srgb, var(--bad) 18%, transparent)", boxShadow: "inset 4px 0 0 var(--bad)" },
  ".s-graph": { backgroundColor: "color-mix(in srgb, var(--good) 13%, transparent)", boxShadow: "inset 4px 0 0 var(--good)" },
  ".s-folded": { backgroundColor: "color-mix(in srgb, var(--fold) 13%, transparent)", boxShadow: "inset 4px 0 0 var(--fold)" },
  ".s-python": { backgroundColor: "color-mix(in srgb, var(--warn) 16%, transparent)", boxShadow: "inset 4px 0 0 var(--warn)" },
  ".s-unreached": { fontStyle: "italic", boxShadow: "inset 4px 0 0 var(--soft)" },
  ".s-unknown": { boxShadow: "inset 4px 0 0 var(--line)" },
  ".module": { display: "flex", alignItems: "center", gap: "6px", fontFamily: "var(--sans)", fontSize: "12px",
    color: "var(--text)", backgroundColor: "var(--panel)", borderTop: "1px solid var(--line)", padding: "1px 8px" },
  ".module button": { font: "inherit", color: "inherit", background: "none", border: "0", padding: "2px 4px",
    cursor: "pointer", textAlign: "left" },
  ".module button:focus-visible": { outline: "2px solid var(--accent)" },
  ".module .soft": { color: "var(--soft)" },
  ".cm-panels": { backgroundColor: "var(--panel)", color: "var(--text)" },
  ".cm-panels input, .cm-panels button": { font: "inherit", color: "var(--text)", background: "var(--paper)",
    border: "1px solid var(--edge)", borderRadius: "4px" },
  ".cm-panel.cm-search": { fontFamily: "var(--sans)", fontSize: "13px" },
  ".cm-button": { backgroundImage: "none" },
  ".cm-searchMatch": { backgroundColor: "color-mix(in srgb, var(--c3) 55%, transparent)" },
  ".cm-searchMatch-selected": { outline: "2px solid var(--mark)" },
  ".cm-specialChar": { color: "var(--bad)" },
});

// --- decorations of lines -----------------------------------------------------------------------------
const setMarks = StateEffect.define();
const marks = StateField.define({
  create: () => ({ hover: null, pinned: null, at: 0 }),
  update(value, transaction) {
    for (const effect of transaction.effects) if (effect.is(setMarks)) value = { ...value, ...effect.value };
    return value;
  },
});

function lineClasses(classOf) {
  const decorations = new Map();
  const decoration = (name) => {
    if (!decorations.has(name)) decorations.set(name, Decoration.line({ class: name }));
    return decorations.get(name);
  };
  return ViewPlugin.fromClass(class {
    constructor(view) { this.decorations = this.build(view); }
    update(update) {
      if (update.docChanged || update.viewportChanged || update.startState.field(marks) !== update.state.field(marks)) {
        this.decorations = this.build(update.view);
      }
    }
    build(view) {
      const builder = new RangeSetBuilder();
      const { hover, pinned, at } = view.state.field(marks);
      for (const { from, to } of view.visibleRanges) {
        for (let pos = from; pos <= to;) {
          const line = view.state.doc.lineAt(pos);
          const names = [];
          if (pinned?.exact.has(line.number)) names.push("exact");
          else if (pinned?.same.has(line.number)) names.push("same");
          else if (hover?.exact.has(line.number) || hover?.same.has(line.number)) names.push("hover");
          else {
            const own = classOf(line.number);
            if (own) names.push(own);
          }
          if (at === line.number) names.push("at");
          if (names.length) builder.add(line.from, line.from, decoration(names.join(" ")));
          pos = line.to + 1;
        }
      }
      return builder.finish();
    }
  }, { decorations: (plugin) => plugin.decorations });
}

class Label extends GutterMarker {
  constructor(text, title, kind) {
    super();
    Object.assign(this, { text, title, kind });
  }
  eq(other) { return other.text === this.text && other.title === this.title; }
  toDOM() { return h("span", { title: this.title, class: this.kind }, this.text); }
}

const names = ViewPlugin.fromClass(class {
  constructor(view) { this.decorations = matcher.createDeco(view); }
  update(update) { this.decorations = matcher.updateDeco(update, this.decorations); }
}, { decorations: (plugin) => plugin.decorations });
const matcher = new MatchDecorator({ regexp: NAMES, decoration: () => Decoration.mark({ class: "jump" }) });

// --- modules ------------------------------------------------------------------------------------------
const fold = StateEffect.define(); // {number, closed} or {all: Set}

class Heading extends WidgetType {
  constructor(span, number, closed) {
    super();
    Object.assign(this, { span, number, closed });
  }
  eq(other) { return other.number === this.number && other.closed === this.closed; }
  get estimatedHeight() { return 24; }
  toDOM(view) {
    const { path, cls, count, depth } = this.span;
    const button = h("button", {
      type: "button", "aria-expanded": String(!this.closed), title: this.closed ? "show its operations" : "fold",
      onclick: () => view.dispatch({ effects: fold.of({ number: this.number, closed: !this.closed }) }),
    }, (this.closed ? "\u25b8 " : "\u25be ") + path);
    const element = h("div", { class: "module" }, button,
                      h("span", { class: "soft" }, `${cls} \u00b7 ${count} operation${count === 1 ? "" : "s"}`));
    element.style.paddingLeft = `${8 + 14 * depth}px`;
    return element;
  }
  ignoreEvent() { return true; }
}

function moduleHeadings(spans, isComment) {
  // The comments above its first operation belong to a module.
  const begins = spans.map((span) => {
    let line = span.first;
    while (line > 1 && isComment(line - 1)) line--;
    return line;
  });
  const build = (doc, closed) => {
    const found = [];
    let hidden = 0; // lines up to here are folded away
    spans.forEach((span, number) => {
      if (span.first <= hidden) return;
      const isClosed = closed.has(number);
      const widget = new Heading(span, number, isClosed);
      const from = doc.line(Math.min(begins[number], doc.lines)).from;
      const to = doc.line(Math.min(span.last, doc.lines)).to;
      if (isClosed) {
        hidden = span.last;
        found.push(Decoration.replace({ widget, block: true }).range(from, to));
      } else {
        found.push(Decoration.widget({ widget, block: true, side: -100 + Math.min(span.depth, 90) }).range(from));
      }
    });
    return Decoration.set(found, true);
  };
  const inside = (closed, line) => [...closed].filter(
    (number) => begins[number] <= line && line <= spans[number].last);
  return StateField.define({
    create: (state) => {
      let closed = new Set(state.doc.lines > LONG ? repeated(spans) : []);
      const hiding = inside(closed, state.doc.lineAt(state.selection.main.head).number);
      if (hiding.length) closed = new Set([...closed].filter((number) => !hiding.includes(number)));
      return { closed, decorations: build(state.doc, closed) };
    },
    update(value, transaction) {
      let closed = value.closed;
      for (const effect of transaction.effects) {
        if (effect.is(fold)) {
          closed = effect.value.all ? new Set(effect.value.all) : new Set(closed);
          if (effect.value.closed === true) closed.add(effect.value.number);
          if (effect.value.closed === false) closed.delete(effect.value.number);
        }
        if (effect.is(setMarks) && effect.value.at) {
          const hiding = inside(closed, effect.value.at);
          if (hiding.length) closed = new Set([...closed].filter((number) => !hiding.includes(number)));
        }
      }
      if (transaction.selection) {
        const hiding = inside(closed, transaction.state.doc.lineAt(transaction.state.selection.main.head).number);
        if (hiding.length) closed = new Set([...closed].filter((number) => !hiding.includes(number)));
      }
      return closed === value.closed ? value : { closed, decorations: build(transaction.state.doc, closed) };
    },
    provide: (field) => EditorView.decorations.from(field, (value) => value.decorations),
  });
}

/** Modules whose name ends in a number: `layers.3`; without those that stand within another such. */
function repeated(spans) {
  const found = [];
  let end = 0;
  spans.forEach((span, number) => {
    if (span.first > end && /(^|\.)\d+$/.test(span.path)) {
      found.push(number);
      end = span.last;
    }
  });
  return found;
}

// --- the pane -----------------------------------------------------------------------------------------
/**
 * Shows a document.
 *
 * `options.hover(line)` (0: none), `options.pin(line)`, `options.jump(name)`; `options.status`: of a user's file, what
 * became of its lines; `options.label`: its accessible name.
 */
export class Editor {
  constructor(run, doc, options) {
    Object.assign(this, { run, doc, options });
    this.host = h("div", { class: "editor" });
    const root = this.host.attachShadow({ mode: "open" });
    const index = run.index(doc);
    const status = new Map((options.status ?? []).map((found) => [found[0], found]));
    const own = options.status
      ? (line) => (status.has(line) ? `s-${status.get(line)[1]}` : "")
      : (line) => {
        const place = index.places.get(line)?.[0];
        const colour = place === undefined ? -1 : run.colour(place);
        return colour < 0 ? "" : `c${colour}`;
      };
    const extensions = [
      lineNumbers(), scrollPastEnd(), marks, lineClasses(own), names, highlightSpecialChars(), highlightSelectionMatches(), drawSelection(),
      syntaxHighlighting(colours), doc.kind === "kernel" ? GENERATED : PYTHON, theme, search({ top: true }),
      EditorState.readOnly.of(true), EditorView.editable.of(false),
      EditorView.contentAttributes.of({
        tabindex: "0", role: "document", "aria-label": options.label ?? doc.title, "aria-multiline": null,
        "aria-readonly": null }),
      keymap.of([...this.keys(), ...searchKeymap]),
      EditorView.domEventHandlers(this.mouse()),
    ];
    if (options.status) extensions.push(this.statusGutter(status));
    else if (doc.kind !== "source") extensions.push(this.placeGutter(index));
    this.spans = doc.kind === "graph" ? run.spans(doc) : [];
    if (this.spans.length) {
      const lines = run.lines(doc);
      this.modules = moduleHeadings(this.spans, (line) => /^\s*(#.*)?$/.test(lines[line - 1]));
      extensions.push(this.modules);
    }
    const text = Text.of(run.lines(doc));
    const begin = options.begin && options.begin.line <= text.lines ? text.line(options.begin.line).from : -1;
    this.view = new EditorView({
      // (the selection opens the modules in which the line stands)
      state: EditorState.create({ doc: text, extensions, selection: begin >= 0 && options.begin.y === "center"
        ? EditorSelection.cursor(begin) : undefined }),
      scrollTo: begin >= 0 ? EditorView.scrollIntoView(begin, { y: options.begin.y }) : undefined, root, parent: root });
    this.current = 0;
  }

  /** Taken out of the document for a while ... */
  rest() {
    this.options.hover?.(0);
    this.place = this.view.scrollSnapshot();
  }

  /** ... and put back: where it stood, in the size that there is now. */
  wake() {
    this.view.dispatch({ effects: this.place });
    this.view.requestMeasure();
  }

  statusGutter(status) {
    return gutter({
      class: "cm-status",
      lineMarker: (view, block) => {
        const found = status.get(view.state.doc.lineAt(block.from).number);
        return found ? new Label(this.options.signs[found[1]][0], this.options.signs[found[1]][1], "") : null;
      },
    });
  }

  placeGutter(index) {
    return gutter({
      class: "cm-places",
      lineMarker: (view, block) => {
        const number = view.state.doc.lineAt(block.from).number;
        const places = index.places.get(number);
        if (!places || index.places.get(number - 1)?.[0] === places[0]) return null;
        const first = this.run.place(places[0]);
        const more = places.length > 1 ? ` +${places.length - 1}` : "";
        const all = places.slice(0, 12).map((id) => this.run.place(id).name).join(", ");
        return new Label(first.name.replace(/^.*\//, "") + more, `from ${all}`, "");
      },
    });
  }

  lineAt(event) {
    const position = this.view.posAtCoords({ x: event.clientX, y: event.clientY }, false);
    return this.view.state.doc.lineAt(position).number;
  }

  mouse() {
    return {
      mousemove: (event) => {
        const line = this.lineAt(event);
        if (line !== this.hovered) {
          this.hovered = line;
          this.options.hover?.(line);
        }
        return false;
      },
      mouseleave: () => {
        this.hovered = 0;
        this.options.hover?.(0);
        return false;
      },
      click: (event) => {
        if (event.target.closest?.(".module")) return false;
        const name = event.target.closest?.(".jump");
        if (name && this.options.jump?.(name.textContent)) return true;
        if (!this.view.state.selection.main.empty) return false;
        this.options.pin?.(this.lineAt(event));
        return false;
      },
    };
  }

  keys() {
    const step = (by) => () => {
      const last = this.view.state.doc.lines;
      this.options.pin?.(Math.min(last, Math.max(1, (this.current || 0) + by)), true);
      return true;
    };
    return [
      { key: "ArrowDown", run: step(1) }, { key: "ArrowUp", run: step(-1) },
      { key: "PageDown", run: step(25) }, { key: "PageUp", run: step(-25) },
      { key: "Home", run: step(-1e9) }, { key: "End", run: step(1e9) },
      { key: "/", run: openSearchPanel },
      { key: "Escape", run: () => { this.options.pin?.(0); return true; } },
      { key: "g", run: () => {
        const text = this.run.lines(this.doc)[this.current - 1] ?? "";
        const name = text.match(NAMES)?.[0];
        return name ? Boolean(this.options.jump?.(name)) : false;
      } },
    ];
  }

  /** Marks lines; `pinned` and `hover` are `{exact, same}` or null; `at` is the line that was chosen here. */
  mark(changes) {
    if (changes.at !== undefined) this.current = changes.at;
    this.view.dispatch({ effects: setMarks.of(changes) });
  }

  reveal(line, how = "center", margin = 5) {
    if (line < 1 || line > this.view.state.doc.lines) return;
    this.view.dispatch({
      effects: [setMarks.of({ at: this.view.state.field(marks).at }),
                EditorView.scrollIntoView(this.view.state.doc.line(line).from, { y: how, yMargin: margin })] });
  }

  /** The height of what stands above a line. */
  above(line) {
    return this.view.lineBlockAt(this.view.state.doc.line(line).from).top;
  }

  /** Shows a line even if its module is folded. */
  unfold(line) {
    if (!this.modules || line < 1 || line > this.view.state.doc.lines) return;
    this.view.dispatch({ selection: EditorSelection.cursor(this.view.state.doc.line(line).from) });
  }

  foldModules(closed) {
    this.view.dispatch({ effects: fold.of({ all: closed ? this.outermost() : [] }) });
  }

  outermost() {
    const layers = repeated(this.spans);
    return layers.length ? layers : this.spans.flatMap((span, number) => (span.depth === 0 ? [number] : []));
  }

  find() {
    openSearchPanel(this.view);
  }

  isVisible(line) {
    const { from, to } = this.view.viewport;
    const doc = this.view.state.doc;
    const rect = this.view.scrollDOM.getBoundingClientRect();
    const position = doc.line(Math.min(Math.max(line, 1), doc.lines)).from;
    if (position < from || position > to) return false;
    const at = this.view.coordsAtPos(position);
    return Boolean(at && at.top >= rect.top && at.bottom <= rect.bottom);
  }

  destroy() {
    this.view.destroy();
  }
}
