"""Our Markdown in a terminal, laid out by Rich: what ``index.md`` says, without its marks.

A heading is a bold line, a list keeps its dashes, a table its columns (no lines around them), and in a block of code
lines that a difference adds or removes are green or red. A link is its text: the command names the files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TextIO

from rich import table as tables
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from rich.theme import Theme

from ..harmless import harmless
from .markdown import Block, Bullets, CodeBlock, Heading, Table, blocks, nested_spans

_THEME = Theme({
    "markdown.code": "cyan", "markdown.h1": "bold blue", "markdown.h2": "bold blue", "markdown.h3": "bold",
    "markdown.table.header": "dim", "code.added": "green", "code.removed": "red", "code.same": "dim"})

_STYLES = {"bold": "markdown.strong", "code": "markdown.code"}


def console_for(stream: TextIO, colours: bool, width: int) -> Console:
    """Return a console that writes to a stream, with the colours that nearly all terminals know or with none."""
    return Console(
        file=stream, width=width, theme=_THEME, color_system="standard" if colours else None, no_color=not colours,
        force_terminal=colours, force_jupyter=False, markup=False, emoji=False, highlight=False)


def show(text: str, console: Console, choose: Callable[[Sequence[Block]], Sequence[Block]] = list) -> None:
    """Write our Markdown to a console, those of its blocks that ``choose`` returns."""
    console.print(_Document(choose(list(blocks(harmless(text).split("\n"))))), crop=False, end="")


class _Document:
    def __init__(self, parts: Sequence[Block]) -> None:
        self.blocks = parts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        begun = False
        for number, block in enumerate(self.blocks):
            if number and begun:
                yield Segment.line()
            for line in Segment.split_lines(console.render(_laid_out(block, console, outermost=True), options)):
                # Without the spaces at the ends of lines and empty lines at the beginning.
                while line and not line[-1].text.strip():
                    line.pop()
                begun = begun or bool(line)
                if not begun:
                    continue
                yield from line[:-1]
                yield from (Segment(segment.text.rstrip(), segment.style) for segment in line[-1:])
                yield Segment.line()


def _laid_out(block: Block, console: Console, outermost: bool = False) -> RenderableType:
    """Return a block as Rich lays it out; ``outermost``: it is in no list."""
    if isinstance(block, Heading):
        text = _text(block.text, console, f"markdown.h{block.level}")
        return text if block.level < 3 else Text.assemble("  ", text)
    if isinstance(block, CodeBlock):
        styles = {"+": "code.added", "-": "code.removed"}
        return Group(*(Text(("    " if outermost else "") + line, styles.get(line[:1], "code.same"), no_wrap=True,
                            overflow="ignore") for line in block.lines))
    if isinstance(block, Bullets):
        return _List(block, console, outermost)
    if isinstance(block, Table):
        table = tables.Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="markdown.table.header")
        for head in block.heads:
            table.add_column(_text(head, console, justify="default"), overflow="fold")
        for row in block.rows:
            table.add_row(*(_text(cell, console, justify="default") for cell in row))
        return Padding(table, (0, 0, 0, 2))
    return _text(block.text, console, justify="left")


class _List:
    def __init__(self, bullets: Bullets, console: Console, outermost: bool) -> None:
        self.indent = "  " if outermost else ""
        self.items = [Group(*(_laid_out(block, console) for block in item)) for item in bullets.items]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        inner = options.update(width=max(options.max_width - len(self.indent) - 2, 20))
        for item in self.items:
            for number, line in enumerate(Segment.split_lines(console.render(item, inner))):
                yield Segment(self.indent + ("  " if number else "- "))
                yield from line
                yield Segment.line()


def _text(markdown: str, console: Console, style: str = "none", justify: JustifyMethod | None = None) -> Text:
    text = Text(justify=justify)
    for kinds, part in nested_spans(markdown):
        names = [style, *(_STYLES[kind] for kind in kinds if kind)]
        text.append(part, Style.combine(map(console.get_style, names)))
    return text
