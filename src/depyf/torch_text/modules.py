"""Torch's stacks of modules -> records of calls (``ModuleCall``); its accounts of lookups in caches."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Sequence

from ..decompiler.dynamo.global_names import MODULE_DICTIONARIES
from ..records.model import CacheKeyPart, ModuleCall

#: How torch reads a part of a module whose name is a number, where it traces ``torch.func.functional_call``.
_GETATTR = re.compile(r"getattr\((?P<of>[^(),]+), '(?P<name>\w+)'\)")
_PART = re.compile(r"\[(?P<quote>['\"])(?P<key>.*?)(?P=quote)\]|\[(?P<index>[^\]'\"][^\]]*)\]|\.?(?P<name>[^.\[ ()]+)")
#: Torch's form of them in the name of an input: ``L_self_modules_up_parameters_weight_``.
_HOLDER_IN_NAME = re.compile(r"_(?:modules|parameters|buffers)_")
#: Dictionaries in which a module has its parts: the name of the part follows.
_HOLDERS = (*MODULE_DICTIONARIES, "__dict__")


def module_calls(stacks: Iterable[tuple[str, Sequence[tuple[str, str, str]]]]) -> tuple[ModuleCall, ...]:
    """Return the calls that nodes were made in.

    Args:
        stacks: ``(node, [(key, path, class), ...])``, outermost first; ``key`` differs for calls of one module, and
            ``path`` is as torch writes it.
    """
    numbers: dict[tuple[str, ...], int] = {}
    calls: list[tuple[str, str, int, list[str]]] = []
    for node, stack in stacks:
        whole = tuple([key for key, _, _ in stack])
        outer = numbers.get(whole, -1)  # (Most nodes are made where the one before was.)
        if outer < 0:
            for depth, (_, path, cls) in enumerate(stack, 1):
                number = numbers.get(whole[:depth])
                if number is None:
                    number = numbers[whole[:depth]] = len(calls)
                    calls.append((module_path(path), cls.rpartition(".")[2], outer, []))
                outer = number
        if outer >= 0:
            calls[outer][3].append(node)
    return tuple(ModuleCall(path, cls, outer, tuple(nodes)) for path, cls, outer, nodes in calls)


def parts_of_input(name: str) -> list[str]:
    """Return the names in torch's name of an input: ``["self", "up", "weight"]`` of ``L_self_modules_up_...``."""
    return _HOLDER_IN_NAME.split(name[2:] if name.startswith(("L_", "G_")) else name)


def is_of_module(source: str) -> bool:
    """Return whether a source is a parameter or buffer that torch reads of a module."""
    return "._parameters[" in source or "._buffers[" in source


@functools.lru_cache(maxsize=4096)
def module_path(expression: str) -> str:
    """Return the path of a module that torch writes as an expression.

    ``L['self'].layers[0].q_proj``, ``L['self']._modules['layers']._modules['0'].q_proj`` and
    ``L['self'].layers.0.q_proj`` are ``layers.0.q_proj``, and so is
    ``getattr(L['self'].layers, '0').q_proj``; ``G['model'].norm`` is ``model.norm``; a cell,
    ``L['fn'].__closure__[0].cell_contents.norm``, leaves no name. Other text is unchanged. (Torch's names are no
    identifiers always, so that this is no Python.)
    """
    plain = _GETATTR.sub(r"\g<of>.\g<name>", expression) if "getattr(" in expression else expression
    parts, at = [], 0
    while at < len(plain):
        part = _PART.match(plain, at)
        if part is None or part.lastgroup is None:
            return expression
        parts.append(part[part.lastgroup])
        at = part.end()
    if parts[:2] == ["L", "self"]:
        parts = parts[2:]
    elif parts[:1] in (["L"], ["G"]) and len(parts) > 1 or parts[:1] == ["self"]:
        parts = parts[1:]
    if "cell_contents" in parts:
        parts = parts[len(parts) - parts[::-1].index("cell_contents") :]
    return ".".join(part for part in parts if part not in _HOLDERS)


# --- lookups in a compile cache (``fx_graph_cache_hit``, ``_miss``, ``_bypass``) -------------------------
#     {"key": "fo2k…", "components": ["[ab3x…] gm: <lambda>()…", "[9kd0…] inductor_config[debug]: False", …]}
#
# The key has some 600 components (torch/_inductor/codecache.py, ``FxGraphHashDetails.debug_lines``), nearly all of them
# options. They are put together by name.
_COMPONENT = re.compile(r"\[(?P<digest>\w+)\] (?P<name>\w+)(?P<place>\[[^\]]*\])?")
_LENGTH = 12
#: (torch/_functorch/_aot_autograd/autograd_cache.py, ``check_node_safe``)
_BYPASSING = re.compile(r"\b(?:Function|Method) name: (?P<name>\w+)")


def cache_lookup(payload: str) -> tuple[str, tuple[CacheKeyPart, ...]]:
    """Return why a cache was bypassed, ``""`` if it was not, and the parts of the key that was looked up, if any."""
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        value = None
    value = value if isinstance(value, dict) else {}
    components = value.get("components")
    digests: dict[str, list[str]] = {}
    for component in components if isinstance(components, list) else ():
        match = _COMPONENT.match(component) if isinstance(component, str) else None
        if match is not None:
            digests.setdefault(match["name"], []).append(f"{match['place'] or ''}{match['digest']}")
    import hashlib  # (most runs have no such key)

    return str(value.get("cache_bypass_reason") or ""), tuple(
        CacheKeyPart(name, hashlib.sha256("\n".join(sorted(each)).encode()).hexdigest()[:_LENGTH])
        for name, each in digests.items())


def bypassing_operation(reason: str) -> str:
    """Return the operation that a cache was bypassed for: ``"autograd_function_apply"``; ``""`` for another reason."""
    match = _BYPASSING.search(reason)
    return match["name"] if match else ""
