"""Programs of every kind, each a function ``run()`` that returns what anyone could observe of it.

Every code object of theirs is written as a dispatch loop and run beside the original (``test_dispatch_runs``).
"""

from __future__ import annotations

from types import CodeType

from depyf.bytecode.code import Code
from depyf.decompiler.emit.text import emit
from depyf.decompiler.fallback import dispatch_loop
from depyf.decompiler.result import Options, Tier, Tiers
from depyf.decompiler.scopes import top_level


def as_loops(original: CodeType | Code) -> CodeType:
    """The program with every code object of its written as a dispatch loop."""
    return compile(text_as_loops(original), "<loops>", "exec", dont_inherit=True)


def text_as_loops(original: CodeType | Code) -> str:
    code = original if isinstance(original, Code) else Code.of(original)
    tiers = Tiers(code, Tier.DISPATCH)
    for inner in tiers.names:
        while tiers.of(inner) is not Tier.DISPATCH:
            tiers.demote(inner, "a test")
    return emit(top_level(code, Options(tiers, dispatch_loop)))[0]


#: What all of them may use.
COMMON = '''
import asyncio, sys

def chain(error, depth=0):
    """An exception with all that hangs on it, and the functions its traceback names (each once)."""
    if error is None or depth > 6:
        return None
    names, trace = [], error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_name.startswith("__"):  # (the loops' own helpers have such names)
            names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    inner = [chain(e, depth + 1) for e in getattr(error, "exceptions", ())]
    return (type(error).__name__, str(error), error.__suppress_context__, list(dict.fromkeys(names)), inner,
            chain(error.__cause__, depth + 1), chain(error.__context__, depth + 1))

def outcome(function, *args, **kwargs):
    try:
        return "value", function(*args, **kwargs)
    except BaseException as error:
        return "raised", chain(error)

class Manager:
    def __init__(self, log, name, swallow=False, fail=None):
        self.log, self.name, self.swallow, self.fail = log, name, swallow, fail
    def __enter__(self):
        self.log.append(("enter", self.name))
        return self
    def __exit__(self, kind, error, trace):
        self.log.append(("exit", self.name, kind and kind.__name__, str(error), trace is not None,
                         type(sys.exc_info()[1]).__name__))
        if self.fail:
            raise self.fail
        return self.swallow
    async def __aenter__(self):
        await asyncio.sleep(0)
        return self.__enter__()
    async def __aexit__(self, *args):
        await asyncio.sleep(0)
        return self.__exit__(*args)
'''

PROGRAMS = {
"type_parameters": '''
def kept(function):
    function.seen = [p.__name__ for p in function.__type_params__]
    return function

type Plain = list[Later] | None
type Recursive[T] = list[Recursive[T]] | T

@kept
def generic[T: Later, *Ts, **P](a: T = 1, *rest: *Ts, b: list[T] = 2, **more) -> dict[str, T]:
    return a, b, [lambda: T for _ in rest][0]() is T

def keywords[T: (int, str)](*, a: T = 1):
    return keywords.__type_params__[0] is T

def local(x):
    type Alias[T] = dict[T, x]
    def deep[T](a: T):
        def deeper[U](b: U) -> T:
            return T, U, x
        return deeper
    return Alias, deep

class Later:
    pass

def parameters(of):
    found = []
    for p in of.__type_params__:
        bound = getattr(p, "__bound__", None)
        found.append((p.__name__, type(p).__name__, repr(p), bound and bound.__name__,
                      [c.__name__ for c in getattr(p, "__constraints__", ())]))
    return found

def run():
    alias, deep = local(int)
    deeper = deep(1)
    return [
        str(Plain.__value__), Plain.__name__, Plain.__module__, parameters(Recursive), str(Recursive.__value__),
        generic.seen, parameters(generic), outcome(generic, 5, 6), generic.__defaults__, generic.__kwdefaults__,
        generic.__qualname__, keywords(), keywords.__kwdefaults__, parameters(keywords), parameters(alias),
        str(alias.__value__), parameters(deep), parameters(deeper), deeper.__qualname__,
        deeper.__code__.co_qualname, [t.__name__ for t in deeper(1)],
        deeper.__annotations__["return"] is deep.__type_params__[0],
    ]
''',
# (3.12.1 mangles the names behind a class with type parameters as if they stood in it)
"generic_classes": '''
class Base[T]:
    x: T
    def method[U](self, value: U) -> tuple[T, U]:
        return type(self).__name__, U.__name__, T.__name__, Base.__name__
    class Inner[V: (int, str)](list[V]):
        pass

class Derived[T: Base](Base[T]):
    def method(self, value):
        return super().method(value), __class__.__name__

def run():
    def parameters(of):
        return [(p.__name__, repr(p), str(p.__bound__), p.__constraints__) for p in of.__type_params__]
    return [
        Base().method(1), Derived().method(2), [parameters(c) for c in (Base, Base.method, Base.Inner, Derived)],
        Base.Inner.__qualname__, str(Base.__orig_bases__), Derived.__mro__[1] is Base, Base.method.__qualname__,
        Base.method.__code__.co_qualname, Derived.method.__qualname__, str(Base.__annotations__),
    ]
''',
"defaults_of_type_parameters": '''
def lazy[T: (missing, str) = missing, U: missing = missing, *Ts = *tuple[missing], **P = [missing]](): pass

class Sized[T = int, *Ts = *tuple[int, str]]:
    Item = list
    def method[U: Item = Item](self): pass
    type Pair[V = Item] = tuple[V, Item]

type Alias[T = missing] = dict[T, missing]

def run():
    def parameters(of):
        return [outcome(lambda: (p.__name__, p.__module__, type(p).__name__, getattr(p, "__infer_variance__", None),
                                 p.has_default(), str(p.__default__), str(getattr(p, "__bound__", None)),
                                 str(getattr(p, "__constraints__", None)))) for p in of.__type_params__]
    def failed(of):
        return [(p.__name__, outcome(lambda: getattr(p, what))[1][:2])
                for p in of.__type_params__ for what in ("__default__", "__bound__", "__constraints__")
                if outcome(lambda: getattr(p, what))[0] == "raised"]
    before = failed(lazy), failed(Alias), outcome(lambda: Alias.__value__)[1][:2]
    globals()["missing"] = int
    return [
        before, parameters(lazy), parameters(Alias), str(Alias.__value__), Alias[str].__args__, Alias.__module__,
        Alias.__value__.__args__[0] is Alias.__type_params__[0], parameters(Sized), parameters(Sized.method),
        parameters(Sized.Pair), str(Sized.Pair.__value__), str(Sized.__orig_bases__), str(Sized.__parameters__),
    ]
''',
"loops": '''
def collatz(n):
    steps = []
    while n != 1:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        steps.append(n)
        if len(steps) > 20:
            break
    else:
        return "end", steps
    return "cut", steps
def search(table, wanted):
    for y, row in enumerate(table):
        for x, value in enumerate(row):
            if value is None:
                continue
            if value == wanted:
                break
        else:
            continue
        return y, x
    else:
        y = x = -1
    return y, x
def run():
    table = [[1, None, 3], [4, 5, 6]]
    return collatz(6), collatz(27), search(table, 5), search(table, 9), search([], 1)
''',
"try_except_finally": '''
def steps(log, a, b):
    try:
        log.append("try")
        x = a / b
        return "result", x
    except ZeroDivisionError as error:
        log.append(str(error))
        raise ValueError("no") from error
    except (TypeError, KeyError) as error:
        log.append(type(error).__name__)
        error.note = 1
    else:
        log.append("else")
    finally:
        log.append(("finally", type(sys.exc_info()[1]).__name__))
    return "end", "error" in locals()
def override():
    try:
        return 1
    finally:
        return 2
def swallow():
    for i in range(3):
        try:
            1 / 0
        finally:
            if i == 1:
                break
            continue
    return i
def run():
    log = []
    found = [outcome(steps, log, 1, 2), outcome(steps, log, 1, 0), outcome(steps, log, 1, "x"), log]
    return found, override(), swallow()
''',
"contexts_of_exceptions": '''
def implicit():
    try:
        1 / 0
    except ZeroDivisionError:
        {}["missing"]
def twice():
    try:
        implicit()
    except KeyError:
        raise
def cut():
    try:
        1 / 0
    except ZeroDivisionError:
        raise KeyError("k") from None
def inside():
    try:
        raise ValueError(1)
    except ValueError as first:
        try:
            raise KeyError(2)
        except KeyError as second:
            third = TypeError(3)
            return first.__context__, second.__context__ is first, third.__context__
def restored():
    seen = [sys.exc_info()[0]]
    try:
        raise ValueError
    except ValueError:
        seen.append(sys.exc_info()[0])
        try:
            raise KeyError
        except KeyError:
            seen.append(sys.exc_info()[0])
        seen.append(sys.exc_info()[0])
    seen.append(sys.exc_info()[0])
    return seen
def in_finally():
    try:
        raise ValueError(1)
    finally:
        try:
            raise KeyError(2)
        except KeyError:
            pass
def late():
    try:
        raise ValueError(1)
    except ValueError as error:
        kept = error
    try:
        raise kept
    finally:
        kept = None
def bare():
    raise
def reraise_other():
    try:
        raise ValueError(1)
    except ValueError as a:
        try:
            raise KeyError(2)
        except KeyError as b:
            raise a
def wrong_type():
    try:
        raise ValueError(1)
    except "ValueError":
        return 1
def run():
    functions = [implicit, twice, cut, inside, restored, in_finally, late, bare, reraise_other, wrong_type]
    return [outcome(f) for f in functions]
''',
"with": '''
def body(log, fail, *managers):
    first, second = managers
    with first as one, second:
        log.append(one.name)
        if fail:
            raise fail
        return "returned"
    return "swallowed"
def loop(log):
    for name in "abc":
        with Manager(log, name):
            if name == "b":
                continue
            if name == "c":
                break
    return name
class Half:
    def __enter__(self):
        return "entered"
class Unusual:
    __enter__ = staticmethod(lambda: "static")
    @classmethod
    def __exit__(cls, *args):
        return len(args) == 3
def enters(manager):
    with manager as value:
        raise ValueError(value)
    return value
def run():
    log, found = [enters(Unusual()), outcome(enters, Half()), outcome(enters, 3)], []
    for swallow in (False, True):
        for fail in (None, ValueError("v"), SystemExit(3)):
            found.append(outcome(body, log, fail, Manager(log, 1), Manager(log, 2, swallow)))
    found.append(outcome(body, log, ValueError("x"), Manager(log, 1), Manager(log, 2, False, KeyError("from exit"))))
    found.append(outcome(body, log, None, Manager(log, 1), Manager(log, 2, False, KeyError("from exit"))))
    found.append(outcome(body, log, None, Manager(log, 1), 5)[0])
    return found, loop(log), log
''',
"generators": '''
def talk(log):
    total = 0
    while True:
        try:
            got = yield total
            total += got or 0
        except ValueError as error:
            log.append(("caught", str(error)))
            yield "after"
        except GeneratorExit:
            log.append("closed")
            raise
        finally:
            log.append("finally")
def outer(log):
    try:
        result = yield from inner(log)
        log.append(result)
        yield "last"
    finally:
        log.append("outer done")
def inner(log):
    for i in range(2):
        try:
            log.append((yield i))
        except KeyError:
            log.append("key")
    return "inner result"
def stubborn():
    try:
        yield 1
    except GeneratorExit:
        yield 2
def stops():
    yield 1
    raise StopIteration(5)
def context():
    try:
        raise ValueError(1)
    except ValueError:
        yield type(sys.exc_info()[1])
        yield type(sys.exc_info()[1])
def returns():
    return 5
    yield
def run():
    log = []
    g = talk(log)
    found = [next(g), g.send(3), g.throw(ValueError("v")), next(g), g.send(4), g.close(), outcome(next, g)]
    g = outer(log)
    found += [next(g), g.send("x"), outcome(g.throw, KeyError("k")), outcome(next, g)]
    g = outer(log)
    next(g)
    found += [outcome(g.throw, TypeError("t")), g.close()]
    g = stubborn()
    next(g)
    found += [outcome(g.close)]
    g = stops()
    found += [next(g), outcome(next, g)]
    found += [list(context()), outcome(next, returns()), talk.__name__, talk(log).__name__, g.__qualname__]
    del g
    return found, log
''',
"coroutines": '''
class Steps:
    def __init__(self, n, fail=None):
        self.n, self.fail, self.i = n, fail, 0
    def __aiter__(self):
        return self
    async def __anext__(self):
        self.i += 1
        if self.i > self.n:
            raise self.fail or StopAsyncIteration
        await asyncio.sleep(0)
        return self.i
async def total(n, fail=None):
    s = 0
    async for x in Steps(n, fail):
        if x == 2:
            continue
        s += x
    else:
        s += 100
    return s
async def managed(log, fail):
    async with Manager(log, "a"), Manager(log, "b", True) as b:
        log.append(b.name)
        if fail:
            raise fail
        return "returned"
    return "swallowed"
async def counted(log, n):
    try:
        for i in range(n):
            got = yield i
            log.append(got)
            await asyncio.sleep(0)
    finally:
        log.append("counted done")
async def drive(log):
    g = counted(log, 3)
    found = [await g.asend(None), await g.asend("x")]
    try:
        await g.athrow(KeyError("k"))
    except KeyError as error:
        found.append(str(error))
    g = counted(log, 2)
    found += [x async for x in g if x]
    g = counted(log, 2)
    async for x in g:
        break
    await g.aclose()
    found.append(await total(4))
    try:
        await total(1, ValueError("stop"))
    except ValueError as error:
        found.append(chain(error)[:2])
    try:
        async with asyncio.timeout(0.001) if hasattr(asyncio, "timeout") else Manager(log, "t", True):
            await asyncio.sleep(10) if hasattr(asyncio, "timeout") else None
    except TimeoutError:
        found.append("time")
    task = asyncio.ensure_future(asyncio.sleep(10))
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        found.append("cancelled")
    return found + [await managed(log, None), await managed(log, ValueError("v"))]
def run():
    log = []
    return asyncio.run(drive(log)), log
''',
"closures": '''
def counter(start=0, *, step=1):
    count = start
    def up(by=None):
        nonlocal count
        count += by or step
        return count
    def read():
        return count
    return up, read, lambda: (count, step)
def late():
    functions = [lambda x=x: (x, y) for x in range(2)]
    y = 5
    return [f() for f in functions]
def unbound():
    def get():
        return x
    try:
        get()
    except NameError as error:
        found = type(error).__name__, str(error)
    x = 1
    del x
    return found, outcome(get)[1][:2]
def recursive():
    def fact(n):
        return n * fact(n - 1) if n else 1
    return fact(6), fact.__name__, fact.__qualname__
def annotated(a: int, b: "text" = 3, *c: str, d: float = 4, **e) -> list:
    """A docstring."""
    return a, b, c, d, e
def run():
    up, read, both = counter(5, step=2)
    found = [up(), up(10), read(), both(), late(), unbound(), recursive(), annotated(1, 2, 3, d=4, e=5)]
    return found, annotated.__doc__, annotated.__defaults__, annotated.__kwdefaults__, annotated.__annotations__, \\
        up.__code__.co_varnames[:1], both.__name__, both.__qualname__, annotated.__code__.co_name
''',
"locals": '''
def plain(a, b):
    c = a + b
    names = sorted(locals())
    del c
    return names, sorted(locals()), sorted(vars()), dir()
def evaluated(a):
    b = 2
    exec("b = 5")
    return eval("a + b"), eval("a + b", {"a": 1, "b": 1}), [eval("a", {"a": x}) for x in range(2)]
def in_loop():
    found = []
    for i in range(2):
        try:
            found.append(sorted(locals()))
            raise ValueError
        except ValueError as e:
            found.append(sorted(locals()))
    return found
def updated():
    space = locals()
    return type(space).__name__, len(space)
def run():
    return plain(1, 2), evaluated(3), in_loop(), updated()
''',
"classes": '''
def decorate(cls):
    cls.decorated = True
    return cls
class Meta(type):
    @classmethod
    def __prepare__(meta, name, bases, **keywords):
        return {"prepared": sorted(keywords)}
    def __new__(meta, name, bases, space, **keywords):
        return super().__new__(meta, name, bases, dict(space))
    def __init__(cls, name, bases, space, **keywords):
        super().__init__(name, bases, space)
        cls.order = [n for n in space if not n.startswith("__")]
@decorate
class Base(metaclass=Meta, flag=1):
    "Documented."
    limit = 3
    items = [x * 2 for x in range(limit)]
    if limit > 2:
        large = True
    else:
        small = True
    for name in ("one", "two"):
        exec(f"{name} = name")
    try:
        missing
    except NameError as error:
        text = str(error)
    def __init__(self, value: int = 0):
        self.__value = value
    @property
    def value(self):
        return self.__value
    @value.setter
    def value(self, new):
        self.__value = new
    @staticmethod
    def helper(x):
        return x + 1
    annotated: int = 5
    only: "str"
class Derived(*[Base], **{"flag": 2}):
    def __init__(self):
        super().__init__(7)
        self.again = Derived
    label = "Derived", "Inner"
    class Inner:
        label = "Inner"
        class Deep:
            label = "Inner.Deep"
            def name(self):
                return self.name.__qualname__, Deep.__name__, "Inner"
        def where(self):
            return self.Deep.__qualname__, self.label, self.Deep.label, outcome(self.Deep().name)[1][:2], __class__.__qualname__, type(self).__qualname__, self.where.__qualname__
def local():
    class Node:
        def __init__(self, n):
            self.inner = Node(n - 1) if n else None
        class Part:
            def get(self):
                return Node.__qualname__, self.get.__qualname__
    return Node(2).inner.inner.inner, Node.Part().get()
def run():
    d = Derived()
    d.value += 1
    return local(), Derived.label, d.again is Derived, d.value, Base.order, Base.text, Base.__doc__, Base.items, Base.__annotations__, Base.prepared, Base.decorated, \\
        Derived.Inner().where(), Base.helper(1), sorted(vars(d)), Base.helper.__qualname__, Base.__init__.__qualname__
''',
"enums_and_dataclasses": '''
import dataclasses, enum
class Color(enum.Enum):
    RED = 1
    GREEN = enum.auto()
    def describe(self):
        return f"{self.name}:{self.value}"
@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: int = 0
    tags: list = dataclasses.field(default_factory=list, compare=False)
    def __post_init__(self):
        self.total = self.x + self.y
def run():
    return [c.describe() for c in Color], Point(1, 2) < Point(1, 3), repr(Point(3)), Point(1, 2).total, Color(2) is Color.GREEN
''',
"comprehensions": '''
def run():
    x = "outer"
    table = {a: [b for b in range(a) if b % 2] for a in range(4) if a}
    lazy = (a + b for a in range(2) for b in range(2) if a != b)
    first = next(lazy)
    nested = [[x for x in range(n)] for n in range(3)]
    walrus = [last := n for n in range(3)]
    def fails():
        return [1 / n for n in (1, 0)]
    def named(n):
        return lambda: [n for _ in range(2)]
    return table, first, list(lazy), nested, x, last, walrus, {n % 3 for n in range(9)}, outcome(fails)[1][:2], named(4)()
''',
"expressions": '''
def call(*args, **kwargs):
    return args, sorted(kwargs.items())
def trace(log, value):
    log.append(value)
    return value
def run():
    log = []
    t = lambda v: trace(log, v)
    a, (b, *c), *d = 1, (2, 3, 4), 5, 6
    data = [0, 1, 2, 3, 4]
    data[t(1)], data[t(2)] = t(3), t(4)
    data[1:3] = "xyz"
    del data[0]
    data[-1] += 5
    text = f"{a!r:>4} {b:{t(5)}d} {c!s} {{}}"
    found = [t(1) < t(2) < t(0) < t(9), t(0) or t(2) and t(3), not t(0), t(1) if t(0) else t(2)]
    found += [call(*[1, 2], *(3,), k=4, **{"m": 5}), outcome(call, **{"k": 1})]
    def twice():
        return call(k=1, **{"k": 2})
    found += [outcome(twice)[1][:2], {**{"a": 1}, "b": 2}, [*data, *"ab"], {1, 2} | {3}, (1).bit_length(), data[::2], 3 @ M() ]
    assert found, "never"
    def check(x):
        assert x > 1, f"{x} is small"
        return x
    return a, b, c, d, data, text, found, outcome(check, 1), check(2), log
class M:
    def __rmatmul__(self, other):
        return other * 2
''',
"order": '''
class Items:
    def __init__(self, log):
        self.log = log
    def __getitem__(self, key):
        self.log.append(("get", str(key)))
        return 1
    def __setitem__(self, key, value):
        self.log.append(("set", str(key), value))
def run():
    log = []
    def t(value):
        log.append(value)
        return value
    items = Items(log)
    items[t(0):t(1), t(2)] += t(3)
    items[t(4)] = x = t(5)
    seen = x, (x := t(6)), x, [x, *[x := x + 1 for _ in range(2)], x], {x: (x := 9), **{"x": x}}
    def fails(a):
        log.append("in")
        found = [t(a), missing, t(8)]
        return found
    def deleted(a):
        return a, [a for a in "b"], t(a) if a else t(0), f"{t(a)!r:>{t(7)}}{'x' if a else 'y'}"
    later = [lambda: n for n in range(3)]
    def keywords(**given):
        return given
    merged = keywords(a=t(1), **({"b": t(2)} if x else {}), **{"c": t(3)})
    def defaults(a=t(1) if x else 2, *, b=t(3) if x else 4) -> int:
        return a, b
    return seen, outcome(fails, 7), deleted(1), [f() for f in later], merged, defaults(), log
''',
"imports": '''
def run():
    import os.path as p, json.decoder
    from collections import OrderedDict as O, abc
    def missing():
        from json import no_such_name
    def nothing():
        import no_such_module_at_all
    return p.basename("/a/b"), json.decoder.__name__, O(a=1), abc.__name__, outcome(missing)[1][:2], outcome(nothing)[1][:2]
''',
"globals": '''
count = 0
def bump():
    global count, made
    count += 1
    made = count * 2
    return count, made
def drop():
    global made
    del made
    return made
def run():
    return bump(), bump(), count, outcome(drop)[1][:2], "made" in globals(), [n for n in globals() if n.startswith("__") and not n.endswith("__")]
''',
"match": '''
class Point:
    __match_args__ = ("x", "y")
    def __init__(self, x, y):
        self.x, self.y = x, y
def kind(value):
    match value:
        case 0 | 1:
            return "small"
        case int(n) if n > 100:
            return "large", n
        case str() as text:
            return "text", text
        case [1, *rest, 9]:
            return "list", rest
        case [a, b]:
            return "pair", a, b
        case {"k": Point(x=0, y=y), **others}:
            return "map", y, others
        case {"k": v}:
            return "key", v
        case Point(1, y):
            return "point", y
        case None:
            return "none"
        case _:
            return "other"
def wrong(value):
    match value:
        case Point(1, 2, 3):
            return 1
def run():
    values = [0, True, 5, 500, "s", [1, 2, 3, 9], [4, 5], (6, 7), {"k": Point(0, 3), "z": 1}, {"k": 4}, Point(1, 8), None, 2.5]
    return [kind(v) for v in values], outcome(wrong, Point(1, 2))[1][:2], outcome(wrong, 3)
''',
"exception_groups": '''
def handled(log, error):
    try:
        raise error
    except* ValueError as group:
        log.append(("value", repr(group)))
    except* (KeyError, TypeError) as group:
        log.append(("others", repr(group)))
        raise OSError("from handler")
    else:
        log.append("else")
    finally:
        log.append("finally")
    return "end"
def run():
    log = []
    V, K, O = ValueError("v"), KeyError("k"), OSError("o")
    errors = [V, K, O, ExceptionGroup("g", [V, K]), ExceptionGroup("g", [V, ExceptionGroup("h", [V, O])]), ExceptionGroup("g", [O])]
    return [outcome(handled, log, e)[:1] + (repr(outcome(handled, log, e)[1][:2]),) for e in errors], log
''',
"deletion_order": '''
class Noisy:
    def __init__(self, log, name):
        self.log, self.name = log, name
    def __del__(self):
        self.log.append(self.name)
def run():
    log = []
    def made():
        a = Noisy(log, "a")
        a = Noisy(log, "b")
        log.append("rebound")
        del a
        log.append("deleted")
        Noisy(log, "dropped")
        log.append("after")
        return 5
    return made(), log
''',
}
#: The first version that can compile a program.
SINCE = {"match": (3, 10), "exception_groups": (3, 11), "type_parameters": (3, 12), "generic_classes": (3, 13),
         "defaults_of_type_parameters": (3, 13)}
