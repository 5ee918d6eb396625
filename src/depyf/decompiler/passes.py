"""The passes of a decompilation, in their order: the one list of them.

A code object becomes operations (``bytecode``), these a control-flow graph (``cfg``). Then the passes run:

* :data:`SIMPLIFY`, for code that torch.compile wrote: graph to smaller graph;
* :data:`RESTRUCTURE`: what the compiler does to structured code is undone, on the graph;
* :data:`STRUCTURE`: the graph becomes statements;
* :data:`FINISH`: what the compiler puts at the beginning and the end of a body goes;
* :data:`USER_WORDS`, for code that torch.compile wrote: the tree in the words of the user's program.

The text of the tree is then compiled and proven (``proof``), by code that shares nothing with the passes.

A pass is a function that changes what it is given. ``depyf decompile --stages`` prints that after each pass, from this
list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from ..cfg.graph import Cfg
from ..values import frozen
from . import bodies
from .bodies import Body
from .dynamo import readable as words
from .dynamo import simplify
from .dynamo.simplify.resumed import forget_under_cleanups, ordinary_with
from .structure import fold_expressions, walk
from .structure.analysis import RegionCfg
from .structure.arrange import arrange
from .structure.spell_tests import join_statements, spell_tests
from .undo import match_patterns
from .undo.cleanup_copies import outline_cleanups, place_returns
from .undo.duplicate_ends import merge_breaks, merge_ends, merge_returns, thread_jumps
from .undo.except_star import classify_handlers, desugar_except_star
from .undo.loop_inversion import mark_iterator_pops, split_breaks, undo_loop_inversion

Subject = TypeVar("Subject")


@frozen
class Pass(Generic[Subject]):
    """A named step, which changes its subject; ``does`` says how, in one line of ``--stages``."""

    name: str
    run: Callable[[Subject], None]
    does: str


#: Called with each pass that has run, and what it has changed.
Trace = Callable[[str, object], None]


def on_cfg(step: Callable[[RegionCfg], None]) -> Callable[[Body], None]:
    """Return the step as one on the graph of a body."""
    return lambda body: step(body.cfg)


def on_regions(step: Callable[[RegionCfg], None]) -> Callable[[Body], None]:
    """Return the step as one on the graph of a body that has exception handlers."""
    return lambda body: step(body.cfg) if body.cfg.handles else None


def on_graph(step: Callable[[Cfg], Cfg]) -> Callable[[simplify.Simplification], None]:
    """Return the step as one on the graph of code that torch.compile wrote."""
    def run(work: simplify.Simplification) -> None:
        work.graph = step(work.graph)
    return run


SIMPLIFY: Sequence[Pass[simplify.Simplification]] = (
    Pass("ordinary_with", on_graph(ordinary_with),
         "a `with` that Dynamo enters again after a graph break becomes one ordinary `with`"),
    Pass("forget_under_cleanups", on_graph(forget_under_cleanups),
         "handlers that only clean up keep no values on the stack"),
    Pass("leave_user_part", simplify.leave_user_part,
         "the part of a resume function that is the user's own is left as it is, at its places"),
    Pass("update_at_once", simplify.update_at_once, "a loop that fills a dictionary is read as one call of update"),
    Pass("evaluate", simplify.evaluate, "lists that are built, read and dropped here leave nothing"),
)

RESTRUCTURE: Sequence[Pass[Body]] = (
    Pass("mark_iterator_pops", on_cfg(mark_iterator_pops),
         "operations that drop the iterator of a loop are marked: `break` and `return` leave loops there"),
    Pass("thread_jumps", on_cfg(thread_jumps), "edges lead straight through empty blocks"),
    Pass("desugar_except_star", on_regions(desugar_except_star),
         "the clauses of `except*` become alternatives, as those of `except` are"),
    Pass("classify_handlers", on_regions(classify_handlers),
         "each exception handler is classified: with, finally, except, named, async for"),
    Pass("outline_cleanups", on_regions(outline_cleanups),
         "copies of clean-up code on the ways out of a body become one LEAVE each"),
    Pass("place_returns", place_returns, "a `return` after a clean-up gets the place at which it was written"),
    Pass("merge_ends", lambda body: merge_ends(body.cfg) if body.is_namespace else None,
         "the copies of a module's or class's end become one"),
    Pass("find_patterns", match_patterns.find_patterns, "the code of a `case` becomes one test"),
    Pass("split_breaks", on_cfg(split_breaks), "blocks end where a `break` leaves its loop"),
    Pass("undo_loop_inversion", on_cfg(undo_loop_inversion),
         "the two copies of the test of a `while` become one"),
    Pass("merge_returns", merge_returns,
         "the copies of a `return` or `raise`, which have one place in the source, become one"),
    Pass("merge_breaks", on_cfg(merge_breaks),
         "the `break` and the end of a loop at the end of a handler leave that in one place"),
    Pass("fold_expressions", fold_expressions.fold_expressions,
         "`and`, `or`, `x if c else y`, chained comparisons and inlined comprehensions become one operation"),
)

STRUCTURE: Sequence[Pass[Body]] = (
    Pass("structure", walk.write_statements, "the graph becomes nested statements"),
    Pass("write_cases", match_patterns.write_cases, "tests of cases become `match`"),
    Pass("arrange", arrange, "branches, guards and exits stand as the line table says that they were written"),
    Pass("join_statements", join_statements, "imports and `del` of several parts are one statement each"),
    Pass("spell_tests", spell_tests, "`not` stands where columns say, and a second `if` on a line of its own is one"),
)

FINISH: Sequence[Pass[bodies.Unfinished]] = (
    Pass("drop_annotation_stores", bodies.drop_annotation_stores, "statements by which 3.14 stores annotations go"),
    Pass("strip_preamble", bodies.strip_preamble,
         "the names and cells that a class stores, and the docstring's assignment, go"),
    Pass("place_annotations", bodies.place_annotations, "3.14: annotations take their places"),
    Pass("declare", bodies.declare, "docstring, `global` and `nonlocal` take their places"),
)

USER_WORDS: Sequence[Pass[words.Readable]] = (
    Pass("name_constants", words.Readable.name_constants, "constants of torch's in the words of the program"),
    Pass("import_globals", words.Readable.import_globals, "globals that Dynamo added become imports"),
    Pass("follow_variables", words.Readable.follow_variables, "variables that are bound once to a known object"),
    Pass("fold_repeats", words.Readable.fold_repeats, "what repeats from layer to layer is written once"),
    Pass("write_imports", words.Readable.write_imports, "the import statements are put at the beginning"),
)

#: All passes, in the order in which they run on code that torch.compile wrote.
ALL: Sequence[Pass[Any]] = (*SIMPLIFY, *RESTRUCTURE, *STRUCTURE, *FINISH, *USER_WORDS)


def run(passes: Sequence[Pass[Subject]], subject: Subject, trace: Trace | None = None) -> None:
    """Run passes on a subject, in their order."""
    for each in passes:
        each.run(subject)
        if trace is not None:
            trace(each.name, subject)
