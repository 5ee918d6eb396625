"""Torch's texts without the differences between two runs of the same program: addresses, ids, hashes, counters.

Texts of graphs, generated modules, guards and reasons are compared in this form.
"""

from __future__ import annotations

import ast
import functools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..records.model import Guard

#: Addresses, ids of objects in names (with the id of a compilation), hashes, numbers of graphs and frames.
_IDS = re.compile(
    r"0x[0-9a-f]+|(?<=_)\d{9,}(?:_\d{9,})*(?:_c\w+)?\b|\b[a-z0-9]{40,}\b|(?<=__compiled_fn_)\d+(?:_[0-9a-f_]{36,})?"
    r"|(?<=__builtins_dict__)_\d+|(?<=__resume_at_)\d+_\d+")
#: Types of sizes have them or not (torch's two printers): ``3 - (Mod(s0, 3))``.
_IN_PARENTHESES = re.compile(r"(?<!\w)\((Mod\([^()]*\))\)")
#: Differences between ranks that run the same program: addresses, devices, streams, numbers of graphs, ids of objects
#: (not the digits of a fraction).
IDS_OF_RANK = (
    r"0x[0-9a-f]+|(?<=cuda:)\d+|(?<=index=)\d+|(?<=, device=)\d+|(?<=/rank_)\d+|(?<=\bstream)\d+"
    r"|(?<=_DeviceGuard\()\d+|(?<=set_device\()\d+|(?<=get_raw_stream\()\d+"
    r"|(?<=__compiled_fn_)\d+(?:_[0-9a-f_]{36,})?|(?<![\d.])\d{9,}(?:_\d{9,})*(?:_c\w+)?(?!\d|\.\d)")
_IDS_OF_RANK = re.compile(IDS_OF_RANK)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_VALUE = re.compile(r"0x[0-9a-f]+|(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)|'[^']*'")
#: Torch's numbers of guarded objects, different in each compilation.
_NUMBER_OF_OBJECT = re.compile(r"0x[0-9a-f]+|\b\d{9,}\b|(?<=__builtins_dict___)\d+|(?<=___)\d+\b")
#: In a guard a whole number like that is the address of an object. (In a graph it is a number.)
_OBJECT = re.compile(r"(?<![\w.])\d{12,}\b(?!\.)")
#: Python counts up the version of a dictionary with each change of any.
_DICT_VERSION = re.compile(r"(\bdict_version\(.*\) == )\d+")
#: The contents of a set or a dictionary.
_SET = re.compile(r"\{([^{}]*)\}")
_COMMUTES = re.compile(r" [+*>] | >= |[\w)\]]\*|\bm(?:ax|in)\(")
#: Lines of a generated module with its path, or the time it was made.
_OF_THIS_RUN = re.compile(r"^\s*(#|//).*|.*\b(kernel_path|compile_id|AOT ID)\b.*")
_COUNTER = re.compile(r"(?<=.)(?:_\d+)+$")
_WORD = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?|\S")


def without_run_ids(text: str) -> str:
    """Return a text with ``_`` for the differences between two runs."""
    return _IDS.sub("_", _IN_PARENTHESES.sub(r"\1", text))


def without_rank_ids(text: str) -> str:
    """Return a text with ``_`` for the differences between two ranks of a run."""
    return _IDS_OF_RANK.sub("_", text)


def without_addresses(text: str) -> str:
    """Return a text without the addresses of the objects in it."""
    return _ADDRESS.sub("", text)


def without_values(text: str, source: str = "") -> str:
    """Return a reason of torch's with ``_`` for each number and quoted text, but for those in a source expression."""
    return _VALUE.sub(lambda m: m[0] if source and (m[0] == f"'{source}'" or m[0] in source) else "_", text)


def without_numbers_of_objects(text: str) -> str:
    """Return a guard without the numbers that torch gives to objects."""
    return _NUMBER_OF_OBJECT.sub("", text)


def without_counter(name: str) -> str:
    """Return a name without the number that torch counts up: ``cpp_fused_add_relu`` of ``cpp_fused_add_relu_0``."""
    return _COUNTER.sub("", name)


def words(statement: str) -> list[str]:
    """Return the names, numbers and signs of a statement of a graph, in order."""
    return _WORD.findall(statement)


def module_lines(text: str) -> list[str]:
    """Return the lines of a generated module, without comments, paths and hashes."""
    return [without_run_ids(line.rstrip()) for line in text.splitlines()
            if line.strip() and not _OF_THIS_RUN.fullmatch(line)]


def guard_text(guard: Guard) -> str:
    """Return a condition without ids of objects, versions of dictionaries, and the order of what has none."""
    text = without_run_ids(_OBJECT.sub("_", _DICT_VERSION.sub(r"\1_", guard.expression)))
    if _COMMUTES.search(text):
        text = _in_order(text)
    return _SET.sub(lambda match: "{" + ", ".join(sorted(match[1].split(", "))) + "}", text)


@functools.lru_cache(maxsize=10_000)
def _in_order(expression: str) -> str:
    """Return an expression with the operands sorted that sympy has in sets, in another order in each process."""
    try:
        return ast.unparse(_Sorted().visit(ast.parse(expression, mode="eval")))
    except (SyntaxError, ValueError, RecursionError):
        return expression


class _Sorted(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        kind = type(node.op)
        if kind not in (ast.Add, ast.Mult):
            self.generic_visit(node)
            return node
        operands, pending = [], [node.right, node.left]
        while pending:
            operand = pending.pop()
            if isinstance(operand, ast.BinOp) and type(operand.op) is kind:
                pending += [operand.right, operand.left]
            else:
                operands.append(self.visit(operand))
        operands.sort(key=ast.unparse)
        return functools.reduce(lambda left, right: ast.BinOp(left, kind(), right), operands)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("max", "min"):
            node.args.sort(key=ast.unparse)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        turned = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}.get(type(node.ops[0]))  # (the order depends on the cache, too)
        if len(node.ops) == 1 and turned:
            node.left, node.ops, node.comparators = node.comparators[0], [turned()], [node.left]
        elif len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            node.left, node.comparators[0] = sorted((node.left, node.comparators[0]), key=ast.unparse)
        return node


# --- Files of ranks that say the same, found without parsing most of them -----------------------------
# Thousands of ranks do the same. Two processes that do the same write records, or logs of ``TORCH_TRACE``, that differ
# in times, addresses, ids, numbers of devices:
#
#     {"record":"compilation", ... "seconds":0.92495, ... "expression":"___check_obj_id(L['f'], 140084081999072)" ...}
#     {"record":"compilation", ... "seconds":1.09615, ... "expression":"___check_obj_id(L['f'], 139784071912096)" ...}
#
# The first file becomes a *template*: the pieces between what differs. To test whether another file has these pieces
# costs little more than to read it; to normalise each file costs 40 times as much.
#: Parts of records that differ between processes which do the same.
_IN_RECORDS = (
    rb'(?<="start":)[-+.\deE]+|(?<="seconds":)[-+.\deE]+|(?<="guard_microseconds":)\d+|(?<="date":)"[^"]*"'
    rb'|(?<="rank":)"\d+"|(?<="path":)"[^"]*torchinductor_[^"]*"')
#: The same of logs: the beginnings of lines, digests of payloads, times, variables of the environment, keys of caches.
_IN_LOGS = (
    rb'^[VDIWEF]\d{4} [\d:.]+ \d+ |(?<="rank": )\d+|(?<="has_payload": ")[0-9a-f]{32}|(?<="ts": )[\d.]+'
    rb'|(?:(?<=_us": )|(?<=_ms": )|(?<=_s": )|(?<=_time": ))(?:[-+.\de]+|null)|(?<="time_taken_ns": )\d+'
    rb'|(?<=_us": ")(?:[^"\\\n]|\\.)*|(?<=Guard latency = )[\d.]+'
    rb"|(?<=os\.environ\[)[^\n]+|\b[a-z0-9]{2}/(?=[a-z0-9]{40,}\.)|\b[a-z0-9]{40,}\b")
_VARIES = re.compile(b"|".join((_IN_RECORDS, _IN_LOGS, IDS_OF_RANK.encode())), re.M)
_TRIED = 16  #: How many templates are tried.


class AlikeFiles:
    """Finds files that are alike; they are added one by one."""

    def __init__(self) -> None:
        self._templates: dict[int, list[tuple[int, bytes, list[bytes]]]] = {}  # by their numbers of lines
        self._count = 0

    def add(self, data: bytes) -> int:
        """Return a number that is equal for files that are alike."""
        known = self._templates.setdefault(data.count(b"\n"), [])
        for template in known[:_TRIED]:
            number, first, pieces = template
            if data != first and not pieces:  # (most files are like no other)
                pieces += _VARIES.split(first)
            if data == first or _has_pieces(data, pieces):
                known.remove(template)
                known.insert(0, template)  # the most likely one comes first
                return number
        known.insert(1, (self._count, data, []))
        self._count += 1
        return self._count - 1


def _has_pieces(data: bytes, pieces: list[bytes]) -> bool:
    """Return whether a file is these pieces with what may vary between them."""
    at = 0
    for piece in pieces[:-1]:
        part = _VARIES.match(data, at + len(piece)) if data.startswith(piece, at) else None
        if part is None:
            return False
        at = part.end()
    return data[at:] == pieces[-1]
