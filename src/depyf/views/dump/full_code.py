"""``full_code_for_<function>_<n>.py``: everything about one compiled function, top-down.

For the function and each of its resume functions: the original, and for each compiled version what a call must satisfy,
the graph and the transformed code; then the dispatching function, which does what torch does when the function is
called. Helpers are last.
"""

from __future__ import annotations

import ast
import difflib
import functools
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ...model.folding import Item, fold, fold_layers, unfolded
from ...model.graph_text import indentation
from ...records.model import Capture, Compilation, CompiledFunction, CompiledGraph, Frame, TransformedCode
from ...records.naming import function_identifier, legal_identifier
from ...torch_text import global_names
from ...torch_text.global_names import resumed_function
from ...torch_text.libraries import is_generated
from ...torch_text.parsed import literal, parsed_file
from ...torch_text.run_ids import without_counter, words
from ...torch_text.size_names import is_symbol
from ...torch_text.wrapping import WIDTH, broken, comment
from .. import formatting
from ..causes import sentences
from ..function_summary import arguments_as_written
from ..markdown import count, some
from ..run_index import pieces_of
from .directory import GraphFile, files_table, graph_file, sizes_table, stage_view
from .graph_view import GraphView
from .guards.functions import call_guards, helpers, occurs
from .guards.sizes import symbol_table
from .guards.versions import MOST_LINES, Version, as_comment, deciding, nearest, not_in_all, signature, versions
from .source_copy import with_short_lines

PREAMBLE = '''\
"""Result of torch.compile for {name}.

Read from the top: the original function; for each compiled version what a call must satisfy to be served by it, its
graph, and the transformed code, which runs instead of the original; at the end of each section the function that
chooses between the versions. Functions called __resume_at_... continue after a graph break; their sections follow.
{files}
{more}{lacks}"""

from __future__ import annotations

{imports}import torch
from torch import device, inf, nan
'''
_FILES = "All conditions of a version are in a file beside this one, guards_<n>_for_<function>.py."
_NO_FILES = "The files of guards and graphs that are named below are written by depyf.prepare_debug only."
#: Graphs with fewer statements are shown whole.
SHORT = 20
_LIKE = f"A graph of {SHORT} statements or more that is much like one above it is shown by what differs."
#: (torch/_dynamo/resume_execution.py)
_NESTED = """\
Where torch continues inside of a function that another one called (torch._dynamo.config.nested_graph_breaks, off by
default), __nested_resume_fns has the resume functions of what was called, __nested_frame_values the values of their
variables; elsewhere both are empty."""
LONGEST_STUB = 6  #: Lines of parameters of a graph that is not shown whole.
#: Arguments that a graph writes to, named at its call; those of several layers count once.
WRITES = 12
_NO_DIGITS = str.maketrans("", "", "0123456789")


def full_code(function: CompiledFunction, capture: Capture) -> str:
    """Return the text for one compiled function of a run."""
    title = function.frames[0].title or function.name
    lacks = "".join(f"\n{textwrap.fill(remark, WIDTH)}\n" for remark in formatting.remarks(capture.notes))
    shown: dict[str, GraphView] = {}
    pieces = pieces_of(capture.graphs)
    lost = [each for each in capture.compilations if each.outcome != "compiled"]
    parts = [_frame(frame, versions(frame, capture), capture.by_name, pieces, shown, lost) for frame in function.frames]
    meaning = textwrap.fill(f"{global_names.MEANING[0].upper()}{global_names.MEANING[1:]}.", WIDTH - 8,
                            subsequent_indent="    ")
    needed = [f'def {name}():\n    """{meaning}"""\n    ...  # what it calls is not recorded\n'
              for name in global_names.random_values("\n".join(parts))]
    needed += filter(None, [helpers("\n".join(parts))])
    if needed:
        parts.append("\n\n\n".join([_heading("what the code above calls"), "\n\n".join(needed)]))
    body = "\n\n\n".join(parts).rstrip()
    used = [f"import {name}\n" for name in ("math", "re") if occurs(rf"{name}\.", r"\w.", body)]
    used += filter(None, [global_names.operator_imports(body)])
    written = any(entry.guards_file for frame in function.frames for entry in frame.entries)
    head = PREAMBLE.format(
        name=title.replace("\\", "\\\\").replace('"', "'"), lacks=lacks, files=_FILES if written else _NO_FILES,
        more=f"{_NESTED}\n" * ("__nested_resume_fns" in body)
        + f"{_LIKE}\n" * ("\n# the statements of " in body),
        imports="".join([*used, "\n" * bool(used)]))
    return f"{head.rstrip()}\n\n\n{body}\n"


def _frame(
    frame: Frame, compiled: Sequence[Version], graphs: Mapping[str, CompiledGraph],
    pieces: Mapping[str, Sequence[CompiledGraph]], shown: dict[str, GraphView], lost: Sequence[Compilation],
) -> str:
    resumed = resumed_function(frame.code_name)
    file = frame.location.filename if frame.location else ""
    parts = [_heading(f"{frame.name} continues {frame.title or resumed[0]} " + formatting.after_break(
        file, resumed[1], frame.branch) if resumed else frame.title or frame.name)]
    place = "".join(f"{line}\n" for text in [
        *([f"{frame.location.filename}:{frame.location.line}"] if frame.location else []),
        *formatting.called_through(frame.wrappers)] for line in comment(text, deeper=2))
    if frame.original_is_user_text:
        author = "torch.fx" if is_generated(file) else "its author"
        parts.append(f"{place}# the original function, as {author} wrote it\n{_original(frame)}")
    else:
        head = [f"# decompiled: {frame.original.fidelity}", *_notes(frame.original.note)] \
            if "def " in frame.original.text else []  # (records of a killed run have no text)
        computed = formatting.on_stack(frame.stack, frame.original.text)
        head += [f"# {formatting.COMPUTED}:"] * bool(computed) + [
            line for text in computed for line in comment(f"  {text}", 0, deeper=4)]
        parts.append(place + "\n".join([*head, frame.original.text.rstrip()]))
    if frame.wrappers:
        wrapper, *others = frame.wrappers
        parts.append("\n".join([
            "# what torch compiled: the wrapper, which calls" + ", through the others," * bool(others)
            + " the function above",
            *broken(f"def {_name_called(frame)}({signature(frame)}):", 0),
            f"    ...  # {wrapper.filename}:{wrapper.line}"]))
    if not compiled:
        # (The index lists the compilations that were given up; torch skips some frames without a word.)
        why = " (index.md says why)" if any(frame.may_be_of(each.function, each.location) for each in lost) \
            else f": {formatting.NO_TENSORS}" if frame.without_tensors else " without giving a reason"
        asked = f": torch was asked to, and left it to plain Python{why}" if frame.asked else ""
        parts.append("\n".join(comment(f"{frame.name} was not compiled in this run{asked}.", 0, 0)))
        return "\n\n\n".join(parts)
    decide = deciding(compiled)
    for version in compiled:
        before = nearest(version, compiled)
        difference = as_comment(before, version, MOST_LINES) if before is not None and not version.failed else []
        if version.failed:
            head = formatting.no_version(version.compilation)
            if version.conditions:
                head.append(f"The conditions that a call would have to satisfy: {version.guards_file}")
            parts.append("\n".join(line for text in head for line in comment(text, 0, 2)))
        else:
            parts.append("\n".join([*difference, *call_guards(version, not_in_all(version, compiled), decide)]))
        for graph_name in version.entry.graph_names:
            if graph_name not in shown:
                parts.append(_graph(graph_name, graphs.get(graph_name), pieces.get(graph_name, ()), shown, version))
        parts.append(_transformed(version, compiled, shown))
    parts.append(_dispatching(frame, legal_identifier(frame.name), compiled, lost))
    return "\n\n\n".join(parts)


def _heading(title: str) -> str:
    rule = "# " + "=" * 78
    return "\n".join([rule, *comment(title, deeper=0), rule])


def _original(frame: Frame) -> str:
    """Return the user's own text. Decorators become comments, and so does text that is not a function (a lambda)."""
    lines = textwrap.dedent(frame.original.text).rstrip().splitlines()
    function = _users_function(frame)
    if function is not None:
        above = function.lineno - 1  # the line of ``def``, below all decorators
        return with_short_lines("\n".join([*(f"# {line}" for line in lines[:above]), *lines[above:]]))
    return "\n".join([*(part for line in lines for part in comment(line)),
                      f"def {legal_identifier(frame.name)}({frame.signature}):", "    ...  # see the text above"])


def _users_function(frame: Frame) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return the function that the author wrote; ``None`` where the records have other text, or a lambda."""
    match parsed_file(textwrap.dedent(frame.original.text)) if frame.original_is_user_text else None:
        case ast.Module([ast.FunctionDef() | ast.AsyncFunctionDef() as first, *_]):
            return first
    return None


def _name_called(frame: Frame) -> str:
    """Return the name of what torch compiled in the full code: of the wrapper, or of the original function."""
    if frame.wrappers:
        return function_identifier(frame.wrappers[0].function)
    function = _users_function(frame)
    return function.name if function is not None else legal_identifier(frame.name)


def _graph(
    name: str, graph: CompiledGraph | None, pieces: Sequence[CompiledGraph], shown: dict[str, GraphView],
    version: Version,
) -> str:
    """Return a graph as a function; one that is nearly equal to a graph above it by what differs."""
    captured = graph.captured if graph else None
    if graph is None or captured is None:
        shown[name] = GraphView("")
        return (f"def {legal_identifier(name)}(*args):\n"
                f"    ...  # the captured graph is not available")
    stages = [f"{legal_identifier(name)}.{s.stage}.{s.index}.py" for s in graph.stages if not s.internal]
    stages += [f"{legal_identifier(name)}.kernel_{k.index}.py" for k in graph.kernels]
    if pieces:
        names = some([each.name for each in pieces], 3)
        stages.append(f"split by the backend, compiled in {count(len(pieces), 'piece')}: {names}")
    view = stage_view(captured, graph.inputs)
    arguments = arguments_as_written(version.compilation)
    compiled_by = f", compiled by {graph.backend}{f' ({arguments})' * bool(arguments)}" * bool(graph.backend)
    head = [*comment(f"the graph {name}{compiled_by}"
                     + f"; of {version.label}, which failed: it is never called" * version.failed),
            *(f"#   {s}" for s in stages),
            *symbol_table(captured.text, version.compilation, version.sizes,
                          {**dict.fromkeys(view.parameters, ""), **dict(view.symbols)})]
    like = like_before(view.statements, {other: graph.statements for other, graph in shown.items()})
    shown[name] = view
    if like:
        file = graph_file(name, captured, graph.inputs, formatting.never_called(version.compilation))
        return "\n".join([*head, like, _stub(name, view.parameters, file)])
    return "\n".join([*head, *sizes_table(view), *files_table(view), view.function(name)])


def _stub(name: str, parameters: Sequence[str], file: GraphFile) -> str:
    """Return a graph without its statements."""
    lines = textwrap.wrap(", ".join(parameters), WIDTH - 4, break_long_words=False)
    line = next((number for number, line in enumerate(file.text.splitlines(), 1) if "def forward(" in line), 1)
    place = f"{legal_identifier(name)}.Captured_Graph.0.py, line {line}"
    if len(lines) > LONGEST_STUB:
        return (f"def {legal_identifier(name)}(*args):\n"
                f"    ...  # its {len(parameters)} parameters and its statements: {place}")
    head = [f"def {legal_identifier(name)}({''.join(lines)}):"] if len(lines) < 2 else [
        f"def {legal_identifier(name)}(", *(f"    {line}" for line in lines), "):"]
    return "\n".join([*broken(head[0], 0)] if len(head) == 1 else head) + f"\n    ...  # the whole of it: {place}"


def _transformed(version: Version, compiled: Sequence[Version], shown: Mapping[str, GraphView]) -> str:
    """Return the transformed code with its notes; those of an earlier version are not repeated."""
    code = version.entry.transformed.source
    head = [f"# transformed code of {version.label}, which failed (so it is never called): {code.fidelity}"
            if version.failed else f"# transformed code of version {version.label}: {code.fidelity}"]
    alike = next((each for each in compiled[: version.number] if (code.fidelity, code.note) == (
        each.entry.transformed.source.fidelity, each.entry.transformed.source.note)), None)
    if alike is not None and code.note:
        head = [f"{head[0]}, with the notes of {alike.label}"]
    else:
        head += _notes(code.note)
    breaks = version.compilation.breaks if version.compilation is not None else ()
    head += [line for text in sentences(breaks) for line in comment(text, 0, deeper=2)]
    return "\n".join([*head, _with_writes(code.text.rstrip(), shown)])


def _with_writes(text: str, shown: Mapping[str, GraphView]) -> str:
    """Return transformed code with a comment above each call of a graph that writes to its arguments."""
    writes = {legal_identifier(name): graph for name, graph in shown.items() if graph.writes or graph.own_writes}
    tree = parsed_file(text) if any(f"{name}(" in text for name in writes) else None
    if tree is None:
        return text
    above: dict[int, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in writes:
            name, graph = node.func.id, writes[node.func.id]
            on_call = above.setdefault(node.lineno, [])
            if graph.writes:
                folded = unfolded(fold_layers([Item(each, each, (each,)) for each in graph.writes]))
                shown_writes = [item.text + (f" ({loops})" if loops else "") for item, loops in folded]
                on_call.append(f"{name} writes to {some(shown_writes, WRITES)}")
            if graph.own_writes:
                # (Of names that differ in numbers alone the first.)
                alike = fold(graph.own_writes, lambda each: each.translate(_NO_DIGITS).rstrip("_"))
                own = [first + (f" and {len(others)} alike" if others else "") for first, *others in alike.values()]
                on_call.append(
                    f"{name} writes to {count(len(graph.own_writes), 'tensor')} of its own: {some(own, WRITES)}")
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        indent = indentation(line)
        for sentence in above.get(number, ()):
            lines += comment(sentence, indent, deeper=2)
        lines.append(line)
    return "\n".join(lines)


def _notes(note: str) -> list[str]:
    return [line for part in formatting.notes_of(note) for line in comment(f"  {part}", deeper=6)]


def _dispatching(frame: Frame, name: str, compiled: Sequence[Version], lost: Sequence[Compilation] = ()) -> str:
    """Return the function that shows what happens at a call: each version is tried, then torch compiles another."""
    passed = _pass_on(frame)
    lines = broken(f"def compiled_{name}({_with_defaults(frame) or signature(frame)}):", 0)
    dead = [version.label for version in compiled if version.dead and not version.failed]
    if dead:
        lines += comment(f"left out, for they are dead (their guards say why): {', '.join(dead)}", 4, 2)
    frames = {version.entry.compile_id.frame_key for version in compiled}
    given_up = next((each for each in lost if each.outcome == "skipped" and each.compile_id.frame_key in frames), None)
    if given_up is not None:
        when = f"since {given_up.compile_id}, where torch gave the function up (index.md says why)"
        lines += comment(f"{when}, no version is tried: all calls run the original", 4, 2)
    for version in compiled:
        if version.failed:
            lines += comment(f"{version.label} failed: the call that torch compiled it for ended with "
                             f"{formatting.error_of(version.compilation)}, unless torch suppressed the error and "
                             "ran the original", 4, 2)
    serving = [version for version in compiled if not version.dead and not version.failed]
    places = [version.entry.tried for version in serving]
    if len(serving) > 1 and None in places:
        lines.append("    # in the order in which they were compiled; in which order torch tried them was not recorded")
    elif len(serving) > 1:
        lines.append("    # one after another until one fits; torch begins with the one that was used last")
        serving.sort(key=lambda version: version.entry.tried or 0)
    for version in serving:
        lines += broken(f"if {version.guards_name}({passed}):", 4)
        lines += broken(f"return {name_of(version.entry.transformed)}({passed})", 8)
    if given_up is None:
        lines.append("    # No version matches: torch compiles another, or runs the original when there are too many.")
    lines += broken(f"return {_name_called(frame)}({passed})", 4)
    return "\n".join(lines)


def _with_defaults(frame: Frame) -> str:
    """Return the parameters as the author wrote them, without annotations.

    Defaults that are no literals become ``...``; empty without such a text, or if a wrapper with other parameters is
    called.
    """
    function = _users_function(frame)
    if function is None or frame.wrappers:
        return ""
    arguments = function.args
    for argument in ast.walk(arguments):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    unread = ast.Constant(...)
    arguments.defaults = [unread if literal(node) is ... else node for node in arguments.defaults]
    arguments.kw_defaults = [unread if node and literal(node) is ... else node for node in arguments.kw_defaults]
    return ast.unparse(arguments)


def name_of(code: TransformedCode) -> str:
    """Return the name of the function in the text of transformed code."""
    first = next((line for line in code.source.text.splitlines() if line.startswith(("def ", "async def "))), "")
    return first.partition("def ")[2].partition("(")[0] or "transformed"


def _pass_on(frame: Frame) -> str:
    """Return the arguments that pass the parameters on, keyword-only and starred ones included."""
    match parsed_file(f"def f({signature(frame)}): ..."):
        case ast.Module([ast.FunctionDef(args=given)]):
            pass
        case _:
            return ""
    return ", ".join([
        *(each.arg for each in (*given.posonlyargs, *given.args)), *([f"*{given.vararg.arg}"] if given.vararg else []),
        *(f"{each.arg}={each.arg}" for each in given.kwonlyargs), *([f"**{given.kwarg.arg}"] if given.kwarg else [])])


# --- A graph that is nearly equal to one above it: what differs, and where to find the whole ----------
# A second version of a function is mostly the same graph with other sizes:
#
#     # the statements of __compiled_fn_1 above, with s27 instead of 8 in 7 statements; and these differ:
#     #   - view = linear.view((2, 8, -1, 16))
#     #   + view = linear.view((2, s27 + 1, -1, 16))
#: Of the statements, how many may differ in more than a size.
_DIFFERENT = 0.2
_WINDOW, _RUN = 60, 3  #: How many statements may come and go in one place; how many that are equal end a difference.
_NONE = " "  #: The name of a value that the other graph does not have.


def like_before(mine: Sequence[str], shown: Mapping[str, Sequence[str]]) -> str:
    """Return a graph by what differs from the most similar of those ``shown``; empty where it differs too much."""
    # (Graphs that call much the same, in whatever order, are found quickly, unlike where they differ.)
    calls = Counter(map(_skeleton, mine))
    differences = {other: _changes(theirs, mine) for other, theirs in shown.items() if len(mine) >= SHORT and sum(
        (Counter(map(_skeleton, theirs)) & calls).values()) >= (1 - _DIFFERENT) * max(len(theirs), len(mine))}
    other = min(differences, key=lambda each: len(differences[each][1]), default="")
    sizes, changed = differences.get(other, (Counter(), []))
    # (A statement in the place of another one is one that differs.)
    different = max(Counter(line[0] for line in changed).values(), default=0)
    if not other or different > _DIFFERENT * len(mine):
        return ""
    head = f"# the statements of {other} above"
    if sizes:
        head += ", with " + "; ".join(f"{new} instead of {old} in {count(number, 'statement')}"
                                      for (old, new), number in sizes.most_common())
    head += "; and these differ (- there, + here):" if changed else ""
    wrapped = textwrap.wrap(head, WIDTH, subsequent_indent="#   ")
    for line in changed:  # (what differs may be at the end of a statement, so all of it is shown)
        wrapped += textwrap.wrap(line, WIDTH, initial_indent="#   ", subsequent_indent="#         ",
                                 break_on_hyphens=False)
    return "\n".join(wrapped)


def _changes(old: Sequence[str], new: Sequence[str]) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Return ``(statements in which a size replaces another, by (old, new); other statements that came and went)``."""
    sizes: Counter[tuple[str, str]] = Counter()
    changed: list[str] = []
    # The names of the same value, as far as statements have been compared: of the new graph by the old one's, and back.
    news: dict[str, str] = {}
    olds: dict[str, str] = {}
    # Statements are matched by what they call.
    for equal, a, b, c, d in _aligned([_skeleton(s) for s in old], [_skeleton(s) for s in new]):
        # (A difference goes on until several statements are equal again; some in it may be equal.)
        parts = [("equal", 0, b - a, 0, d - c)] if equal else difflib.SequenceMatcher(
            None, old[a:b], new[c:d], autojunk=False).get_opcodes()
        differing = [part for part in parts if part[0] != "equal"]
        there = {_target(line) for _, i, j, _, _ in differing for line in old[a + i : a + j]}
        here = {_target(line) for _, _, _, k, m in differing for line in new[c + k : c + m]}
        # (Of a name that different statements of both graphs bind the reader sees both.)
        olds |= {name: name if name in there else _NONE for name in here}
        news |= {name: name if name in here else _NONE for name in there}
        for kind, i, j, k, m in parts:
            was, now = old[a + i : a + j], new[c + k : c + m]
            if kind != "equal":
                changed += [*(f"- {line}" for line in was), *(f"+ {line}" for line in now)]
                continue
            for first, second in zip(was, now):
                replaced = _replaced_sizes(words(first), words(second), olds, news)
                if replaced is None:
                    changed += [f"- {first}", f"+ {second}"]
                else:
                    sizes.update(replaced)
    return sizes, changed


def _target(statement: str) -> str:
    """Return the variable that a statement binds; ``""`` where it binds none."""
    name, equals, _ = statement.partition(" = ")
    return name if equals and name.isidentifier() else ""


def _aligned(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    """Yield ``(equal, begin and end in the old, begin and end in the new)`` of the parts of two lists.

    Statements come and go in few places. A difference ends where the next ``_RUN`` items are equal again, the fewest
    items from it. (A layer is much like the next: the longest equal run, which ``difflib`` looks for, may be another
    layer, and looking for it takes long.)
    """
    a = c = 0
    while a < len(old) or c < len(new):
        b, d = a, c
        while b < len(old) and d < len(new) and old[b] == new[d]:
            b, d = b + 1, d + 1
        if b > a:
            yield True, a, b, c, d
        a, c = b, d
        if a == len(old) and c == len(new):
            return
        b, d = next(((b, d) for total in range(1, _WINDOW) for b in range(a, a + total + 1)
                     if b <= len(old) and (d := a + c + total - b) <= len(new) and (b < len(old)) == (d < len(new))
                     and old[b : b + _RUN] == new[d : d + _RUN]), (len(old), len(new)))
        yield False, a, b, c, d
        a, c = b, d


@functools.lru_cache(maxsize=65536)
def _skeleton(statement: str) -> str:
    """Return a statement without sizes and without the numbers that torch counts names up by."""
    return " ".join("#" if _is_size(word) else without_counter(word) for word in words(statement))


@functools.lru_cache(maxsize=4096)
def _is_size(word: str) -> bool:
    return word.isdecimal() or is_symbol(word)


def _replaced_sizes(
    old: Sequence[str], new: Sequence[str], olds: dict[str, str], news: dict[str, str],
) -> Sequence[tuple[str, str]] | None:
    """Return the sizes that differ between the words of two statements with the same skeleton, each pair once.

    ``None`` where they differ in more, or keep a size in one place that another place replaces. Names that were not
    compared before are of the same value from now on.
    """
    same = True
    pairs: dict[tuple[str, str], None] = {}
    for before, first, second in zip(["", *old], old, new):
        if _is_size(first) and _is_size(second):
            pairs[first, second] = None
        elif second.isidentifier():
            attribute = "." if before == "." else ""  # (`add` of `x.add(1)` is not the value `add`)
            first, second = attribute + first, attribute + second
            same &= olds.setdefault(second, first) == first and news.setdefault(first, second) == second
        else:
            same &= first == second
    kept = {first for first, second in pairs if first == second}
    replaced = [pair for pair in pairs if pair[0] != pair[1]]
    return replaced if same and not any(first in kept for first, _ in replaced) else None
