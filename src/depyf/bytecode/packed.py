"""Code objects of a running program as text in a record.

    packed(code)      -> PackedCode("4wAAAAA...", ...)       quick, while the program runs
    unpacked(packed)  -> Code                                read by our own reader: nothing is executed

``marshal`` writes what compilers put into code. Dynamo puts objects there, too; such a constant becomes an
:class:`ObjectConstant`, which says as much of the object as a text can.
"""

from __future__ import annotations

import base64
import binascii
import marshal
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from ..values import frozen
from .errors import Unreadable

if TYPE_CHECKING:  # (what packs, in the user's program, needs no more)
    from .code import Code

_LITERALS = frozenset({int, float, complex, str, bytes, bool, type(None), type(...)})


@dataclass(eq=False, slots=True)
class ObjectConstant:
    """A constant that is an object, as far as a text can say what it is.

    Attributes:
        kind: an identifier for it: ``"globals"``, ``"code"``, the name of its class.
        meaning: two constants of this meaning are the same; ``""``: only the same object is.
    """

    kind: str
    text: str
    meaning: str = ""

    @classmethod
    def of(cls, value: Any) -> ObjectConstant:
        """Describe an object."""
        kind = type(value)
        if kind is dict and "__builtins__" in value:
            return cls("globals", f"the globals of module {value.get('__name__')}")
        name = kind.__name__
        identifier = name if name.isidentifier() else "object"
        if kind is slice:
            return cls(identifier, repr(value))
        if kind.__module__ == "torch" and name in ("dtype", "device", "layout", "memory_format", "Size"):
            return cls(identifier, repr(value), f"{name} {value!r}")  # small ones whose text is their meaning
        text = _class_or_method(value)
        return cls(identifier, text or f"an object of type {name}", text if IMPORTED in text else "")


#: Between the name of a class, or of a method of one, and the module that it is imported from, in its text.
IMPORTED = " of module "


def _class_or_method(value: Any) -> str:
    """Return what a class or a bound method is, in words; ``""`` for other objects. Nothing of the user's runs.

    ``P of module app`` and ``P._make of module app`` where an import gives it, else ``the class f.<locals>.P``.
    """
    if type(value) is not MethodType:
        return _class(value) if _is_class(value) else ""
    owner: Any = value.__self__
    function = value.__func__
    if type(function) is not FunctionType:
        return ""
    name = function.__name__
    if not _is_class(owner):
        return f"the method {name} of an object of type {type(owner).__name__}"
    home, imported, module = _class(owner).partition(IMPORTED)
    if imported and name.isidentifier() and _gives(owner, name, function):
        return f"{home}.{name}{imported}{module}"
    return f"the method {name} of {_class(owner, False)}"


def _is_class(value: Any) -> bool:
    return any(each is type for each in type(value).__mro__)


def _class(cls: type, by_import: bool = True) -> str:
    """Return what a class is: its name and module, or (where no import is known to give it) its qualified name."""
    module, name, qualified = [type.__dict__[key].__get__(cls) for key in ("__module__", "__name__", "__qualname__")]
    home = sys.modules.get(module) if type(module) is str else None
    if by_import and type(home) is ModuleType and name.isidentifier() and vars(home).get(name) is cls:
        return f"{name}{IMPORTED}{module}"
    return f"the class {qualified}"


def _entry(cls: type, name: str) -> Any:
    """Return the entry of a name in a class, or in the first of its bases that has one; ``None`` if there is none."""
    bases: tuple[type, ...] = type.__dict__["__mro__"].__get__(cls)
    return next((vars(each)[name] for each in bases if name in vars(each)), None)


def _gives(cls: type, name: str, function: FunctionType) -> bool:
    """Return whether ``cls.name`` is a method of the class that is bound to it."""
    of_class, of_metaclass = [_entry(each, name) for each in (cls, type(cls))]
    entry: Any = of_class if of_metaclass is None else None
    return type(entry) is classmethod and entry.__func__ is function


@frozen
class PackedCode:
    """A code object.

    Attributes:
        data: what ``marshal`` makes of it, in base64; constants that are objects are strings there.
        prefix: what these strings begin with; a number follows, the index in ``objects``.
        objects: ``(kind, text, meaning)`` of each (:class:`ObjectConstant`).
    """

    data: str
    prefix: str = ""
    objects: tuple[tuple[str, str, str], ...] = ()


def packed(code: CodeType) -> PackedCode:
    """Pack a code object of the running interpreter."""
    objects: list[Any] = []
    prefix = ""
    constants = [*_constants_in(code)]
    if not _LITERALS.issuperset(map(type, constants)):  # (``marshal`` would take some: what is a buffer, as bytes)
        prefix = _free_prefix(constants)
        code = _without_objects(code, prefix, objects)
    data = base64.b64encode(marshal.dumps(code)).decode()
    return PackedCode(data, prefix, tuple(
        (each.kind, each.text, each.meaning) for each in map(ObjectConstant.of, objects)))


def _constants_in(value: Any) -> Iterator[Any]:
    """Yield what is no tuple, set or code object in a constant, at any depth."""
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, CodeType):
            pending += value.co_consts
        elif type(value) in (tuple, frozenset):
            pending += value
        else:
            yield value


def _free_prefix(constants: Collection[Any]) -> str:
    """Return what none of the strings begins with."""
    strings = {each for each in constants if type(each) is str}
    prefix = "object "
    while any(text.startswith(prefix) for text in strings):
        prefix = f"an {prefix}"
    return prefix


def unpacked(code: PackedCode, version: tuple[int, int]) -> Code:
    """Return the code object; raise :class:`Unreadable` if it is none."""
    from .code import Code
    from .pyc import loads

    try:
        data = base64.b64decode(code.data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unreadable(f"a code object of a record cannot be read: {error}", "<record>", 0) from error
    read = loads(data, version, "<record>")
    if not isinstance(read, Code):
        raise Unreadable(f"a record holds a {type(read).__name__}, not a code object", "<record>", 0)
    if not code.prefix:
        return read
    whole: Code = _with_objects(read, code.prefix, [_constant(*each) for each in code.objects])
    return whole


def _constant(kind: str, text: str, meaning: str) -> Any:
    """Return what an object is described by; the object itself where its text says it: a slice of literals."""
    if kind == slice.__name__ and not meaning:
        import ast

        try:
            call = ast.parse(text, mode="eval").body
            if isinstance(call, ast.Call) and len(call.args) == 3:
                return slice(*map(ast.literal_eval, call.args))
        except (SyntaxError, ValueError, TypeError):
            pass  # (it contains objects)
    return ObjectConstant(kind, text, meaning)


def _without_objects(value: Any, prefix: str, objects: list[Any]) -> Any:
    """Return a constant with strings for the objects in it, which are added to ``objects``."""
    kind = type(value)
    if kind is CodeType:
        return value.replace(co_consts=tuple(_without_objects(each, prefix, objects) for each in value.co_consts))
    if kind in (tuple, frozenset):
        return kind(_without_objects(each, prefix, objects) for each in value)
    if kind in _LITERALS:
        return value
    number = next((number for number, known in enumerate(objects) if known is value), len(objects))
    if number == len(objects):
        objects.append(value)
    return f"{prefix}{number}"


def _with_objects(value: Any, prefix: str, objects: list[Any]) -> Any:
    """Return a constant with the objects that strings represent."""
    from .code import Code

    kind = type(value)
    if kind is Code:
        return replace(value, consts=tuple(_with_objects(each, prefix, objects) for each in value.consts))
    if kind in (tuple, frozenset):
        return kind(_with_objects(each, prefix, objects) for each in value)
    if kind is str and value.startswith(prefix):
        number = value[len(prefix):]
        if not number.isdecimal() or int(number) >= len(objects):
            raise Unreadable("a code object of a record names a constant that is not there", "<record>", 0)
        return objects[int(number)]
    return value
