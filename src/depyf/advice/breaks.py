"""The rules for graph breaks, and for what torch skips, mostly for the same causes: one table.

A row names what torch recorded (the event), the facts that have to hold, and a true sentence, with further facts in
braces: why the graph breaks, and which fact decides. The first row that speaks is the advice. A row may name a setting
of torch's that ``depyf fix`` tries, since no record says what the program does next with a number or a size. Only a row
with an edit gives a change to apply.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import attrgetter
from string import Formatter

from ..torch_text.met import bound_method, is_step_of_scheduler
from ..values import frozen
from . import branches, outlines
from .branches import unparsed, with_lines
from .facts import Facts
from .model import Advice
from .source import Site

SCALARS = "torch._dynamo.config.capture_scalar_outputs = True"
SHAPES = "torch._dynamo.config.capture_dynamic_output_shape_ops = True"
_RNN = "torch._dynamo.config.allow_rnn = True"
_AUTOGRAD = "torch._dynamo.config.trace_autograd_ops = True"
_CLASS = "torch._dynamo.config.enable_trace_load_build_class = True"
_BACKWARD = (f"with `{_AUTOGRAD}` torch traces `.backward()` of a loss that the same graph computes, unless the graph "
             "has to return it other than detached; of one of an earlier graph torch 2.13 computes no gradients, and "
             "raises no error")
OPTIMIZER = "optimizer"  #: The rule on a function that torch compiles by itself in any case.

_NO_VALUES = "a graph has no values while it is captured"
_OUTSIDE = "before or after the compiled function, if what the call reads and changes allows that, it breaks no graph"


# --- the change of ``print``: torch prints when the graph is done, with arguments that it can store until then ------
#: Types of arguments that torch can print after the graph (``LoggingFunction.can_reorder_logs``).
_PRINTABLE = frozenset({"str", "bool", "NoneType", "Tensor", "dtype", "device"})
#: Types of numbers that torch may leave open, and of containers of them, which torch can format after the graph.
_FORMATTED = frozenset({"int", "float", "Size", "tuple", "list", "dict"})
_PRINTING = "torch._dynamo.config.reorderable_logging_functions.add(print)"
_AFTER_GRAPH = ("that is so for each `print` that torch traces: its text comes when the graph is done, after other "
                "output, and shows tensors that are changed in place as they are then; `sep`, `end` and `file` are "
                "ignored, and what functions that are called print may be lost (torch 2.13)")


def _printed(at: Facts) -> Advice | None:
    """Return the advice to let torch print after the graph: other prints change, so only a trial makes it a change."""
    found = _print_after_graph(at)
    return found and replace(found, is_change=False, change=f"{found.change}: {found.why}; {found.cost}")


def _print_after_graph(at: Facts) -> Advice | None:
    """Return the change to let torch print after the graph; ``None`` where it does not tell the types of arguments."""
    def shown(argument: ast.expr, kind: str) -> ast.expr:
        if kind in _PRINTABLE or isinstance(argument, ast.Constant):
            return argument
        # (An f-string of an open number would make torch fix it.)
        return ast.Call(ast.Attribute(ast.Constant("{}"), "format", ast.Load()) if kind in _FORMATTED else ast.Name(
            "str", ast.Load()), [argument], [])

    match at.statement:
        case ast.Expr(ast.Call(ast.Name("print"), given, []) as call) if (
                len(at.met.types) == len(given) and not any(isinstance(each, ast.Starred) for each in given)
                and at.broken.depth < 2 and not any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(
                    at.function or call))):  # (what is inlined prints nothing then)
            changed = list(map(shown, given, at.met.types))
            why, cost = "torch then prints after the graph instead of ending it here", _AFTER_GRAPH
            if changed == given:
                return Advice("print", f"set `{_PRINTING}`", why, cost, settings=(_PRINTING,))
            line = unparsed(ast.Expr(ast.Call(call.func, changed, [])), at.site.text)
            advice = with_lines(at.site, "print", [line], why, cost)
            return replace(advice, change=f"{advice.change}, and set `{_PRINTING}`", settings=(_PRINTING,))
    return None


# --- the table --------------------------------------------------------------------------------------
@frozen
class Rule:
    """One row."""

    name: str
    events: str  # those of `depyf.torch_text.met.KINDS`
    text: str = ""  # the sentence, with attributes of `Facts` in braces
    facts: Callable[[Facts], object] = lambda at: True  # whether the facts hold
    setting: str = ""  # a line that sets an option of torch, to be tried
    edit: Callable[[Facts], Advice | None] | None = None  # gives the advice instead, or `None`

    def advice(self, at: Facts) -> Advice | None:
        """Return the advice of the row; ``None`` where a fact of its sentence is not known."""
        if self.edit is not None:
            return self.edit(at)
        if not all(attrgetter(name)(at) for _, name, _, _ in Formatter().parse(self.text) if name):
            return None
        return Advice(self.name, self.text.format(met=at.met, loop=at.loop, call=at.call), is_change=False,
                      settings=(self.setting,) if self.setting else ())


def _is_in(at: Facts, path: str) -> bool:
    """Return whether the graph ends in the file with this end of a path."""
    where = at.broken.location
    return where is not None and where.filename.replace("\\", "/").endswith(path)


def _makes_symbol(at: Facts) -> bool:
    """Return whether torch may have a symbol there; in a function of ``torch.autograd`` that is an error (2.13)."""
    return at.met.operator != "autograd.Function"


RULES: tuple[Rule, ...] = (
    # Random numbers, loops that the data ends, branches.
    Rule("drawn", "branch item number operator symbol", "torch needs the value of a random number of Python's or "
         "NumPy's; drawn outside of what is compiled, and passed to it, it is a number",
         facts=lambda at: at.needs_drawn),
    Rule("turn", "branch item symbol", "whether a turn of the loop at line {loop} runs, or runs to its end, depends on "
         f"values in a tensor, and {_NO_VALUES}; a function that computes one iteration, or a part of one, can be "
         "compiled by itself and called in the loop", facts=lambda at: at.ends_turn),
    Rule("branch", "branch assertion item", edit=lambda at: branches.on_branch(at.site),
         # (A number that the test also stores is needed as a number.)
         facts=lambda at: at.met.event != "item" or hasattr(at.statement, "test") and not any(
             isinstance(each, ast.NamedExpr) for each in ast.walk(at.statement.test))),
    Rule("truth", "branch", "the line asks for the truth value of a tensor, as `if`, `and`, `or`, `not` and a chained "
         f"comparison do, and {_NO_VALUES}"),

    # Numbers out of tensors, shapes that depend on the data.
    Rule("capture_scalar_outputs", "item operator", f"with `{SCALARS}` the number is a symbol in "
         "the graph, as long as nothing needs its value: a branch, a loop, a key, a text and a search in a list do, "
         "and an index, a call, and a size that must equal another one may; where it is needed, torch may break the "
         "graph there, or raise an exception",
         setting=SCALARS, facts=lambda at: at.is_number and _makes_symbol(at)),
    Rule("capture_dynamic_output_shape_ops", "size", f"with `{SHAPES}` the size of the result is "
         "a symbol in the graph, if torch can run the operator without values; where a branch, a loop or a list of "
         "numbers depends on that size, torch may break the graph there instead, or raise an exception",
         setting=SHAPES, facts=_makes_symbol),
    Rule("number", "item operator size symbol",
         f"the line needs a value that is known only when the graph runs, and {_NO_VALUES}"),

    # Output, and what the program asks for.
    Rule("print", "builtin reordered", facts=lambda at: not at.met.operator, edit=_printed),
    Rule("print out", "builtin reordered", "a graph cannot print; what the compiled function returns can be printed "
         "outside of it", facts=lambda at: at.calls("print")),
    Rule("logger", "logger", "a graph cannot log; what the function returns can be logged outside of it, and compiled "
         "code can leave out a method that only logs (`torch._dynamo.config.ignore_logging_functions`)",
         # (Without `isEnabledFor` nothing would be logged.)
         facts=lambda at: at.is_in_program and isinstance(at.statement, ast.Expr) and at.met.last != "isEnabledFor"),
    Rule("warning", "skipped", "a graph cannot warn; outside of the compiled function a warning breaks no graph",
         facts=lambda at: at.met.last == "warn"),  # (no setting: with it torch 2.13 loses warnings of called functions)
    Rule(OPTIMIZER, "asked skipped", "torch compiles `step` separately and ends the graph before it: a step runs "
         "without gradients and changes parameters in place",
         facts=lambda at: _is_in(at, "torch/optim/optimizer.py") or is_step_of_scheduler(at.broken)),

    # Calls that torch does not trace.
    Rule("follows", "skipped", "torch does not trace a tensor's method that was looked up before the graph began: in a "
         "variable, or before another break in the same line; without that break there is no break here either",
         facts=lambda at: bound_method(at.broken)),
    Rule("skipped", "skipped builtin logger copy", f"torch did not trace `{{call}}` here; {_OUTSIDE}",
         facts=lambda at: at.is_in_program),
    Rule("returned", "returned", f"a graph has no operation that returns what this call returns; {_OUTSIDE}",
         facts=lambda at: at.is_in_program),
    Rule("disabled", "disabled", "what is called here is excluded from compilation, by `torch.compiler.disable`"),
    Rule("cached", "context", "`functools.cached_property` computes a first value under a lock (up to Python 3.11), "
         "which torch does not trace; where the attribute is read before the compiled function is called, the object "
         "has the value, and no lock is taken",
         facts=lambda at: _is_in(at, "/functools.py") and at.broken.stack[-1].function == "__get__"),
    Rule("context", "context", "torch did not trace how this context is entered and left; around the call of the "
         "compiled function it breaks no graph (under a `TorchDispatchMode` torch compiles nothing); tensors, numbers "
         "or text that are read from it can be passed",
         # (One that a library enters cannot be moved there.)
         facts=lambda at: at.is_in_program and isinstance(at.statement, (ast.With, ast.AsyncWith))),
    Rule("iterator", "iterator", "torch did not trace this iterator; values that were taken from it outside the "
         "compiled function, none of them an iterator, can be passed, also in a list (`next` does not take a list)",
         facts=lambda at: at.where and at.is_in_program and not at.where.function.startswith("<")),
    Rule("generator", "generator", "torch traces neither the making of a `torch.Generator`, nor its seed, nor what "
         "draws from it; numbers drawn outside of what is compiled can be passed to it",
         facts=lambda at: at.met.is_generator),

    # Exceptions.
    Rule("library text", "exception", f"a library makes a text of a number that torch leaves open; {_OUTSIDE}",
         facts=lambda at: at.met.needs_text and at.where is not None and at.where is not at.broken.stack[-1]),
    Rule("text", "exception", "the text needs the value of a number that torch leaves open; that of `.format(...)` "
         "torch makes when the graph is done, which helps only where nothing looks it up before that",
         facts=lambda at: at.met.needs_text and not isinstance(at.statement, (ast.Raise, ast.Assert))),
    Rule("assert", "assert exception", "the condition is false for such a call in plain Python, too",
         facts=lambda at: at.met.event == "assert" or isinstance(at.statement, ast.Assert) and at.met.raises_class),
    Rule("raise", "exception", "{met.raised} is raised while torch traces the line, torch finds nothing that catches "
         "it, and a graph cannot raise; plain Python raises it for such a call, too, unless torch's model of an "
         "object on the line lacks something"),
    Rule("fails", "fails", "torch ran the line on tensors without values, of the same sizes and dtypes, and met this "
         "error: plain Python meets it for such a call, too, unless what replaces an operator for such tensors, its "
         "fake implementation, is wrong, missing, or takes no size or number that torch leaves open; no `except` of "
         "the program catches what torch meets"),

    # Gradients, modules, classes.
    Rule("trace_autograd_ops", "gradients", f"with `{_AUTOGRAD}` torch traces the backward pass into the same graph, "
         "if no tensor that the gradients are of, and none in between, is used after the call except by `.detach()`; "
         "a compiled graph of AOTAutograd (`aot_eager`, `inductor`) cannot be differentiated twice",
         setting=_AUTOGRAD),
    Rule("backward", "backward", _BACKWARD, facts=lambda at: at.broken.skips_function),
    Rule("backward", "backward",  # (no setting to be tried: no run shows gradients that are missing)
         "a backend that differentiates graphs has compiled the backward pass of the graph before this line anyway; "
         + _BACKWARD),
    Rule("checkpoint", "effect", "plain Python runs what is checkpointed again in the backward pass, where it changes "
         "this again; with `torch._dynamo.config.skip_fwd_side_effects_in_bwd_under_checkpoint = True` torch traces "
         "it, and it is changed once", facts=lambda at: at.met.operator.endswith(".checkpoint")),
    Rule("leaked", "leaked", "a tensor made here with `requires_grad_()`, or computed from one, leaves the graph "
         "undetached (by a `return` or a later break), and as output of a compiled graph it would lose its gradients"),
    Rule("sparse", "sparse", "torch traces no sparse tensor, and gives up a function for all calls when one comes: "
         "calls with sparse tensors can be made without `torch.compile`"),
    Rule("allow_rnn", "recurrent", f"with `{_RNN}` torch traces what the module computes, of padded input alone (a "
         "packed sequence breaks the graph), `nn.RNN` and `nn.GRU` step by step: each length has its own version; of "
         "an `nn.LSTM` with gradients a backend that differentiates graphs raises an exception on CPU (torch 2.13)",
         setting=_RNN),
    Rule("enable_trace_load_build_class", "class", "a class outside of the function is made once only; with "
         f"`{_CLASS}` torch traces its definition", setting=_CLASS),
)


def on_break(site: Site) -> Advice | None:
    """Return the advice on a graph break; ``None`` where no row fits."""
    at = Facts(site)
    rows = (rule for rule in RULES if at.met.event in rule.events.split() and rule.facts(at))
    return next((advice for rule in rows if (advice := rule.advice(at)) is not None), None)


def candidates(*sites: Site) -> Iterator[Advice]:
    """Yield the changes of graph breaks that a trial may find to be the same, best first; each can be made."""
    advices = [(site, advice) for site in sites if (advice := on_break(site)) is not None]
    for site, advice in advices:
        if advice.rule == "branch":
            yield from branches.candidates(site)
        elif advice.rule == "print":
            yield _print_after_graph(Facts(site)) or advice
        elif advice.settings:
            change = " and ".join(f"set `{line}`" for line in advice.settings)
            yield replace(advice, change=change, cost=advice.change, is_change=True)
    moved = {(site.where.filename, site.where.line) for site, advice in advices if site.where is not None
             and advice.rule in outlines.RULES}
    for site, advice in advices:
        lines = [line for filename, line in moved if site.where is not None and filename == site.where.filename]
        yield from outlines.outlined(Facts(site), advice.rule, SHAPES, lines)
