"""Our reader of our own Markdown sees what a reader of all Markdown sees (commonmark.js's rules, by markdown-it)."""

from pathlib import Path

import pytest

from depyf.views.markdown import (
    Bullets,
    CodeBlock,
    Heading,
    Paragraph,
    blocks,
    code,
    fenced,
    link,
    nested_spans,
    prose,
    table,
)

GOLDEN = Path(__file__).parent / "golden"
HOSTILE = ["a|b", "`", "``x``", "**no**", "[a](b)", "\\", "a_b_c", "_", "*", "<b>&amp;", "1. x", "# x", "x[0](1)", "~~",
           "`a` and `b`", "\\[", "&lt;", "- a", "+", "word " * 30]
KINDS = {"": frozenset(), "bold": frozenset({"strong"}), "code": frozenset({"code"})}


def texts():
    """Yield Markdown as views write it, with names of all kinds at each place."""
    for path in sorted(GOLDEN.glob("*.md")):
        yield path.read_text()
    for name, other in zip(HOSTILE, HOSTILE[1:] + HOSTILE[:1]):
        yield "\n".join([
            f"# {code(name)}", "", f"x {prose(name)} **bold {code(other)} and [{code(name)}](a.py)** {prose(other)}", "",
            *table(("a", "b c"), [(code(name), f"x {prose(other)}"), (link(code(other), "f x.py"), "")]), "",
            f"* {code(name)}: x", f"  * {prose(name)}", *(f"    {line}" for line in fenced(f"+ {name}\n\n- {other}")),
            f"* **change**: {prose(other)}", "", *(f"  {line}" for line in fenced(other, "diff")), "", "* z", "",
            *fenced("")])


def seen(inline):
    """Return ``[kinds, text]`` of running text as markdown-it reads it, links left out."""
    kinds, parts = [], []
    for token in inline.children:
        if token.type in ("strong_open", "em_open", "s_open"):
            kinds.append(token.tag)
        elif token.type in ("strong_close", "em_close", "s_close"):
            kinds.pop()
        elif token.type not in ("link_open", "link_close"):
            assert token.type in ("text", "softbreak", "code_inline"), token
            text = " " if token.type == "softbreak" else token.content
            parts.append((frozenset([*kinds, *["code"] * (token.type == "code_inline")]), text))
    return joined(parts)


def read(text):
    return joined((frozenset().union(*(KINDS[kind] for kind in kinds)), part) for kinds, part in nested_spans(text))


def joined(parts):
    result = []
    for kinds, text in parts:
        if result and result[-1][0] == kinds:
            result[-1][1] += text
        elif text:
            result.append([kinds, text])
    return result


def by_markdown_it(text):
    """Return what is in a text, in order, with how deep it lies in lists."""
    markdown = pytest.importorskip("markdown_it")
    depth = 0
    for token in markdown.MarkdownIt().enable(["strikethrough", "table"]).parse(text):
        depth += (token.type == "list_item_open") - (token.type == "list_item_close")
        if token.type == "inline":
            yield depth, "text", seen(token)
        elif token.type == "fence":
            yield depth, "code", token.content
        elif token.type == "heading_open":
            yield depth, "heading", token.tag


def by_us(found, depth=0):
    for block in found:
        if isinstance(block, Heading):
            yield depth, "heading", f"h{block.level}"
            yield depth, "text", read(block.text)
        elif isinstance(block, Paragraph):
            yield depth, "text", read(block.text)
        elif isinstance(block, CodeBlock):
            yield depth, "code", "".join(f"{line}\n" for line in block.lines)
        elif isinstance(block, Bullets):
            for item in block.items:
                yield from by_us(item, depth + 1)
        else:
            for row in (block.heads, *block.rows):
                yield from ((depth, "text", read(cell)) for cell in row)


@pytest.mark.parametrize("text", list(texts()))
def test_our_markdown_is_read_as_others_read_it(text):
    assert list(by_us(blocks(text.split("\n")))) == list(by_markdown_it(text))
