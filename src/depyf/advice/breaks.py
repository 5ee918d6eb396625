"""The rules for graph breaks, and for what torch skips, mostly for the same causes: one table.

A row names what torch recorded (the event), the facts that have to hold, and the sentence with further facts in braces:
where one of them is not known the row is silent. A row may give an edit instead. The first row that speaks is the
advice; one without a name says that there is none.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from string import Formatter

from ..torch_text.met import bound_method, is_step_of_scheduler
from . import branches, edits, outlines
from .edits import REORDER, SCALARS
from .facts import NAMED, SHAPES, Facts
from .model import Advice
from .source import Site, is_own

#: Functions that read what changes while the program runs: a clock, or what a process uses.
_READING = frozenset({each + unit for each in ("time", "perf_counter", "monotonic", "process_time", "thread_time")
                      for unit in ("", "_ns")}
                     | {"now", "utcnow", "today", "getrusage", "get_traced_memory", "memory_allocated",
                        "max_memory_allocated", "memory_reserved", "max_memory_reserved"})
#: Operators of torch's that run without values and give a new symbol (torch/_subclasses/fake_impls.py, torch 2.13).
_GIVE_SYMBOLS = frozenset({
    "nonzero", "nonzero_numpy", "_unique", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive",
    "repeat_interleave", "masked_select", "bincount", "index", "argwhere", "_pack_padded_sequence",
    "_padded_dense_to_jagged_forward"})
#: Methods of a logger that log nothing.
_ASKING = frozenset({"isEnabledFor", "getEffectiveLevel", "hasHandlers"})
#: Operators of torch's that give a truth value of Python's.
_TRUTHS = frozenset({"allclose", "equal", "is_nonzero"})
_RNN = "torch._dynamo.config.allow_rnn = True"
_AUTOGRAD = "torch._dynamo.config.trace_autograd_ops = True"
#: The rules on what a library does at its first call only, and on what an earlier break in the same line makes.
SET_UP, _FOLLOWS = "set up", "follows"
#: The rules on a number whose value the program needs, so that no symbol may take its place.
NEEDS_NUMBER = ("number_outside", "text_as_key")
#: The settings that torch has for the whole program, each with the events that it may make an error of, and the rules
#: that advise another change there.
WAITS = {SCALARS: (("item", "operator"), NEEDS_NUMBER), SHAPES: (("size",), ("numbers_of_size", "turn", "rest"))}
#: The rules by which a function with a loop stays in plain Python, and what a turn of the loop computes is compiled.
IN_TURN = ("rest", "turn")

# Sentences of several rows.
_TURN = ("compile what one turn of the loop at line {loop} computes{also_if_computes}: a function of its own with "
         "`@torch.compile`, called in the loop; ")
_HOW_OFTEN = "how often the loop turns depends on values in a tensor, and no graph has such a loop"
_EACH_TURN = "one call of compiled code for each turn"
_DRAWN = "torch represents a random number as a tensor while it traces; a number from outside is an input of the graph"
_NEEDS_NUMBER = ("{fixed_use} needs its value; with a symbol of the graph there (the setting "
                 "`capture_scalar_outputs`) torch 2.13 may break the graph again, or end in an error")
_COMPARED = ("{compared} compares numbers of a list: a graph is for these values alone, or (of a search in a list of "
             "symbols torch 2.13 takes none for equal, without an error) gives another result")
#: (A symbol for the number, or `.format`, would be no help: torch 2.13 goes on as if the text were not there.)
_IN_PYTHON = "make the text, and do `{looked_up}`, in plain Python, where `{compiled}` is called"
_NO_TEXT = ("outside of a graph the number has a value; inside, torch makes its text only when the graph is done, and "
            "would look up what is no text yet")
_PASSED = "what the compiled function itself needs of what is looked up has to be passed to it"
_TRUTH = "it gives a truth value of Python's, and a graph has no values while it is captured"
_SYMBOL = "the number is then a symbol of the graph"
_SIZE_SYMBOL = "the size of the result is then a symbol of the graph"
_NOT_TRACED = "torch does not trace `{call}`"
_PARAMETER = "`{function}`, and each compiled function that calls it, has one more parameter"
_TEST_BEFORE = ("evaluate `{given_test}` before the compiled function is called{also_each_turn}, and pass the result "
                "to {passed_to}: `True` or `False`")
_VERSIONS = f"a version for each combination of results; {_PARAMETER}{{also_logs}}"
_DIVIDED = "two compiled functions in place of one; what both need is returned by the first"
_OUTSIDE = "what follows the line is no part of the graph"
_ENTERED = "torch does not trace how this context is entered and left"
_TRACED = "torch then traces the backward pass into the same graph"
_DETACHED = "tensors of the same graph of gradients that are used after the call have to be detached first"
_UNROLLED = ("the loop over time is unrolled: compile time and kernels grow with the length of the sequence, and each "
             "length has a version of its own")


@dataclass(frozen=True)
class Rule:
    """One row.

    Attributes:
        name: of the rule.
        events: those of :data:`~depyf.torch_text.met.KINDS`; ``"*"``: any.
        change, why, cost, elsewhere, next_break, leaves: the sentence, as in :class:`~.model.Advice`.
        facts: whether the facts hold.
        setting: a line that sets an option of torch, which is the change.
        edit: gives the advice instead, or ``None``.
    """

    name: str
    events: str
    change: str = ""
    why: str = ""
    cost: str = "none"
    facts: Callable[[Facts], object] = lambda at: True
    setting: str = ""
    edit: Callable[[Facts], Advice | None] | None = None
    elsewhere: bool = False
    next_break: str = ""
    leaves: bool = False

    def advice(self, at: Facts) -> Advice | None:
        """Return the advice of the row; ``None`` where a fact of its sentence is not known."""
        if self.edit is not None:
            return self.edit(at)
        sentence = (self.change or f"set `{self.setting}`", self.why, self.cost, self.next_break)
        names = {name for each in sentence for _, name, _, _ in Formatter().parse(each) if name}
        known = {name: NAMED[name](at) for name in names}
        if not all(value or name.startswith("also_") for name, value in known.items()):
            return None
        change, why, cost, after = (each.format(**known) for each in sentence)
        settings = (self.setting,) if self.setting else ()
        return Advice(self.name, change, why, cost, settings=settings, elsewhere=self.elsewhere, next_break=after,
                      leaves=self.leaves)


def _site(propose: Callable[[Site], Advice | None]) -> Callable[[Facts], Advice | None]:
    return lambda at: propose(at.site)


def _is_drawn(at: Facts) -> bool:
    """Return whether torch met a random number of Python's; of a ``range`` up to one it does not say what it is of."""
    return at.met.is_number or at.met.kind == "python type"


def _prints(at: Facts) -> bool:
    """Return whether the statement prints, in no function that an operator calls."""
    return bool(at.calls("print")) and not at.met.is_in_operator


def _gives_no_symbol(at: Facts) -> bool:
    return at.met.has_no_meta or at.met.module == "aten" and (
        at.met.name not in _GIVE_SYMBOLS or at.met.overload == "out")


def _is_in(at: Facts, path: str) -> bool:
    where = at.broken.location
    return where is not None and where.filename.replace("\\", "/").endswith(path)


def _steps(at: Facts) -> bool:
    """Return whether the graph ends before the ``step`` of one of torch's optimizers, or of a scheduler around it."""
    return _is_in(at, "torch/optim/optimizer.py") or is_step_of_scheduler(at.broken)


def _computes_loss(at: Facts) -> bool:
    """Return whether the graph itself computes the loss: of another one torch 2.13 traces nothing, without an error."""
    loss = at.loss
    return not at.site.resumed and isinstance(loss, ast.Name) and at.values.is_tensor(loss.id) and (
        not at.values.is_given(loss.id)) and not at.returns_gradients


RULES: tuple[Rule, ...] = (
    Rule(SET_UP, "parameter attribute context iterator",
         "call the model once in plain Python, with the arguments of the call that breaks here, before `torch.compile` "
         "sees a call: `model(*inputs)`",
         "here the library makes modules or hooks, which it does at the first call only", "one more call",
         facts=lambda at: at.sets_up, elsewhere=True),

    # Random numbers, loops that the data ends, branches.
    Rule("drawn", "branch item number", _TEST_BEFORE, _DRAWN, _VERSIONS,
         facts=lambda at: _is_drawn(at) and at.loop_test is None and len(at.draws) < 2),
    Rule("drawn", "branch item number operator skipped builtin",
         "call {draws} before the compiled function is called{also_in_order}, and pass what they give to {passed_to}",
         _DRAWN, f"{_PARAMETER} for each; torch compiles again when such a number changes",
         facts=lambda at: _is_drawn(at) or at.reads_drawn or at.call in at.draws and len(at.draws) > 1),
    Rule("", "branch item number", facts=_is_drawn),
    Rule("drawn", "operator", "call `{numpy_draw}` before the compiled function is called{also_each_turn}, and pass "
         "what it gives to {passed_to}", "torch needs the value of a random number of NumPy's where it is drawn",
         f"{_PARAMETER}; torch compiles again when such a number changes",
         facts=lambda at: not at.made_of(at.numpy_draw)),
    Rule("", "operator", facts=lambda at: at.numpy_draw is not None),
    Rule("rest", "branch item symbol",
         "compile what follows the test in a turn of the loop at line {loop}: a function of its own with "
         "`@torch.compile`, called in the loop; the test `{test}` and {plain} itself stay in plain "
         "Python{also_grown}", "whether a turn goes on depends on values in a tensor; what it then computes is a graph "
         "by itself", "one call of compiled code for each turn that goes on",
         facts=lambda at: at.ends_turn and at.skips_rest),
    Rule("turn", "branch item symbol",
         "compile what a turn of the loop at line {loop} computes before the test, and what it computes after it: "
         "functions of their own with `@torch.compile`, called in the loop; the test `{test}` and {plain} itself stay "
         "in plain Python{also_grown}", _HOW_OFTEN, "two calls of compiled code for each turn",
         facts=lambda at: at.ends_turn and at.divides_turn),
    Rule("turn", "branch item symbol",
         f"{_TURN}the test `{{test}}` and {{plain}} itself stay in plain Python{{also_grown}}", _HOW_OFTEN,
         _EACH_TURN, facts=lambda at: at.ends_turn),
    Rule("turn", "size", f"{_TURN}the loop and {{plain}} itself stay in plain Python{{also_in_turn}}", _HOW_OFTEN,
         _EACH_TURN, facts=lambda at: isinstance(at.statement, ast.For) or at.is_in_loop_of_data),
    Rule("branch", "branch assertion", edit=_site(branches.on_branch)),
    Rule("branch", "item", facts=lambda at: at.test, edit=_site(branches.on_branch)),
    Rule("branch", "operator", edit=_site(branches.on_branch), facts=lambda at: at.is_number and at.test and any(
        isinstance(each, ast.Name) and at.values.type_of(each.id) == "ndarray" for each in ast.walk(at.test))),

    # Numbers out of tensors.
    Rule("packed", "operator", f"give the module the padded batch, not the packed one, and set `{_RNN}`",
         "torch does not trace packed sequences: the size of each step is in a tensor",
         "the padding is computed, too: last states are others, and so is all that a bidirectional module returns; "
         f"{_UNROLLED}", facts=lambda at: _is_in(at, "torch/nn/modules/rnn.py")),
    Rule("text_as_key", "item operator", _IN_PYTHON, _NO_TEXT, _PASSED, facts=lambda at: at.is_number),
    Rule("number", "item", edit=edits.detached),
    Rule("element", "operator symbol", facts=lambda at: at.is_number and not at.is_of_data, edit=edits.element),
    Rule("turn", "operator size symbol",
         f"{_TURN}the test `{{loop_test}}` and {{plain}} itself stay in plain Python{{also_in_turn}}", _HOW_OFTEN,
         _EACH_TURN, facts=lambda at: at.sets_loop_test),
    Rule("number_outside", "item operator", "leave the loop at line {loop} as it is", _COMPARED,
         "the loop runs in plain Python; a function with `@torch.compile` that it calls with tensors is compiled",
         leaves=True, facts=lambda at: at.is_number),
    Rule("number_outside", "item operator",
         "compute the number before the compiled function is called, and pass it as an argument", _NEEDS_NUMBER,
         "what it is computed of is needed outside, too; for an index of a list, or the count of a loop, each number "
         "has a version of its own",
         facts=lambda at: at.is_number and at.is_number_given),
    Rule("number_outside", "item operator",
         "end what is compiled before this line: return the tensor, take the numbers and do `{comparing}` in plain "
         "Python, and pass no list of them to a compiled function of the rest", _COMPARED, _DIVIDED,
         facts=lambda at: at.is_number),
    Rule("number_outside", "item operator",
         "end what is compiled before this line: return the tensor, take the number in plain Python, and pass it to a "
         "compiled function of the rest", _NEEDS_NUMBER, "two compiled functions in place of one",
         facts=lambda at: at.is_number and not at.loops),
    Rule("number_outside", "item operator",
         f"{_TURN}{{plain}} itself, which takes the number{{also_item}} and passes it, stays in plain "
         "Python{also_grown}{also_of_data}", _NEEDS_NUMBER, _EACH_TURN, facts=lambda at: at.is_number),
    Rule("number_outside", "symbol",
         "end what is compiled before this line, and do what it does with the number in plain Python",
         "the number is a symbol of the graph, and the line needs its value", _OUTSIDE,
         facts=lambda at: at.is_of_compiled and not at.loops),
    Rule("capture_scalar_outputs", "item operator", why=_SYMBOL, setting=SCALARS,
         cost="{next_test} depends on it, and breaks the graph next", next_break="{next_test}",
         facts=lambda at: at.is_number),
    Rule("capture_scalar_outputs", "item operator",
         f"set `{SCALARS}`, if nothing that is done with the number needs its value: a branch, a key, an index (but "
         "for the only one of a tensor), a member of a set or of a list that is searched, a size that has to be equal "
         "to another one, a flag, the count of a loop, its text by `str`, a call that takes no symbol in its "
         "place{also_in_loop}", _SYMBOL, "a branch or a key that depends on the number may end the graph again",
         setting=SCALARS, facts=lambda at: at.is_number),

    Rule("truth", "operator", f"{_TURN}`{{call}}` and {{plain}} itself stay in plain Python", _TRUTH, _EACH_TURN,
         facts=lambda at: at.met.name in _TRUTHS and at.loops),
    Rule("truth", "operator",
         "return what `{call}` compares, and call it outside of what is compiled", _TRUTH, _OUTSIDE,
         facts=lambda at: at.met.name in _TRUTHS),

    # Shapes that depend on the data.
    Rule("rest", "size",
         "compile what follows the test `{skip_of_size}` in a turn of the loop at line {loop}: a function of its own "
         "with `@torch.compile`, called in the loop; this line, the test and {plain} itself stay in plain "
         "Python{also_grown}",
         "the size, and whether a turn goes on, depend on the data; what it then computes is a graph by itself",
         "one call of compiled code for each turn that goes on"),
    Rule("shape", "size", "keep the line out of `{compiled}`: run it outside of what is compiled",
         "torch cannot tell the shape of what `{operator}` returns (`capture_dynamic_output_shape_ops` changes nothing "
         "there)", _OUTSIDE, facts=_gives_no_symbol),
    Rule("numbers_of_size", "size",
         "have the compiled function return what this line needs, and run the line and what depends on it outside of "
         "what is compiled", "only the data tells how many numbers are taken at {numbers_of_size}, and where torch has "
         "a symbol for that it raises an error there", _OUTSIDE),
    Rule("capture_dynamic_output_shape_ops", "size", why=_SIZE_SYMBOL, setting=SHAPES,
         cost="{next_test_of_size} depends on it, and breaks the graph next", next_break="{next_test_of_size}"),
    Rule("capture_dynamic_output_shape_ops", "size", why=_SIZE_SYMBOL, setting=SHAPES,
         cost="a branch that depends on the size of the result breaks the graph again"),

    # Output, and what the program asks for.
    Rule("", "builtin reordered", facts=lambda at: _prints(at) and at.is_generator),
    Rule("print", "builtin reordered", facts=lambda at: _prints(at) and not at.is_inlined, edit=edits.printed),
    Rule("print out", "builtin reordered exception",
         "print outside of what is compiled: return what it shows, and print it where the function is called",
         "a graph cannot print; torch can print after it, but only what `print(a, b, ...)` shows without keywords, and "
         "not from a function that a compiled one calls: that text is lost", "the text comes after the call",
         facts=lambda at: _prints(at) and (at.met.event != "exception" or at.is_inlined and at.met.needs_text)),
    Rule("logger", "logger",  # (no setting to be tried: it loses messages, which no run shows)
         "return what it logs, and log that where the function is called; or, if compiled code need not log it at all, "
         "set `torch._dynamo.config.ignore_logging_functions.add({logger})`",
         "a graph cannot log; with the setting torch leaves the call out",
         "the message comes after the call, or never", facts=lambda at: at.met.last not in _ASKING),
    Rule("warning", "skipped", "return what it warns of, and warn where the function is called",
         "torch can warn after a graph, but only where it is given texts, numbers and tensors, and no class, and not "
         "from a function that a compiled one calls: that warning is lost",
         "the warning comes after the call", facts=lambda at: at.met.last == "warn" and (
             at.is_inlined or at.warns_of_class)),
    Rule("warning", "skipped", why="torch then warns after the graph instead of ending it here",
         cost="the warning comes when the graph is done", setting=f"{REORDER}(warnings.warn)",
         facts=lambda at: at.met.last == "warn"),
    Rule("optimizer", "asked skipped", "leave the line as it is: torch compiles `step` by itself",
         "torch's optimizers end the graph before `step`, so that its own has no gradients and changes parameters in "
         "place", "the line is no part of the graph around it", facts=_steps, leaves=True),

    # Calls that torch does not trace.
    Rule("deepcopy", "copy skipped", "make the copy of `{copied}` where `{compiled}` is called, and pass both",
         "torch does not trace `copy.deepcopy` of a tensor", "the copy is made outside of the graph",
         facts=lambda at: _is_in(at, "/copy.py") and not at.made_of(at.copied)),
    Rule("reading", "skipped", "call `{call}` before and after {call_of}, not in it",
         "torch does not trace it; passed to `{compiled}` as an argument, what it reads would tell nothing of that",
         "what is measured is all of `{compiled}`, not a part of it", facts=lambda at: at.met.last in _READING),
    Rule("", "skipped", facts=lambda at: bound_method(at.broken)),  # (The break follows from another one.)
    Rule("context", "context skipped builtin",
         "write `with {entered}{also_as}:` around {call_of}, not in it{also_named}{also_passed}",
         _ENTERED, "the context is then around all of the function", facts=lambda at: not at.made_of(at.entered)),
    Rule("skipped", "skipped builtin", "move `{call}` before {call_of}", _NOT_TRACED,
         "it then runs before all of the function", facts=lambda at: at.is_whole and at.is_first),
    Rule("skipped", "skipped builtin",
         "move `{call}` out of what is compiled, with all that it is in (condition, loop, `with`, `finally`): before "
         "{call_of}, if it needs nothing that the lines before it do; after it, if no line after it "
         "needs what it does; else divide the function there", _NOT_TRACED, "it runs at another time",
         facts=lambda at: at.is_whole),
    Rule("skipped", "skipped builtin", f"{_TURN}`{{call}}` and {{plain}} itself stay in plain Python", _NOT_TRACED,
         _EACH_TURN, facts=lambda at: at.loop_test is not None or at.made_of(at.call)),
    Rule("skipped", "skipped builtin logger", _TEST_BEFORE, _NOT_TRACED, _VERSIONS),
    Rule("skipped", "skipped builtin",
         "divide `{compiled}` at this line: compile what comes before it and what comes after it as functions of "
         "their own, and call `{call}` between them", f"{_NOT_TRACED}, and what is compiled makes or changes "
         "{made}, which it reads", _DIVIDED, facts=lambda at: at.is_of_compiled),
    Rule("skipped", "skipped builtin copy",
         "divide `{compiled}` at line {outer_line}: compile what comes before it and what comes after it as functions "
         "of their own, and call `{outer_call}` between them", f"{_NOT_TRACED}, which that call leads to", _DIVIDED,
         facts=lambda at: at.made_of(at.call)),
    Rule("", "skipped builtin logger iterator", facts=lambda at: at.made_of(at.call)),
    Rule("skipped", "skipped builtin logger iterator",
         "call `{call}` before the compiled function is called{also_each_turn}, and pass the result to "
         "{passed_to}", _NOT_TRACED, f"{_PARAMETER}; each text or object that it gives has a version of its own"),
    Rule("skipped", "skipped builtin", "if `{outer_call}` gives the same at each call: call it once, outside of what "
         "is compiled, and read what it gave from a global variable", f"{_NOT_TRACED}, which that call leads to",
         "what it gives is not looked up again", facts=lambda at: at.is_outer_call_alone),
    Rule("generator", "generator",
         "draw what the `torch.Generator` gives before the compiled function is called, and pass that to {passed_to}",
         "torch traces neither the making of a `torch.Generator`, nor its seed, nor numbers of it", _PARAMETER,
         facts=lambda at: at.met.is_generator),

    # Exceptions.
    Rule("raise", "exception", "test for it before {call_of}, in code that is not compiled",
         "a graph cannot raise",
         "none, as long as the test needs nothing that the function computes",
         facts=lambda at: isinstance(at.statement, (ast.Raise, ast.Assert))),
    Rule("text_as_key", "exception", _IN_PYTHON, _NO_TEXT, _PASSED, facts=lambda at: at.met.needs_text),
    Rule("text", "exception", "return what the text shows, and do `{added}` where `{compiled}` is "
         "called{also_each_turn}",
         "torch cannot make the text while it traces; with `.format` it would trace what is added, too, and each "
         "length has a version of its own", "the text is added after the call", facts=lambda at: at.met.needs_text),
    Rule("text", "exception", facts=lambda at: at.met.needs_text, edit=edits.formatted),
    Rule("no argument", "exception", "pass `{none}` at each call: it is `None` here",
         "the line fails for `None`, and torch gives up a function in which an exception comes", elsewhere=True),
    Rule("raise", "exception", "if this line raises {raised} in plain Python, too: keep such calls from `{compiled}`, "
         "test for them before the call, in code that is not compiled; if it does not: it works with what has no value "
         "while torch traces (as an address, or the name of a tensor's class), so do it before the call",
         "torch gives up a function in which an exception comes that it does not catch",
         "none, as long as the test needs nothing that the function computes"),
    Rule("fails", "fails", "if the line fails in plain Python, too: mend it, or test for such input before the call",
         "torch ran it on tensors without values, of the same sizes and dtypes, and met this error",
         facts=lambda at: not at.met.is_custom),

    # Gradients, modules, classes.
    Rule("trace_autograd_ops", "gradients", why=f"{_TRACED}; a compiled graph of AOTAutograd (`aot_eager`, `inductor`) "
         "cannot be differentiated twice, which is an error (`double backward`) when the gradients of these gradients "
         "are computed", cost="the captured graph grows by the backward pass, which the backend has to differentiate",
         setting=_AUTOGRAD, facts=lambda at: "create_graph=True" in NAMED["line"](at)),
    Rule("trace_autograd_ops", "gradients",
         f"set `{_AUTOGRAD}`; where a tensor that the gradients are of, or one between, is used after the call or "
         "returned, use its `.detach()` there, taken before the call (else the graph breaks here again)", _TRACED,
         "no gradient flows on through what is detached", setting=_AUTOGRAD),
    Rule("trace_autograd_ops", "backward",  # (no setting to be tried: no run shows gradients that are missing)
         f"{{also_if_leaves}}set `{_AUTOGRAD}`{{also_used}}", _TRACED + "{also_lost}", _DETACHED, facts=_computes_loss),
    Rule("backward", "backward",
         "compile what computes `{loss}` as a function of its own, which returns it; `.backward()` and {plain} itself "
         "stay in plain Python",
         f"a backend that differentiates graphs has compiled the backward pass anyway; `{_AUTOGRAD}` is for a loss "
         "that the same graph computes: of another one torch 2.13 traces no gradients, without an error",
         "what follows `.backward()`, as an optimizer's step, is then not in that function"),
    Rule("leaked", "leaked", "leave the line as it is",
         "the compiled function returns a tensor that is computed of one made here with `requires_grad_()`, and torch "
         "keeps none of the gradients between two graphs for such a tensor", "the graph ends here", leaves=True),
    Rule("sparse", "sparse", "keep calls with sparse tensors from `{compiled}`: test for them before the call, and "
         "call it without `torch.compile` there", "torch traces no sparse tensor, and gives up a function for all "
         "calls when one comes", "calls with sparse tensors run in plain Python"),
    Rule("allow_rnn", "recurrent", f"set `{_RNN}`{{also_if_padded}}",
         "torch then traces what the module computes, step by step", setting=_RNN,
         cost=f"{_UNROLLED}; it is for padded input alone: a packed sequence breaks the graph again"),
    Rule("enable_trace_load_build_class", "class", why="torch then traces the definition of the class",
         cost="one that reads a number which torch leaves open breaks the graph again; a class outside of the function "
         "is made once only, and costs nothing in a call",
         setting="torch._dynamo.config.enable_trace_load_build_class = True"),
    Rule("graph_break_on_nn_param_ctor", "parameter", why="torch then makes the parameter in the graph",
         cost="better is a parameter that is made once, outside of what is compiled",
         setting="torch._dynamo.config.graph_break_on_nn_param_ctor = False",
         facts=lambda at: at.met.kind != "no parameters"),

    # A method of a library that torch gives up.
    Rule("keep out", "*",
         "leave it out of graphs: `{library_method} = torch.compiler.disable({library_method})` before the first call "
         "(`from {library_module} import {library_class}`)", "torch gives the function up anyway, after a graph for "
         "each piece of it; left out, it costs its caller one break", "nothing in it is compiled", elsewhere=True,
         facts=lambda at: at.met.event != "exception"),  # (in plain Python it may be raised, too)
)


def on_break(site: Site) -> Advice | None:
    """Return the advice on a graph break; ``None`` where no row fits."""
    at, is_fixed = Facts(site), False
    for rule in RULES:
        if {"*", at.met.event}.isdisjoint(rule.events.split()) or is_fixed and not rule.elsewhere or not rule.facts(at):
            continue
        if rule.setting in WAITS and at.met.is_in_autograd_function:
            continue  # (Of a symbol that is made there torch 2.13 fails: `PendingUnbackedSymbolNotFound`.)
        if not rule.name:
            return None
        advice = rule.advice(at)
        if advice is not None:
            alone = advice.elsewhere or advice.names_setting and not advice.next_break
            if alone or site.where is None or is_own(site.where.filename):
                return advice
            is_fixed = True  # (It is a line of a library, which nobody changes.)
    return None


def candidates(*sites: Site) -> Iterator[Advice]:
    """Yield the changes of graph breaks that a trial may find to be the same, best first; each can be made."""
    advices = [(site, advice) for site in sites if (advice := on_break(site)) is not None]
    moved = {(site.where.filename, site.where.line) for site, advice in advices if site.where is not None
             and advice.rule in outlines.RULES}
    for site, advice in advices:
        tried = branches.candidates(site) if advice.rule == "branch" else [advice]
        yield from (each for each in tried if each.is_mechanical)
    for site, advice in advices:
        lines = [line for filename, line in moved if site.where is not None and filename == site.where.filename]
        yield from outlines.outlined(Facts(site), advice.rule, SHAPES, lines)


def on_left_method(method: str, before: Advice | None) -> Advice:
    """Return the advice on a bound method of a tensor that the break before it in its line left on the stack.

    Args:
        method: as the program writes it, ``probs.index_fill``.
        before: the advice on the break before it.
    """
    if before is not None and before.rule == _FOLLOWS:  # (The line broke twice before: the first of them is meant.)
        change, cost = before.change, before.cost
    else:
        change = "mend the break before it in this line, and this one goes with it" + (
            f": {before.change}" if before is not None else "")
        cost = before.cost if before is not None else "what the change there costs"
    return Advice(
        _FOLLOWS, change, f"this break follows from that one, which leaves the bound method `{method}` on the stack "
        "for its resume function: torch traces no method of a tensor that is looked up before the graph begins", cost)
