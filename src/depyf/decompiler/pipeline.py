"""Puts the stages together: write, prove, write what was not proven in its next tier."""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import CodeType
from typing import Any

from .. import guarded
from ..bytecode import operations as o
from ..bytecode.canonical import canonicalise
from ..bytecode.code import CO_COROUTINE, CO_NEWLOCALS, Code
from ..bytecode.errors import Unreadable, one_line, shown_name
from ..cfg.graph import Cfg, StackMismatch, build
from . import passes
from .constants import name_constants
from .dynamo.facts import Facts
from .dynamo.readable import Readable, word_for_new
from .dynamo.simplify import Simplification
from .dynamo.simplify.filling import Loops
from .emit.escapes import CannotEscape, escaped
from .emit.layout import WIDTH, laid_out
from .emit.text import emit, text_of
from .errors import EMIT, CannotDecompile, why
from .fallback import dispatch_loop
from .names import is_name, renamed
from .nodes import nodes_of
from .proof.equivalence.objects import ALWAYS_NOTE, MEMBERS_NOTE
from .proof.equivalence.unobservable import ITEMS_NOTE
from .proof.exact import same_program
from .proof.parts import Proof, prove
from .proof.recompile import Compiler, ForeignError, Interpreter, compile_function, compile_here, form_of
from .result import Decompiled, Fidelity, Options, Part, Tier, Tiers
from .scopes import top_level

__all__ = ["Decompiled", "Failed", "Fidelity", "Part", "decompile_code"]


def decompile_code(
    code: CodeType | Code,
    *,
    name: str | None = None,
    simplify: bool = False,
    verify: bool = True,
    parameter_names: Mapping[str, Sequence[str]] | None = None,
    rename: Mapping[str, str] | None = None,
    keep_variables: bool = False,
    interpreter: Interpreter | None = None,
    facts: Facts | None = None,
    trace: passes.Trace | None = None,
) -> Decompiled:
    """Decompile one code object.

    Args:
        code: what to decompile.
        name: name of the function in the text (default: the code's own, made legal).
        simplify: remove torch.compile's list juggling (fidelity becomes ``equivalent``).
        verify: prove the result; without it everything is ``unproven``, and so is code of another version
            without an ``interpreter``.
        parameter_names: parameter names of functions that the code calls by global name; used to name
            values (``x`` in ``__resume_at_102_2(..., x)``).
        rename: global names to show differently (``__compiled_fn_1_9148bb58... -> __compiled_fn_1``).
        keep_variables: with ``simplify``: the user's own variables are not removed (for resume functions, which are the
            user's code after a few lines of torch's).
        interpreter: of the code's version, to compile the text where the running one cannot (nothing is executed).
        facts: with ``simplify``: those about the live objects that the code was compiled for. The text then has
            the forms of :mod:`depyf.decompiler.dynamo`, and ``runs`` is its expansion.
        trace: called with the name of each pass that has run and what it has changed.

    Raises:
        Unreadable: the code is malformed, or there is no source that it could be written as.
        ForeignError: the interpreter is of another version than the code, or cannot be run.
    """
    source = code if isinstance(code, Code) else Code.of(code)
    try:
        if source.name in _AROUND and (around := _in_expression(source)) is not None:
            found = decompile_code(around, verify=verify)
            if found.fidelity is not Fidelity.FALLBACK:
                return found
        with guarded.paused():  # (of a large function it would look at all that is known of it many times)
            def run(escapes: bool = True) -> Decompiled:
                job = _Job(source, name, simplify, verify, parameter_names, rename, keep_variables, interpreter, facts,
                           escapes)
                job.options.trace = trace
                with contextlib.closing(job):
                    return job.run()

            try:
                return run()
            except CannotEscape:
                return run(escapes=False)
    except (Unreadable, ForeignError):
        raise
    except Exception as error:
        raise Failed(why(error), source) from error


class Failed(Unreadable):
    """No form of the code could be written: there is none (no compiler makes such code), or an error in depyf."""

    def __init__(self, message: str, code: Code) -> None:
        message = f"{shown_name(code.filename)}: {shown_name(code.qualname)} cannot be written as source: {message}"
        super().__init__(one_line(message), code.filename, 0)


#: Expressions around a comprehension, which is no function that a text could define.
_AROUND = {"<genexpr>": "({0}{2} for _ in {1})", "<listcomp>": "[{0}{2} for _ in {1}]",
           "<setcomp>": "{{{0}{2} for _ in {1}}}", "<dictcomp>": "{{{0}: _{2} for _ in {1}}}"}


def _in_expression(code: Code) -> Code | None:
    """Return the code of an expression around a comprehension's code, over ``iterable``; ``None`` for other code."""
    awaits = bool(code.flags & CO_COROUTINE)
    if code.argcount != 1 or code.version != sys.version_info[:2] or awaits and code.freevars:
        return None
    used = {*code.names, *code.varnames, *code.freevars, *code.cellvars}
    iterable = next(name for count in itertools.count() if (name := "iterable" + "_" * count) not in used)
    if not all(map(is_name, code.freevars)):
        return None
    free = ", ".join(code.freevars)
    is_async = next((op.kind == o.GET_ANEXT_AWAIT for op in canonicalise(code).ops
                     if op.kind in (o.FOR_ITER, o.GET_ANEXT_AWAIT)), False)
    text = _AROUND[code.name].format("await 0" if awaits else f"({free})", iterable, " async" if is_async else "")
    around = compile_here(f"lambda {free}: {text}" if free else text, "<expression>", "await" if awaits else "eval")

    def replaced(within: Code) -> Code:
        if within.name == code.name:
            return _called(code, within.qualname)
        consts = tuple(replaced(each) if isinstance(each, Code) else each for each in within.consts)
        return replace(within, consts=consts, origin=None)

    return replaced(Code.of(around))


def _called(code: Code, name: str) -> Code:
    """Return a code object with another qualified name, which the names of those inside begin with."""
    made: dict[Code, Code] = {}  # (one may be referred to exponentially often)

    def renamed(each: Any) -> Any:
        if isinstance(each, Code) and each not in made:
            made[each] = replace(each, qualname=name + each.qualname.removeprefix(code.qualname), origin=None,
                                 consts=tuple(map(renamed, each.consts)))
        return made[each] if isinstance(each, Code) else each

    result: Code = renamed(code)
    return result


#: How many reasons a note gives before it only counts.
_REASONS_SHOWN = 5


def _is_namespace(code: Code) -> bool:
    """Return whether it is the code of a module or a class, which has no text as a function."""
    return not code.flags & CO_NEWLOCALS


def _compiler(code: Code, interpreter: Interpreter | None) -> Compiler | None:
    """Return the function that compiles a text to code of the original's version; ``None`` without an interpreter."""
    if code.version == sys.version_info[:2] or interpreter is None:
        return compile_here if code.version == sys.version_info[:2] else None
    if interpreter.version != code.version:
        wanted, actual = (".".join(map(str, version)) for version in (code.version, interpreter.version))
        raise ForeignError(f"{interpreter.path} is Python {actual}, but the code is of Python {wanted}")
    return interpreter.compile_tree


class _Job:
    """One decompilation: what cannot be written, compiled or proven gets its next tier, until the rest is proven."""

    def __init__(
        self, code: Code, name: str | None, simplify: bool, verify: bool,
        parameter_names: Mapping[str, Sequence[str]] | None, rename: Mapping[str, str] | None,
        keep_variables: bool = False, interpreter: Interpreter | None = None, facts: Facts | None = None,
        escapes: bool = True,
    ) -> None:
        self.readable: Readable | None = None
        self.refused: list[str] = []
        self.folds = True  # until it is found that what repeats cannot be written once
        self.has_words = False  # whether the text that was written last is in the user's words
        self.runs: ast.Module | None = None
        self.makes_objects = False  # whether it has the form for that
        self.renamed = renamed(code, escapes)
        self.code = code = self.renamed.code
        self.name = name
        self.compiler = _compiler(code, interpreter)
        self.program, self.constants = name_constants(canonicalise(code))
        form = form_of(code, self.program.ops)
        self.verify = verify and self.compiler is not None and (form == "exec" or self.compiler is compile_here)
        self.facts = facts if simplify and self.verify else None
        first = Tier.READABLE if self.facts is not None else Tier.SIMPLIFIED if simplify else Tier.STRUCTURED
        self.tiers = Tiers(code, first, self.verify)
        self.options = Options(self.tiers, dispatch_loop)
        self.options.form = form
        self.options.rename = dict(rename or {})
        self.new = word_for_new(self.program.ops, self.options.rename, self.facts)
        if self.constants:
            self.options.graphs[code] = build(self.program)

        if simplify:
            self.options.simplified[code] = cache(
                lambda: self.simplified(None, parameter_names, keep_variables, rename))
        if self.facts is not None:
            self.options.readable[code] = cache(
                lambda: self.simplified(self.facts, parameter_names, keep_variables, rename))
            if keep_variables:
                self.options.resuming.add(code)

    def run(self) -> Decompiled:
        while True:
            try:
                text, tree, recompiled = self.written()
            except (ForeignError, CannotEscape):
                raise
            except Exception as error:
                if not self.in_other_words(why(error)):
                    self.blame(why(error))
                continue
            if recompiled is None:
                return self.result(text, tree, [])
            original = self.program if self.constants else self.code
            proofs = prove(original, recompiled, self.tiers, self.options.rename, self.facts)
            try:
                refusals = self.facts.refusals() if self.facts is not None else ()
            except Exception as error:
                why(error)
                refusals = ()
            self.refused = [f"written in torch's long form: {place} ({reason})" for place, reason in refusals]
            failed = [(each.code, each.verdict) for each in proofs if each.verdict is not None and not each.verdict]
            if not failed:
                return self.result(text, tree, proofs)
            if self.in_other_words(failed[0][1].where):
                continue
            for failing, verdict in failed:
                if not self.options.arrange_no_more(self.tiers.owner(failing)) and not self.proven_otherwise(failing):
                    self.demote(failing, verdict.where)

    def proven_otherwise(self, code: Code) -> bool:
        """Look for another form of a function that is the same program; the next text has it."""
        if self.tiers.of(code) is not Tier.STRUCTURED or self.tiers.owner(code) is not code or _is_namespace(code):
            return False
        search = self.options.search(code)
        while search.advance():
            try:
                _, tree = emit(top_level(code, self.options))
                if same_program(code, self.compiled(tree, code), ignore_name=True):
                    return True
            except ForeignError:
                raise
            except Exception as error:
                why(error)
        return False

    def simplified(
        self, facts: Facts | None, parameter_names: Mapping[str, Sequence[str]] | None, keep_variables: bool,
        rename: Mapping[str, str] | None,
    ) -> Cfg:
        """Return the graph without torch.compile's list juggling; without facts, the graph itself if that fails."""
        graph = build(self.program)
        work = Simplification(graph, parameter_names or {}, keep_variables, rename or {}, facts, self.new)
        try:
            passes.run(passes.SIMPLIFY, work, self.options.trace)
        except (CannotDecompile, StackMismatch):
            if facts is not None:
                raise
            return graph
        if work.authored:
            self.options.resuming.add(self.code)
        return work.graph

    def close(self) -> None:
        """Let go of facts: live objects must not wait for the garbage collector."""
        self.options.readable.clear()
        self.options.simplified.clear()
        self.facts = self.readable = None

    def in_other_words(self, reason: str) -> bool:
        """Have repetitions expanded in the next text, then all words of the user's; return whether it is another.

        A text with facts is given up only if its words are at fault; ``reason`` says why the present one is not taken.
        """
        folded, self.folds = self.folds, False
        tier = self.tiers.of(self.code)
        if not self.has_words or tier > Tier.SIMPLIFIED:
            return False
        if folded:
            return True
        if tier is Tier.READABLE:
            if self.runs is not None:
                return False
            self.demote(self.code, reason)
        del self.options.readable[self.code]
        return True

    def written(self) -> tuple[str, ast.Module | None, Code | None]:
        """Return the whole as text, its tree where that was made, and what it compiles to if it is to be proven."""
        self.runs, self.has_words = None, False
        module = top_level(self.code, self.options, self.name)
        if self.tiers.of(self.code) <= Tier.SIMPLIFIED:
            Loops(module).visit(module)
        if self.verify and self.compiler is compile_here and self.tiers.of(self.code) is Tier.STRUCTURED \
                and not self.renamed.escaped:
            # (The usual case. For a text the compiler needs half the time that it needs for a tree from depyf.)
            text = text_of(module)
            try:
                return text, None, self.compiled(text, self.code, bool(self.constants))
            except (ValueError, OverflowError) as error:
                raise CannotDecompile(EMIT, f"{type(error).__name__}: {error}") from error
        text, tree = emit(module)
        if self.renamed.escaped:
            text, proven = escaped(tree, self.renamed.escaped)
            return text, None, self.compiled(proven, self.code, bool(self.constants)) if self.verify else None
        if self.options.is_readable(self.code):
            # (in the forms of :mod:`.dynamo`; what runs is their expansion)
            assert self.facts is not None
            self.has_words = True
            self.readable = Readable(
                tree, self.facts, self.program, self.options.rename, self.constants,
                self.folds and self.tiers.of(self.code) is Tier.READABLE, self.new)
            passes.run(passes.USER_WORDS, self.readable, self.options.trace)
            self.makes_objects = any(isinstance(node, ast.Name) and node.id == self.new for node in nodes_of(tree))
            text = laid_out(tree)
            self.runs = self.readable.written_out(ast.parse(text))
        elif self.tiers.of(self.code) <= Tier.SIMPLIFIED and len(max(text.splitlines(), key=len)) > WIDTH:
            text = laid_out(tree)
            tree = ast.parse(text)
        runs = self.runs or (tree if self.compiler is compile_here else text)  # (another interpreter takes text)
        return text, tree, self.compiled(runs, self.code, bool(self.constants)) if self.verify else None

    def compiled(self, tree: ast.Module | str, code: Code, constants: bool = False) -> Code:
        compiler = self.compiler or compile_here
        form = self.options.form
        if code is self.code and (form == "await" or form != "exec" and self.tiers.of(code) is not Tier.DISPATCH):
            compiler = functools.partial(compile_here, form=form)
        return compile_function(tree, code, constants, compiler)

    def demote(self, code: Code, reason: str) -> None:
        owner = self.tiers.owner(code)
        if owner is not code:
            reason = f"{code.name}: {reason}"
        if not self.tiers.demote(owner, reason):
            raise Failed(self.tiers.why(owner), owner)

    def blame(self, reason: str) -> None:
        """Move the code objects at fault to their next tier: the whole could not be written or compiled.

        They are the innermost ones that fail alone, or else class bodies, which have no text alone, or else all.
        """
        left = [code for code in reversed(self.tiers.names) if self.tiers.of(code) is not Tier.DISPATCH]
        failing: list[Code] = []
        fails_inside: set[Code] = set()
        for code in left:
            if code is not self.code and self.tiers.owner(code) is code and not _is_namespace(code) and (
                    code not in fails_inside and not self.can_be_written(code)):
                failing.append(code)
                fails_inside.update(self.tiers.around(code))
        classes = [code for code in left if code is not self.code and _is_namespace(code)]
        for code in failing or classes or left:
            if self.tiers.of(code) is not Tier.DISPATCH:
                self.demote(code, reason)
        if not left:
            self.demote(self.code, reason)

    def can_be_written(self, code: Code) -> bool:
        """Return whether a code object can be written and compiled alone."""
        try:
            _, tree = emit(top_level(code, self.options))
            if self.verify:
                self.compiled(tree, code)
        except ForeignError:
            raise
        except Exception as error:
            why(error)
            return False
        return True

    # --- the result -------------------------------------------------------------------------------
    def result(self, text: str, tree: ast.Module | None, proofs: Sequence[Proof]) -> Decompiled:
        by_code = {proof.code: proof for proof in proofs}
        parts = tuple([self.part(code, by_code.get(code), text) for code in self.tiers.names])
        fidelity = max([part.fidelity for part in parts], key=_WORSE.__getitem__)
        inner = [f"{part.name}: {part.reason}" for part in parts[1:] if part.reason]
        if len(inner) > _REASONS_SHOWN:
            inner[_REASONS_SHOWN:] = [f"and {len(inner) - _REASONS_SHOWN} others"]
        notes = dict.fromkeys([n for n in (_FORMS.get(self.options.form), parts[0].reason, *inner) if n])
        return Decompiled(text, fidelity, "; ".join(notes), tree if self.runs is None else None, parts, self.runs)

    def part(self, code: Code, proof: Proof | None, text: str) -> Part:
        name, units = self.tiers.names[code], len(code.bytecode) // 2
        tier = self.tiers.of(code)
        changed = self.renamed.note(code)
        if not self.verify:
            fidelity = Fidelity.FALLBACK if tier is Tier.DISPATCH else Fidelity.UNPROVEN
            reasons = [changed, self.tiers.why(code)]
        elif proof is None:
            # No path through the program leads to it: the text has nothing to show for it, and loses nothing.
            fidelity, reasons = Fidelity.EXACT, []
        elif proof.verdict is None:
            fidelity = Fidelity.FALLBACK
            reasons = [changed, *self.stated_constants(code, text), self.tiers.why(code)]
            reasons = reasons if any(reasons) else ["is inside one that fell back"]
        if not self.verify or proof is None or proof.verdict is None:
            return Part(name, code.firstlineno, units, fidelity, "; ".join(filter(None, reasons)))
        notes: list[str] = []
        if not proof.exact:
            if tier is Tier.READABLE:
                notes = [MEMBERS_NOTE] * (MEMBERS_NOTE in proof.verdict.notes)
                notes = notes + [_MADE_AGAIN.format(self.new)] * self.makes_objects or [_SIMPLIFIED]
                # (Items of a graph's result are read as those of any tuple.)
                notes += [note for note in proof.verdict.notes if note != ITEMS_NOTE]
            else:
                notes = [_SIMPLIFICATION[tier]]
                if self.facts is not None and code is self.code and tier is Tier.SIMPLIFIED:
                    reason = self.tiers.reasons[code][0]
                    notes.append(f"all is written in torch's long form: a shorter text was not proven ({reason})")
                notes += proof.verdict.notes
        has_words = code is self.code and self.runs is not None
        if has_words and self.readable is not None and self.readable.names_classes:
            notes.append(ALWAYS_NOTE)
        notes += [*([changed] if changed else ()), *self.stated_constants(code, text), *(self.refused * has_words)]
        fidelity = Fidelity.EQUIVALENT if notes or self.unsaid_constants(code) else Fidelity.EXACT
        if changed and self.renamed.visible(code):
            fidelity = Fidelity.FALLBACK  # the same for code that does not read the variable by its name
        return Part(name, code.firstlineno, units, fidelity, "; ".join(dict.fromkeys(notes)),
                    proof.verdict, proof.recompiled, code)

    def unsaid_constants(self, code: Code) -> dict[str, str]:
        """Return the names, in the text that runs, of constants that source cannot express, with what these are."""
        if code is not self.code or not self.constants:
            return {}
        said = self.readable.constants.values() if self.runs is not None and self.readable is not None else ()
        return {name: value for name, value in self.constants.items() if name not in said}

    def stated_constants(self, code: Code, text: str) -> list[str]:
        """Return the notes on such names in a text, which need not have all that what runs has."""
        return [f"{name} stands for {value}, a constant that source cannot say"
                for name, value in self.unsaid_constants(code).items() if re.search(rf"\b{re.escape(name)}\b", text)]


#: Notes on the forms of code that are no modules.
_FORMS = {
    "eval": "an expression: compile(..., 'eval')", "single": "an interactive statement: compile(..., 'single')",
    "await": "a cell of a notebook: compile(..., flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)",
}
#: Fidelities, from the best to the worst.
_WORSE = {fidelity: number for number, fidelity in enumerate(Fidelity)}
_SIMPLIFIED = "torch's lists and tuples that only carry values to and fro are left out"
_SPILLED = "values kept on the stack have names"
_MADE_AGAIN = "{}(class, ...) does not call the class"
_SIMPLIFICATION = {Tier.SIMPLIFIED: _SIMPLIFIED, Tier.STRUCTURED: "", Tier.SPILLED: _SPILLED}
