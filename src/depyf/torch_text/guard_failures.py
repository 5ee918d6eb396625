"""Torch's reasons for a recompile -> :class:`~depyf.records.model.GuardFailure` records.

Torch says of each version which of its guards failed first (``torch/_dynamo/guards.py``, ``get_guard_fail_reason``)::

    0/1: tensor 'x' size mismatch at index 0. expected 4, actual 6
    0/0: len(cache) == 1  # cache.append(x)  # model.py:14 in forward

Each form of these is read into the compared expression, its expected value, and its present value::

    x.size()[0]    4    6
    len(cache)     1    2
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable

from ..records.model import CompileId, GuardFailure, SourceLocation
from ..values import frozen
from .libraries import is_library
from .met import frames_in
from .parsed import literal, parsed_expression

#: (Patterns are compiled at their first use: a program meets few of them.)
_ENTRY = r"^(?:!\d+/)?(?P<frame>\d+)/(?P<recompile>\d+): "
_CAUSE = r"\s+#(?P<code>.*?)\s*# (?P<file>.+?):(?P<line>\d+) in (?P<function>\S+)"
_HINT = r"(?s)\s*\(HINT: (?P<hint>.*)\)\s*$"

_IDENTITY = r"___check_(?P<what>type|obj)_id\((?P<source>.*), \d+\)(?:, type=<class '(?P<type>[^']*)'>)?"
_DICT_TYPE = r"TYPE_MISMATCH\((?P<source>.*)\)"  # (of a dictionary's class: ``DictGuardManager``)

_TENSOR = r"(?s)tensor '(?P<source>.*?)' (?P<rest>.*)"
_NO_TENSOR = (r"(?s)expected type of '(?P<numpy>___from_numpy\()?(?P<source>.*?)(?(numpy)\))' to be a tensor type,?\W*"
              r"but found (?P<seen>.*)")
_MARKS = (r"_(?:has_)?dynamo_(?:dim_marking|(?P<kind>\w+?)_indices) (?:not a subset: runtime (?P<seen>\{.*?\}) is not "
          r"a subset of compiled (?P<expected>\{.*?\})|.*runtime tensor)")
_STATE = r"GLOBAL_STATE changed: (?P<names>.*)"
#: Function attributes that torch reads (``__code__``, ``__defaults__``) of another object.
_NO_FUNCTION = r"\w+Accessor(?:\(\))?: Not a function on (?P<source>.*)\.__\w+__"
_GONE = r"Cache line invalidated because (?P<source>.*) got deallocated"
#: One backend, as ``torch.compile`` wraps it.
_WRAPPER = (r"BACKEND_MATCH .*Cached backend: _TorchCompileWrapper\(compiler=(?P<one>.*?), dynamic=(?P<was>\w+)\).*"
            r"New backend: _TorchCompileWrapper\(compiler=(?P=one), dynamic=(?!(?P=was)\))(?P<now>\w+)\)")
#: (Of what is there, torch did not find an attribute, whose name it does not say.)
_MISSING = r"(?P<failed>KeyError on|IndexError on|getattr failed on source) (?P<source>.*)"
_DUPLICATES, _QUOTED = r"Duplicate tensors found: (?P<names>.+)", r"[\"']((?:[^\"'\\]|\\.|'[^']*')+?)[\"'](?=[,\]])"
_KEYS = r"list\((?:dict\.keys\((?P<a>.*?)\)|(?P<b>.*?)\.keys\(\))\) == (?P<expected>.*)"
#: Where an iterator of ``range`` or ``itertools.count`` is: its next value comes first.
_ITERATOR = r"___normalize_(?:range|count)_iter\((?P<source>.*)\) == \((?P<next>[^,]*), .*\)\Z"
_CONTAINS = (r"(?P<no>not )?(?:___dict_contains\((?P<key>.+), (?P<source>[^,]+)\)"
             r"|set\.__contains__\((?P<set>[^,]+), (?P<member>.+)\))\Z")

#: Python's messages on an expression that it cannot evaluate; of a guard's exception, torch gives only the text.
_EXCEPTION = (
    r"(?s)'[\w.]+' object (?:has no attribute '.*|is not \w+.*)|object of type '.*' has no len\(\)"
    r"|\w+ index out of range|unsupported operand type\(s\) for .*|.* not supported between instances of .*"
    r"|name '\w+' is not defined|'[^'\n]*'|[A-Z]\w*(?:Error|Exception): .*|Dimension out of range .*")
#: The subject of a condition on marks; torch does not say of which tensor.
MARKED = "the marked dimensions of a tensor"
#: The subject of a condition that raised an exception, of which torch does not say which one it is.
NOT_EVALUATED = "a guard could not be evaluated: "
#: The subject where no guard of a version failed, as torch says in `_HOLDS`: a version of another thread's, which this
#: call did not wait for.
ALL_HOLD = ("no guard of the version failed when torch looked for the reason: another thread may have compiled it "
            "meanwhile")
_HOLDS = "Unexpected recompilation: runtime guards failed even though they passed"

_WITHOUT_TENSOR = re.compile(rf"{NOT_EVALUATED}'NoneType' object has no attribute '(?:size|stride|storage_offset)'")

#: Expectations of a version for a function: a certain code, or only that it is one.
SAME_CODE, A_FUNCTION, SAME_OBJECT = "the same code", "a function", "the same object"
#: The replacement of an object in a call: one that is not described, none any more, or one of a type.
ANOTHER_OBJECT, _NO_OBJECT, _OF_TYPE = "another object", "gone", "an object of type "
ANOTHER_CLASS = "another class of that name"
#: Types of objects that Python makes anew each time that an attribute is read.
_BOUND = ("builtin_function_or_method", "method", "method-wrapper")
_NUMBER = re.compile(r"(?P<whole>-?\d+)(?:\.\d+)?(?:e[+-]?\d+)?")
#: An expectation that is no single value.
_RANGE = re.compile(r"^\d+ or more$|^at most |^more than |^less than |^-?\d+ to -?\d+$|^not ")
_CLOSURE = re.compile(r'guard on "(?P<name>[^"]+)"[^,\s]*(?:, )?')

#: Torch's additions to a size that differs, and its hint on a whole number.
_OF_PARAMETER = "Guard failed on a parameter"
_OF_MODULE = "torch.compile considers integer attributes of the nn.Module to be static"

#: Scalar types as torch's C++ names them, with their name in Python.
_DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
    "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64",
    "ComplexDouble": "complex128", "ComplexHalf": "complex32", "Float8_e4m3fn": "float8_e4m3fn",
    "Float8_e5m2": "float8_e5m2"}
#: Comparisons of a tensor, and the Python expressions of what is compared, by torch's words for it.
_MISMATCH = (r"(?P<what>[\w ]+?) mismatch(?: at index (?P<index>\d+))?\. [Ee]xpected (?:\w+=|device index to be )?"
             r"(?P<expected>[^\s,]+)(?:, actual (?P<seen>\S+))?")
_COMPARED = {
    "size": "{source}.size()[{index}]", "stride": "{source}.stride()[{index}]", "dtype": "{source}.dtype",
    "requires_grad": "{source}.requires_grad", "rank": "{source}.ndim",
    "Tensor device index": "{source}.device.index"}
_KEYS_OF_DISPATCH = (
    r"dispatch key set mismatch\. expected DispatchKeySet\((?P<expected>.*?)\), actual DispatchKeySet\((?P<seen>.*?)\)")
#: Names of torch's global state, in the words of its functions.
STATES = {
    "grad_mode": "torch.is_grad_enabled()", "default_dtype": "torch.get_default_dtype()",
    "num_threads": "torch.get_num_threads()",
    "deterministic_algorithms": "torch.are_deterministic_algorithms_enabled()",
    "deterministic_algorithms_warn_only": "torch.is_deterministic_algorithms_warn_only_enabled()",
}
_AUTOCAST_CALL = "torch.is_autocast_enabled("
_AUTOCAST = r"autocast\((?P<device>\w+)\)_enabled"
#: Other state that torch guards by a helper of its own, and what it says where no guard failed.
_HELPERS = (
    ("___check_torch_function_mode_stack", "the modes of __torch_function__ that are on"),
    ("compare_functorch_state", "the transforms of torch.func that are on"),
    ("top_saved_tensors_hooks", "the hooks for saved tensors"),
    ("forward_ad._current_level", "the level of forward-mode differentiation"),
    ("CURRENT_DEVICE", "the default device"),
    ("BACKEND_MATCH", "the backend"),
    (_HOLDS, ALL_HOLD),
)


@frozen
class Comparison:
    """The comparison that a guard makes."""

    subject: str  # as Python (`len(cache)`), or in words where Python has none (`the default device`)
    # expected, seen: `""` where unknown
    expected: str = ""
    seen: str = ""


#: Returns the value of an expression in the frame that is about to be compiled again, ``""`` if unknown.
Seen = Callable[[str], str]


def guard_failures(
    payload: str, full_path: Callable[[str], str] = str, seen: Seen | None = None
) -> tuple[GuardFailure, ...]:
    """Read torch's reasons for a recompile, one a version; the version that was used last comes first.

    Args:
        payload: one reason, or a JSON list of several.
        full_path: see :class:`~depyf.torch_text.events.EventReader`.
        seen: see :meth:`~depyf.torch_text.events.EventReader.feed`.
    """
    try:
        decoded = json.loads(payload)
    except ValueError:
        decoded = payload
    reasons = decoded if isinstance(decoded, list) else [payload]
    return tuple(_guard_failure(str(reason), full_path, seen or (lambda expression: "")) for reason in reasons)


def _guard_failure(reason: str, full_path: Callable[[str], str], seen: Seen) -> GuardFailure:
    entry = re.match(_ENTRY, reason)
    text, _, stack = reason[entry.end() if entry else 0 :].partition("\nUser stack trace:\n")
    advice = re.search(_HINT, text) if "(HINT: " in text else None
    hint = advice["hint"].strip() if advice else ""
    text = text[: advice.start()] if advice else text
    comment = re.search(_CAUSE, text) if "# " in text else None
    condition = (text[: comment.start()] if comment else text).strip()
    cause = None
    if frames := frames_in(stack):
        # (The user's line is wanted: that of a layer of torch's says nothing of the program.)
        cause = next((frame for frame in reversed(frames) if not is_library(frame.filename)), frames[-1])
    elif comment:
        cause = SourceLocation(
            full_path(comment["file"]), int(comment["line"]), comment["function"], comment["code"].strip())
    compared = comparison(condition, seen)
    owner = "parameter" if _OF_PARAMETER in condition else "module" if hint.startswith(_OF_MODULE) else ""
    return GuardFailure(
        CompileId(int(entry["frame"]), int(entry["recompile"])) if entry else None,
        _without_ids(condition) if "___check_" in condition else condition, _source(compared.subject),
        compared.expected, compared.seen, cause, compared.subject, hint, owner)


def _without_ids(condition: str) -> str:
    """Return a condition on the id of a class or object in words."""
    def in_words(match: re.Match[str]) -> str:
        if match["what"] == "type":
            return f"type({match['source']}) is {match['type'] or 'another'}"
        return f"{match['source']} is another object" + (f", type={match['type']}" if match["type"] else "")

    return re.sub(_IDENTITY, in_words, condition)


def is_of_tensor(failure: GuardFailure) -> bool:
    """Return whether a failed guard is a condition on a tensor as a whole."""
    return bool(re.match(_TENSOR, failure.text) and "mismatch" in failure.text or re.match(_NO_TENSOR, failure.text))


def is_sentence(subject: str) -> bool:
    """Return whether a subject says all that is known: that a condition raised an exception, or that all hold."""
    return subject.startswith((NOT_EVALUATED, ALL_HOLD))


def is_without_tensor(subject: str) -> bool:
    """Return whether a guard could not read the sizes of a tensor, as there was none."""
    return _WITHOUT_TENSOR.match(subject) is not None


def is_made_anew(failure: GuardFailure) -> bool:
    """Return whether a value failed to be a certain object that Python makes anew each time: a bound method."""
    return failure.expected == SAME_OBJECT and (
        failure.seen == _NO_OBJECT or any(failure.seen.endswith(f" {kind}") for kind in _BOUND))


def closure_variable(failure: GuardFailure) -> str:
    """Return the variable of a closure that torch's hint names as the failed part; ``""`` where it names none."""
    match = _CLOSURE.search(failure.hint)
    return match["name"] if match is not None else ""


def is_autocast(subject: str) -> bool:
    """Return whether a subject is the state of autocast."""
    return subject.startswith(_AUTOCAST_CALL)


# --- expected values, and those of the call -----------------------------------------------------------
def number(value: str) -> int | float | None:
    """Return the number that a value is; ``None`` where it is none."""
    match = _NUMBER.fullmatch(value)
    return None if match is None else int(value) if match["whole"] == value else float(value)


def are_numbers(values: Iterable[str]) -> bool:
    """Return whether all values are numbers."""
    return all(number(each) is not None for each in values)


def is_range(value: str) -> bool:
    """Return whether more than one value is expected: ``2 or more``."""
    return _RANGE.search(value) is not None


def object_type(value: str) -> str:
    """Return the type of an object of which no more is known; ``""`` for another value."""
    return value.removeprefix(_OF_TYPE) if value.startswith(_OF_TYPE) else ""


# --- comparisons --------------------------------------------------------------------------------------
def comparison(condition: str, seen: Seen) -> Comparison:
    """Return the comparison that a guard makes, from torch's text of it: ``"len(cache) == 1"``."""
    for form, read in _FORMS:
        match = re.match(form, condition)
        if match is not None:
            return read(match, seen)
    for helper, words in _HELPERS:
        if helper in condition:
            return Comparison(words)
    if re.fullmatch(_EXCEPTION, condition):
        return Comparison(NOT_EVALUATED + condition)
    tree = parsed_expression(condition)
    return Comparison(condition) if tree is None else _expression_comparison(tree, seen)


def _now(subject: str, expected: str, seen: Seen) -> Comparison:
    return Comparison(subject, expected, seen(subject))


def _tensor_comparison(tensor: re.Match[str], seen: Seen) -> Comparison:
    source = tensor["source"]
    match = re.match(_MISMATCH, tensor["rest"])
    if match is not None and match["what"] in _COMPARED:
        values = [match["expected"].rstrip("."), (match["seen"] or "").rstrip(".")]
        if match["what"] == "dtype":
            values = [f"torch.{_DTYPES.get(name, name)}" for name in values]
        elif match["what"] == "requires_grad":
            values = ["True", "False"] if values[0] == "1" else ["False", "True"]
        return Comparison(_COMPARED[match["what"]].format(source=source, index=match["index"]), *values)
    keys = re.match(_KEYS_OF_DISPATCH, tensor["rest"])
    if keys is None:
        return Comparison(source)
    # The properties that differ: its device, or its part in inference mode. (The keys are those that a call would have:
    # without autograd's where inference mode is on or made the tensor, without both where both are so.)
    expected, actual = ([key.strip() for key in keys[name].split(",") if key.strip()] for name in ("expected", "seen"))
    lost, new = [key for key in expected if key not in actual], [key for key in actual if key not in expected]
    if all(key.startswith(("Autograd", "ADInplaceOrView")) for key in (*lost, *new)) and bool(lost) != bool(new):
        either = "or" if any(key.startswith("Autograd") for key in (*lost, *new)) else "and"
        return Comparison(f"{source}.is_inference() {either} torch.is_inference_mode_enabled()", str(bool(new)),
                          str(bool(lost)))
    devices = [[key.lower() for key in keys if key in ("CPU", "CUDA", "XPU", "MPS", "Meta", "HPU", "XLA")]
               for keys in (lost, new)]
    if all(len(names) == 1 for names in devices):
        return Comparison(f"{source}.device.type", repr(devices[0][0]), repr(devices[1][0]))
    return Comparison(f"the dispatch keys of {source}", ", ".join(lost) or "without " + ", ".join(new),
                      ", ".join(new) or "without " + ", ".join(lost))


def _identity_comparison(match: re.Match[str], seen: Seen) -> Comparison:
    """Return the comparison with a certain type or object; of functions torch compares the code."""
    if match["what"] == "type":
        subject, expected = f"type({match['source']})", match["type"] or ""
        now = seen(subject)  # (`parametrize` makes a class for each module, all of one name)
        return Comparison(subject, expected, ANOTHER_CLASS if now == expected and now else now)
    source, owner = match["source"], match["source"].removesuffix(".__code__")
    if owner != source:  # (which those that one `def` makes share)
        return Comparison(owner, SAME_CODE, seen(source))
    return Comparison(owner, SAME_OBJECT, seen(owner) or ANOTHER_OBJECT)


def _state_comparison(match: re.Match[str], seen: Seen) -> Comparison:
    calls = {name: STATES.get(name, "") for name in match["names"].split()}
    calls |= {name: f"{_AUTOCAST_CALL}'{cast['device']}')" for name in calls if (cast := re.fullmatch(_AUTOCAST, name))}
    now = {call: seen(call) for call in calls.values() if call}
    others = [name.replace("_", " ") for name, call in calls.items() if not call]
    if not now:
        return Comparison("torch's global state: " + ", ".join(others))
    if others:  # (nothing gives the old and new values of all)
        return Comparison(", ".join((*now, *others)))
    # (Torch says what changed, not from what: of two values it was the other one.)
    turned = {call: state for call, state in now.items() if state in ("True", "False")}
    if not turned:
        return Comparison(next(iter(now)), "", next(iter(now.values())))
    return Comparison(", ".join(turned), ", ".join(str(state != "True") for state in turned.values()),
                      ", ".join(turned.values()))


def _expression_comparison(tree: ast.expr, seen: Seen) -> Comparison:
    """Return a condition that is Python: which of its sides is given, and which is compared with it."""
    match tree:
        case ast.UnaryOp(ast.Not(), ast.Call(ast.Name("hasattr" | "isinstance" | "callable"), _, _) as call):
            return Comparison(ast.unparse(call), "False", "True")
        case ast.UnaryOp(ast.Not(), ast.Name() | ast.Attribute() | ast.Subscript() as container):
            return _now(f"len({ast.unparse(container)})", "0", seen)
        case ast.Compare(left, [operator], [right]):
            fixed = _sides_compared(left, operator, right, seen)
            if fixed is not None:
                return fixed
        case ast.Compare(ast.Constant(low), [ast.Lt() | ast.LtE(), ast.Lt() | ast.LtE()], [inner, ast.Constant(high)]) \
                if type(low) is int and type(high) is int:
            first = low + isinstance(tree.ops[0], ast.Lt)
            last = high - isinstance(tree.ops[1], ast.Lt)
            return _now(ast.unparse(inner), f"{first} to {last}", seen)
    return Comparison(ast.unparse(tree), "True", "False")


def _sides_compared(left: ast.expr, operator: ast.cmpop, right: ast.expr, seen: Seen) -> Comparison | None:
    kind: type[ast.cmpop] = type(operator)
    if _is_literal(left) and not _is_literal(right):
        turned: dict[type, type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
        left, kind, right = right, turned.get(kind, kind), left
    if not _is_literal(right):
        return None
    subject, value = ast.unparse(left), ast.unparse(right)
    if "hasattr(" in subject or "isinstance(" in subject:
        return Comparison(subject, value, {"True": "False", "False": "True"}.get(value, ""))
    if kind in (ast.Gt, ast.Lt) and isinstance(right, ast.Constant) and type(right.value) is int:
        value, kind = (f"{right.value + 1}", ast.GtE) if kind is ast.Gt else (f"{right.value - 1}", ast.LtE)
    if kind in (ast.Eq, ast.Is) or kind is ast.NotEq and subject.startswith("len("):
        return _now(subject, value, seen)  # (torch's words for a dictionary that has another length)
    if kind in (ast.NotEq, ast.IsNot):
        return Comparison(subject, f"not {value}", value)
    words = {ast.GtE: f"{value} or more", ast.LtE: f"at most {value}", ast.Gt: f"more than {value}",
             ast.Lt: f"less than {value}"}.get(kind)
    return None if words is None else _now(subject, words, seen)


def _is_literal(node: ast.expr) -> bool:
    number = node.operand if isinstance(node, ast.UnaryOp) else node
    return literal(node) is not ... or isinstance(node, ast.Attribute) and ast.unparse(node).startswith("torch.") or (
        isinstance(number, ast.Name) and number.id in ("inf", "nan"))


#: The forms of conditions that are not Python, or whose Python is a helper of torch's, with their readers.
_FORMS: tuple[tuple[str, Callable[[re.Match[str], Seen], Comparison]], ...] = (
    (_TENSOR, _tensor_comparison),
    (_NO_TENSOR, lambda match, seen: Comparison(
        f"type({match['source']})", "one of NumPy's" if match["numpy"] else "a tensor",
        re.sub(r"(?s)^<class '([^']*)'>.*", r"\1", match["seen"].strip()))),
    (_MARKS, lambda match, seen: Comparison(
        MARKED + (f" ({match['kind'].replace('_', ' ')})" if match["kind"] else ""),
        match["expected"] or "no dimension", match["seen"] or "at least one")),
    (_IDENTITY, _identity_comparison),
    (_DICT_TYPE, lambda match, seen: _now(f"type({match['source']})", "the same type of dict", seen)),
    (_NO_FUNCTION, lambda match, seen: Comparison(
        match["source"], A_FUNCTION, f"{_OF_TYPE}{kind}" if (kind := seen(f"type({match['source']})")) else "")),
    (_GONE, lambda match, seen: Comparison(match["source"], SAME_OBJECT, _NO_OBJECT)),
    (_DUPLICATES, lambda match, seen: Comparison(
        " is ".join(re.findall(_QUOTED, match["names"])) or match["names"], "False", "True")),
    (_KEYS, lambda match, seen: _now(f"list({match['a'] or match['b']})", match["expected"], seen)),
    (_CONTAINS, lambda match, seen: Comparison(
        f"{match['key'] or match['member']} in {match['source'] or match['set']}", str(not match["no"]),
        str(bool(match["no"])))),
    (_ITERATOR, lambda match, seen: Comparison(f"next({match['source']})", match["next"])),
    (_MISSING, lambda match, seen: Comparison(f"hasattr({match['source']}, ...)", "True", "False") if (
        seen(match["source"]) and match["failed"] == "getattr failed on source") else Comparison(
            match["source"], "there", seen(match["source"]) or "missing")),
    (_WRAPPER, lambda match, seen: Comparison("`dynamic` of torch.compile", match["was"], match["now"])),
    (_STATE, _state_comparison),
)


def _source(subject: str) -> str:
    """Return the guarded object in a subject: ``x`` of ``x.size()[0]`` and of ``len(x)``."""
    node = parsed_expression(subject)
    if node is None:
        return ""
    if isinstance(node, ast.Compare):
        node = node.comparators[-1] if isinstance(node.ops[0], ast.In) else node.left
    while True:
        match node:
            case ast.Call(ast.Name("len" | "type" | "list" | "next" | "hasattr" | "isinstance" | "callable"),
                          [inner, *_]) | ast.BoolOp(_, [inner, *_]) | ast.Call(ast.Attribute(inner, "is_inference")) \
                    | ast.Subscript(ast.Call(ast.Attribute(inner, "size" | "stride"))) \
                    | ast.Attribute(inner, "dtype" | "requires_grad" | "ndim") \
                    | ast.Attribute(ast.Attribute(inner, "device"), "index" | "type"):
                node = inner
            case ast.Call() | ast.Tuple():
                return ""
            case _:
                return ast.unparse(node)
