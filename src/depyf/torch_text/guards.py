"""Torch's printed guard tree -> :class:`~depyf.records.model.Guard` records.

Torch prints a guard manager as a tree (``str(guard_manager)``, also in its structured trace as
``dynamo_cpp_guards_str``)::

    | +- GuardManager: source=L['a'], accessed_by=..., type=<class 'torch.Tensor'>, ...
    | | +- TENSOR_MATCH: check_tensor(L['a'], Tensor, DispatchKeySet(CPU, ...), ...)  # y = a + 1  # file.py:3 in f

Each leaf becomes one condition in valid Python. Ids, which differ from run to run, become the names of their objects.
``Guard.raw`` is torch's own text.
"""

from __future__ import annotations

import ast
import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..records.model import Guard, SourceLocation
from .parsed import parsed_expression
from .user_expressions import FROM_NUMPY

#: (Managers of a dictionary's keys and values have no ``accessed_by``.)
_SOURCE = re.compile(r"source=(?P<source>.*?), (?:accessed_by|type)=")
#: What is before the comment: a comment sign inside of a string begins none.
_CONDITION = re.compile(r"""(?:[^'" ]+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?!  # ).)*""", re.DOTALL)
_IDENTITY = re.compile(r"___check_(?P<what>type|obj)_id\((?P<subject>.*), \d+\)")
_TYPE = re.compile(r"type=<class '(?P<type>[^']*)'>")
_CAUSE = re.compile(r"  # (?P<code>.*?)\s+# (?P<file>\S+):(?P<line>\d+) in (?P<function>\w+)")
_PLACE = re.compile(r"  # \(?(?P<file>[^\s(]\S*):(?P<line>\d+) in (?P<function>\w+)")  # (in brackets: within torch)
_TENSOR = re.compile(
    r"check_tensor\((?P<source>.*), (?P<cls>\w+), DispatchKeySet\((?P<keys>[^)]*)\), (?P<dtype>torch\.\w+), "
    r"device=(?P<device>[^,]*), requires_grad=(?P<grad>True|False), size=\[(?P<size>[^\]]*)\], "
    r"stride=\[(?P<stride>[^\]]*)\]\)")
_MARKING = "DIMENSION_DYNAMIC_MARKING_GUARD"
_MARK = re.compile(r"hasattr\((?P<subject>.*), '(?P<mark>_dynamo_\w+)'\) == False")
_SAVED_TENSORS_HOOKS = re.compile(r".*\btop_saved_tensors_hooks ids == (?P<ids>.*)")
_DICT_VERSION = re.compile(r"___(?:dict_version\((?P<subject>.*)\) == \d+|check_dict_version\((?P<other>.*), \d+\))")
_ENUM = re.compile(r"(?P<left>.* (?:==|is) )<(?P<member>[A-Za-z_]\w*\.[A-Za-z_]\w*): [^<>]*>")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}|\b\d{12,}\b")  #: The address of an object in memory.
#: First key of a tensor's dispatch keys -> its device type.
_DEVICES = {"CPU": "cpu", "CUDA": "cuda", "XPU": "xpu", "MPS": "mps", "Meta": "meta", "HPU": "hpu"}


def parse_guards(text: str) -> tuple[Guard, ...]:
    """Return the guards of one cache entry, in the order in which torch tests them."""
    return GuardReader().read(text)


def unread_guards(text: str) -> tuple[Guard, ...]:
    """Return a printed tree as one condition, where it cannot be read."""
    return (Guard(f"torch_guard({' '.join(text.split())!r})", "", "UNREAD", text.strip()),) if text.strip() else ()


class GuardReader:
    """Reads the trees of several entries, which are much alike: each line and guard is read once."""

    def __init__(self, full_path: Callable[[str], str] = str) -> None:
        self._full_path = full_path  # path as torch shortened it -> path (see `trace_events.full_paths`)
        self._nodes: dict[str, _Node | None] = {}  # by line
        self._guards: dict[tuple[str, str, str, str], Guard] = {}  # by kind, text, owner and its type

    def read(self, text: str) -> tuple[Guard, ...]:
        """Return the guards of one printed tree, in the order in which torch tests them."""
        guards: list[Guard] = []
        managers: list[_Node] = []  # those around
        for line in text.splitlines():
            if line not in self._nodes:
                self._nodes[line] = _node(line)
            node = self._nodes[line]
            if node is None:
                continue
            while managers and managers[-1].depth >= node.depth:
                managers.pop()
            if node.source is not None:
                managers.append(node)
            elif not node.kind.endswith("Manager"):
                owner = managers[-1] if managers else _NOBODY
                key = (node.kind, node.rest, owner.source or "", owner.type_name)
                if key not in self._guards:
                    self._guards[key] = _guard(*key, self._full_path)
                guards.append(self._guards[key])
        return tuple(_join_marks(guards))


class _Node(NamedTuple):
    """One line of the tree; ``source`` and ``type_name`` are those of a manager."""

    depth: int
    kind: str
    rest: str
    source: str | None
    type_name: str


_NOBODY = _Node(-1, "", "", "", "")


def _node(line: str) -> _Node | None:
    depth, sign, body = line.partition("+- ")
    kind, separator, rest = body.partition(": ")
    if not sign or not separator or depth.strip("| ") or not kind.isidentifier():
        return None
    source = _SOURCE.match(rest) if rest.startswith("source=") else None
    type_name = _TYPE.search(rest, source.end() - len("type=")) if source is not None else None
    return _Node(len(depth) // 2, kind, rest, source["source"] if source else None,
                 type_name["type"] if type_name else "")


def _join_marks(guards: list[Guard]) -> Iterator[Guard]:
    """Join the guards on attributes that ``mark_dynamic`` and its like leave on a tensor.

    Torch tests that each is absent, one guard an attribute; together they say one thing. (The owner that torch names
    may only contain the tensor: a dictionary of parameters.)
    """
    def marked(guard: Guard) -> tuple[str, SourceLocation | None] | None:
        mark = _MARK.fullmatch(guard.expression) if guard.kind == _MARKING else None
        return (mark["subject"], guard.cause) if mark is not None else None

    for tensor, group in itertools.groupby(guards, marked):
        if tensor is None:
            yield from group
            continue
        subject, cause = tensor
        joined = list(group)
        marks = ", ".join(repr(match["mark"]) for one in joined if (match := _MARK.fullmatch(one.expression)))
        yield Guard(f"has_no_marks({subject}, {marks})", subject, _MARKING, "\n".join(one.raw for one in joined), cause)


def _guard(kind: str, rest: str, owner: str, owner_type: str, full_path: Callable[[str], str]) -> Guard:
    first, end = rest.find("  # "), _CONDITION.match(rest).end()  # type: ignore[union-attr]  # (matches any text)
    if 0 <= first < end and not is_expression(rest[:end].strip()):  # (an odd quote in what is no Python)
        end = first
    condition, comment = rest[:end].rstrip(), rest[end:]  # (the comment says which line made torch ask)
    cause = None
    if match := _CAUSE.match(comment) or _PLACE.match(comment):
        code = match.groupdict().get("code") or ""
        cause = SourceLocation(full_path(match["file"]), int(match["line"]), match["function"], code.strip())
    return Guard(_expression(kind, condition, owner, owner_type), owner, kind, rest.strip(), cause)


def _expression(kind: str, condition: str, source: str, owner_type: str) -> str:
    """Return valid Python for one condition."""
    if kind == "TENSOR_MATCH" and (tensor := _TENSOR.match(condition)):
        return _tensor(tensor)
    if condition.endswith(">") and _ENUM.fullmatch(condition) is not None:
        return _printed(condition)
    type_name = _TYPE.search(condition)
    named = type_name["type"] if type_name else owner_type
    identity = _IDENTITY.match(condition)
    subject = identity["subject"] if identity else source
    if (kind == "TYPE_MATCH" or identity and identity["what"] == "type") and subject and named:
        return f"check_type({subject}, {named!r})"
    if (kind == "ID_MATCH" or identity) and subject:
        return f"check_same_object({subject}, {named!r})" if named else f"check_same_object({subject})"
    if kind == "GLOBAL_STATE":
        return f"check_global_state({_global_state(condition)})"
    if kind == "TORCH_FUNCTION_MODE_STACK":
        return "check_torch_function_mode_stack()"
    return _printed(condition)


def _printed(condition: str) -> str:
    """Return valid Python for a condition that torch prints nearly as Python."""
    # (To look for a text is cheaper than to match a pattern.)
    if "top_saved_tensors_hooks" in condition and (hooks := _SAVED_TENSORS_HOOKS.fullmatch(condition)):
        return f"check_saved_tensors_hooks({'None' if hooks['ids'].strip() == 'None' else '...'})"
    if "dict_version(" in condition and (version := _DICT_VERSION.fullmatch(condition)):
        return f"check_dict_unchanged({version['subject'] or version['other']})"
    if condition.endswith(">") and (enum := _ENUM.fullmatch(condition)):
        condition = enum["left"] + enum["member"]
    # Only whole names of torch's helpers lose their underscores, never a part of the user's names or strings.
    if "___" in condition:
        condition = condition.replace(FROM_NUMPY, "torch.as_tensor(")
        condition = re.sub(r"(?<![\w'\"])___(?=[a-z]\w*\()", "", condition)
    # (Python prints the items of sets in another order in each process.)
    if is_expression(condition):
        if "{" not in condition or not _SET.search(condition):
            return condition
        return ast.unparse(_WithSortedSets().visit(ast.parse(condition, mode="eval")))
    printed = _PRINTED_SET.sub(
        lambda items: f"{{{', '.join(sorted(re.findall(r'<[^<>]*>|[^{}<>, ][^{}<>,]*', items[0])))}}}",
        _ADDRESS.sub("_", " ".join(condition.split())))
    return f"torch_guard({printed!r})"


class _WithSortedSets(ast.NodeTransformer):
    def visit_Set(self, node: ast.Set) -> ast.Set:
        self.generic_visit(node)
        return ast.Set(sorted(node.elts, key=ast.unparse))


#: A set of objects that have no expression: ``{<class 'list'>, <class 'tuple'>}``.
_PRINTED_SET = re.compile(r"\{(?:<[^<>]*>|[^{}<>,:]+)(?:, (?:<[^<>]*>|[^{}<>,:]+))+\}")
_SET = re.compile(r"\{[^{}:]+,")
#: Numbers in torch's C++ (``c10/core/ScalarType.h``) of the dtypes that a default or autocast may have.
_DTYPES = {4: "torch.int64", 5: "torch.float16", 6: "torch.float32", 7: "torch.float64", 9: "torch.complex64",
           10: "torch.complex128", 15: "torch.bfloat16"}
#: Devices in the order of the lists of autocast (``at::autocast::_AUTOCAST_SUPPORTED_DEVICES``).
_AUTOCAST_DEVICES = ("cpu", "cuda", "mtia", "maia", "xpu", "ipu", "hpu", "xla", "privateuseone", "mps")


def _global_state(condition: str) -> str:
    """Return torch's state as arguments: ``grad_mode=False, autocast={}, default_dtype=torch.float32, ...``."""
    try:
        state = json.loads(condition.partition(" against ")[2])
        settings = {name: repr(value) for name, value in state.items() if isinstance(value, bool | int | str)}
        if "default_dtype" in settings:
            settings["default_dtype"] = _DTYPES.get(state["default_dtype"], settings["default_dtype"])
        cast = state.get("autocast_state") or {}
        on = [(device, number) for device, number, enabled
              in zip(_AUTOCAST_DEVICES, cast.get("dtype", ()), cast.get("enabled", ())) if enabled]
        casts = ", ".join(f"{device!r}: {_DTYPES.get(number, number)}" for device, number in on)
        settings["autocast"] = f"{{{casts}}}"
    except (ValueError, TypeError, AttributeError):
        return ""
    order = dict.fromkeys(["grad_mode", "autocast", "default_dtype", *settings])
    return ", ".join(f"{name}={settings[name]}" for name in order if name in settings and name.isidentifier())


def _tensor(match: re.Match[str]) -> str:
    device = next((_DEVICES[k.strip()] for k in match["keys"].split(",") if k.strip() in _DEVICES), "")
    if match["device"] not in ("None", ""):
        device = f"{device}:{match['device']}"
    cls = "" if match["cls"] == "Tensor" else f", cls={match['cls']!r}"
    text = (f"check_tensor({match['source']}, dtype={match['dtype']}, device={device!r}, "
            f"size={_tuple(match['size'])}, stride={_tuple(match['stride'])}, "
            f"requires_grad={match['grad']}{cls})")
    return text if is_expression(text) else f"torch_guard({match.group(0)!r})"


def inference_of(raw: str) -> int:
    """Return for what part of inference mode a condition on a tensor is, from torch's text of it.

    0: for none; 1: the tensor was made in it, or it is on; 2: both. (Either of these takes autograd's key away from
    those of a call, both take ADInplaceOrView away, too: c10/core/InferenceMode.h.)
    """
    tensor = _TENSOR.match(raw)
    return 0 if tensor is None else ("Autograd" not in tensor["keys"]) + ("ADInplaceOrView" not in tensor["keys"])


def _tuple(items: str) -> str:
    parts = [part.strip() for part in items.split(",") if part.strip()]
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


@functools.lru_cache(maxsize=4096)
def is_expression(text: str) -> bool:
    """Return whether a text is one Python expression."""
    return "\n" not in text and parsed_expression(text) is not None
