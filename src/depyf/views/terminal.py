"""Markdown of ours in a terminal, laid out by Rich: what ``index.md`` says, without its marks.

A heading is a bold line, a list keeps its dashes, a table its columns (no lines around them), and in a block of code
lines that a difference adds or removes are green or red. A link is its text: whoever shows a page names the files.
"""

from __future__ import annotations

from typing import TextIO

from rich import markdown
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from ..harmless import harmless

_THEME = Theme({
    "markdown.code": "cyan", "markdown.h1": "bold blue", "markdown.h2": "bold blue", "markdown.h3": "bold",
    "markdown.table.header": "dim", "code.added": "green", "code.removed": "red", "code.same": "dim"})


def console_for(stream: TextIO, colours: bool, width: int) -> Console:
    """Return a console that writes to a stream, with the colours that nearly all terminals know or with none."""
    return Console(
        file=stream, width=width, theme=_THEME, color_system="standard" if colours else None, no_color=not colours,
        force_terminal=colours, force_jupyter=False, markup=False, emoji=False, highlight=False)


def show(text: str, console: Console) -> None:
    """Write Markdown of ours to a console."""
    console.print(_Document(harmless(text)), crop=False, end="")


class _Heading(markdown.Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text if self.tag in ("h1", "h2") else Text.assemble("  ", self.text)


class _CodeBlock(markdown.CodeBlock):
    indent = ""

    def on_enter(self, context: markdown.MarkdownContext) -> None:
        super().on_enter(context)
        self.indent = "    " if len(context.stack) == 1 else ""  # (that of an item stands below its text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.text.plain.splitlines():
            style = {"+": "code.added", "-": "code.removed"}.get(line[:1], "code.same")
            yield Text(self.indent + line, style, no_wrap=True, overflow="ignore")


class _Table(markdown.TableElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="markdown.table.header")
        if self.header is not None and self.header.row is not None:
            for cell in self.header.row.cells:
                table.add_column(cell.content, overflow="fold")
        for row in self.body.rows if self.body is not None else ():
            table.add_row(*(cell.content for cell in row.cells))
        yield Padding(table, (0, 0, 0, 2))


class _List(markdown.ListElement):
    indent = ""

    def on_enter(self, context: markdown.MarkdownContext) -> None:
        self.indent = "  " if len(context.stack) == 1 else ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        inner = options.update(width=max(options.max_width - len(self.indent) - 2, 20))
        for item in self.items:
            for number, line in enumerate(Segment.split_lines(console.render(item.elements, inner))):
                yield Segment(self.indent + ("  " if number else "- "))
                yield from line
                yield Segment.line()


class _Document(markdown.Markdown):
    elements = {
        **markdown.Markdown.elements, "heading_open": _Heading, "fence": _CodeBlock, "table_open": _Table,
        "bullet_list_open": _List}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        for token in self.parsed:
            if token.children:
                token.children = [child for child in token.children if child.type not in ("link_open", "link_close")]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # Without the spaces at the ends of lines and the empty line with which a list begins.
        begun = False
        segments = (part for part in super().__rich_console__(console, options) if isinstance(part, Segment))
        for line in Segment.split_lines(segments):
            while line and not line[-1].text.strip():
                line.pop()
            begun = begun or bool(line)
            if not begun:
                continue
            yield from line[:-1]
            yield from (Segment(segment.text.rstrip(), segment.style) for segment in line[-1:])
            yield Segment.line()
