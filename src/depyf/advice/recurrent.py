"""Recurrent modules of torch's, ``nn.RNN``, ``nn.GRU`` and ``nn.LSTM``, and packed sequences as their input.

With ``allow_rnn`` torch traces their step over a padded batch. Of a packed sequence the module takes the size of the
batch out of a tensor, which breaks the graph, and with ``capture_scalar_outputs`` it compares it, which does, too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .model import Advice
from .source import Function, Site, called

_SETTING = "torch._dynamo.config.allow_rnn = True"
_COST = ("the loop over time is unrolled: compile time and kernels grow with the length of the sequence, and each "
         "length has a version of its own")
_PACKS = ("pack_padded_sequence", "pack_sequence")
_MODULE = re.compile(r"torch[\\/]nn[\\/]modules[\\/]rnn\.py$")


def on_recurrent(site: Site) -> Advice:
    """Return the advice on a recurrent module, which torch does not trace unless it is told to."""
    if _is_packed(site):
        return _padded()
    return Advice("allow_rnn", f"set `{_SETTING}`", "torch then traces what the module computes, step by step",
                  f"{_COST}; it holds for padded input alone: a packed sequence breaks the graph again",
                  settings=(_SETTING,))


def on_packed(site: Site) -> Advice | None:
    """Return the advice on a number that a recurrent module takes out of a tensor: the sizes of a packed batch."""
    where = site.broken.location
    inside = where is not None and _MODULE.search(where.filename) is not None
    return _padded() if inside and "_local_scalar_dense" in site.broken.explanation else None


def on_packing(site: Site) -> Advice | None:
    """Return the advice on the packing of a batch that a module of the same function is given; ``None`` for others."""
    match site.statement:
        case ast.Assign([ast.Name(name)], ast.Call() as call) if called(call) in _PACKS and site.function is not None:
            given = [each for each in ast.walk(site.function) if isinstance(each, ast.Call) and any(
                isinstance(inner, ast.Name) and inner.id == name for inner in each.args)]
            if len(given) == 1 and isinstance(given[0].func, ast.Attribute):
                return _padded()
    return None


def _padded() -> Advice:
    return Advice(
        "packed", f"give the module the padded batch, not the packed one, and set `{_SETTING}`",
        "torch does not trace packed sequences: the size of each step is in a tensor",
        "the padding is computed, too: last states are others, and so is all that a bidirectional module returns; "
        f"{_COST}")


def _is_packed(site: Site) -> bool:
    """Return whether the statement calls something with a sequence that the function packs."""
    packed = set(_packed_in(site.function)) if site.function is not None else set()
    for call in ast.walk(site.statement) if site.statement is not None else ():
        for given in call.args if isinstance(call, ast.Call) else ():
            if isinstance(given, ast.Name) and given.id in packed or (
                    isinstance(given, ast.Call) and called(given) in _PACKS):
                return True
    return False


def _packed_in(function: Function) -> Iterator[str]:
    """Yield the names that a function gives to packed sequences, and its parameters that are said to be such."""
    for node in ast.walk(function):
        match node:
            case ast.Assign([ast.Name(name)], ast.Call() as call) if called(call) in _PACKS:
                yield name
            case ast.arg(name, annotation) if annotation is not None and "PackedSequence" in ast.unparse(annotation):
                yield name
