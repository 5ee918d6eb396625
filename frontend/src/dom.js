// Elements from code. Text goes in as text only: nothing here, or anywhere in the page, reads a string as HTML.

/** An element. `props`: attributes; `on...`: listeners; `text`: its text. Children: nodes, strings, lists, null. */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "text") element.textContent = value;
    else if (name === "value" || name === "open") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Torch's sentences have `code` and addresses in them. */
export function prose(text) {
  return text.split(/(?<!`)`([^`\n]+)`(?!`)/).map((part, index) => (index % 2 ? code(part) : part.split(
    /(https:\/\/[\w./%#?=&+-]*[\w/])/).map((piece, at) => (at % 2 ? outside(piece, piece) : piece))));
}

export function code(text, props) {
  return h("code", props, text);
}

/** Text that is cut says so, and shows the whole to who points at it. */
export function short(text, most) {
  return text.length <= most ? text : h("span", { title: text }, `${text.slice(0, most - 1).trimEnd()}\u2026`);
}

/** What the data has as `[kind, text]`: code, bold, or running text. */
export function pieces(found) {
  return found.map(([kind, text]) => (kind === "code" ? code(text) : kind === "bold" ? h("b", {}, text) : prose(text)));
}

export function count(number, word) {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

export function seconds(value) {
  return value >= 0.1 ? `${value.toFixed(2)} s` : `${(value * 1000).toFixed(1)} ms`;
}

/** Only addresses of the web become links. */
export function outside(url, text) {
  return /^https?:\/\//.test(url) ? h("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, text) : text;
}
