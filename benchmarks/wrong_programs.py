"""Programs that are compiled wrongly: silent errors of torch from its public issues, and faults that are planted.

A fault is planted in the graph (a backend that changes it), in a kernel (a lowering of Inductor's), in the guards (a
filter that drops one), in the code of a resume function or of the function itself (a hook on bytecode), in the side
effects (Dynamo's code for them left out), in the backward graph, or in what a backend gives back.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import io
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import torch

import depyf

aten = torch.ops.aten


@dataclasses.dataclass
class Prepared:
    """A wrong program right before the call that goes wrong.

    Attributes:
        compiled, function: as torch compiled it, and as it is written.
        args: of the call.
        effects: what else can be observed after it.
    """

    compiled: Any
    function: Any
    args: tuple[Any, ...]
    effects: Callable[[], Any] = lambda: None


@dataclasses.dataclass
class Wrong:
    """A wrong program.

    Attributes:
        name: for a real error, with the number of its issue.
        kind: where the fault is.
        parts: the parts that a report may name.
        place: stands in the report that names the place.
        prepare: makes it.
        certain: it goes wrong; the check for that sees neither errors of a few percent nor anything beside dropout.
    """

    name: str
    kind: str
    parts: tuple[str, ...]
    place: str
    prepare: Callable[[], Prepared]
    certain: bool = False

    def judge(self) -> tuple[Any, bool]:
        """Return what ``depyf.compare`` says, and whether the program goes wrong at all."""
        torch._dynamo.reset()
        torch.manual_seed(0)
        prepared = self.prepare()
        result = depyf.compare(prepared.compiled, *prepared.args, stages=())
        return result, self.certain or self._goes_wrong(prepared)

    @staticmethod
    def _goes_wrong(prepared: Prepared) -> bool:
        seen = []
        before = copy.deepcopy(prepared.effects())
        for each in (prepared.function, prepared.compiled):
            args = copy.deepcopy(prepared.args)
            torch.manual_seed(0)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                result = each(*args)
            gradients = None
            outputs = [value for value in (result if isinstance(result, tuple) else (result,))
                       if isinstance(value, torch.Tensor) and value.requires_grad]
            if outputs:
                outputs[0].sum().backward()
                leaves = [value for value in args if isinstance(value, torch.Tensor)]
                with contextlib.suppress(RuntimeError):  # (no gradient)
                    torch.nn.utils.clip_grad_norm_(leaves, 1.0)
                gradients = [value.grad for value in leaves]
            now = prepared.effects()
            shared = [[one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
                       for one in args if isinstance(one, torch.Tensor)]
                      for other in (result if isinstance(result, tuple) else ()) if isinstance(other, torch.Tensor)]
            seen.append(plain((result, args, gradients, shared, printed.getvalue(), now)))
            if isinstance(now, list):
                now[:] = before
            elif isinstance(now, dict):
                now.clear()
                now.update(before)
        return not close(seen[0], seen[1])


def plain(value: Any) -> Any:
    """Return a value as Python's own, with facts of tensors."""
    if isinstance(value, torch.Tensor):
        return ("tensor", str(value.dtype), tuple(value.shape), value.requires_grad,
                tuple(step for size, step in zip(value.shape, value.stride()) if size > 1), value.detach().tolist())
    if isinstance(value, (list, tuple, set)):
        return [type(value).__name__, *map(plain, value)]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if hasattr(value, "__dict__") and not callable(value):
        return {key: plain(item) for key, item in vars(value).items()}
    return value if isinstance(value, (int, float, str, bool, type(None))) else type(value).__name__


def close(one: Any, other: Any) -> bool:
    """Return whether two such values are equal, numbers to four digits."""
    if isinstance(one, float) and isinstance(other, float):
        near = abs(one - other) <= 1e-4 * max(1, abs(one), abs(other))
        return one == other or near or (one != one and other != other)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(item, other[key]) for key, item in one.items())
    return type(one) is type(other) and one == other


def warmed(function: Any, args: tuple[Any, ...], *warm: tuple[Any, ...], effects: Any = lambda: None,
           **options: Any) -> Prepared:
    """Compile a function, and call it so often that a version exists."""
    compiled = torch.compile(function, **options)
    for each in warm or (args,):
        compiled(*copy.deepcopy(each))
    return Prepared(compiled, function, args, effects)


def x(*shape: int) -> torch.Tensor:
    return torch.linspace(-1.0, 2.0, torch.Size(shape or (4,)).numel()).reshape(shape or (4,))


# --- graphs ---------------------------------------------------------------------------------------
def chain(x: Any) -> Any:
    y = x + 1
    z = torch.sin(y)
    w = torch.relu(z) * 2
    return w - y


def matrices(x: Any, w: Any) -> Any:
    h = torch.matmul(x, w)
    s = torch.softmax(h, 1)
    return s.sum(0), h.mean()


def broken(x: Any) -> Any:
    y = torch.cos(x)
    print("a break")
    z = torch.exp(y)
    return z.sum()


def edited(change: Callable[[Any], bool], number: int = 0) -> Any:
    """Return a backend that changes the first node that can be changed in its graph of a number; 0: in each."""
    made = [0]

    def planted(gm: Any, inputs: Any) -> Any:
        made[0] += 1
        if number in (0, made[0]):
            for node in list(gm.graph.nodes):
                if node.op not in ("placeholder", "output") and change(node):
                    break
            gm.recompile()
        return gm.forward

    return planted


def swap(old: Any, new: Any) -> Callable[[Any], bool]:
    def change(node: Any) -> bool:
        if node.target is old or getattr(node.target, "__name__", "") == old:
            node.target = new
            return True
        return False
    return change


def other_argument(name: str, at: int, value: Any) -> Callable[[Any], bool]:
    def change(node: Any) -> bool:
        if getattr(node.target, "__name__", node.target) == name:
            args = list(node.args)
            args[at] = value
            node.args = tuple(args)
            return True
        return False
    return change


def dropped(name: str) -> Callable[[Any], bool]:
    def change(node: Any) -> bool:
        if getattr(node.target, "__name__", node.target) == name:
            node.replace_all_uses_with(node.args[0])
            node.graph.erase_node(node)
            return True
        return False
    return change


def squared(node: Any) -> bool:
    if getattr(node.target, "__name__", "") == "matmul":
        node.args = (node.args[0], node.args[0])
        return True
    return False


def in_graphs() -> Iterator[Wrong]:
    import operator

    cases: list[tuple[str, Any, tuple[Any, ...], Any, str]] = [
        ("sin taken for cos", chain, (x(),), swap(torch.sin, torch.cos), "torch.sin(y)"),
        ("relu taken for tanh", chain, (x(),), swap(torch.relu, torch.tanh), "torch.relu(z)"),
        ("plus taken for minus", chain, (x(),), swap(operator.add, operator.sub), "y = x + 1"),
        ("another constant", chain, (x(),), other_argument("add", 1, 1.5), "y = x + 1"),
        ("a factor of three", chain, (x(),), other_argument("mul", 1, 3), "torch.relu(z) * 2"),
        ("sin left out", chain, (x(),), dropped("sin"), "torch.sin(y)"),
        ("softmax of the other dimension", matrices, (x(3, 4), x(4, 2)), other_argument("softmax", 1, 0), "softmax"),
        ("matmul taken for its square", matrices, (x(3, 3), x(3, 3) * 2 + 1), squared, "matmul"),
    ]
    for name, function, args, change, place in cases:
        yield Wrong(name, "graph", ("graph",), place,
                    lambda function=function, args=args, change=change: warmed(function, args, backend=edited(change)))
    yield Wrong("exp in the second graph", "graph", ("graph",), "torch.exp(y)", lambda: warmed(
        broken, (x(),), backend=edited(swap(torch.exp, torch.sin), 2)))
    yield Wrong("cos in the first graph", "graph", ("graph",), "torch.cos(x)", lambda: warmed(
        broken, (x(),), backend=edited(swap(torch.cos, torch.sin), 1)))


# --- kernels --------------------------------------------------------------------------------------
def lowered(op: Any, other: Any) -> Callable[[Callable[[], Prepared]], Prepared]:
    """Have Inductor lower one operation as another while a program is prepared and judged."""
    from torch._inductor import lowering

    lowering.lowerings[op] = lowering.lowerings[other]


def in_kernels() -> Iterator[Wrong]:
    def tanh(x: Any, y: Any) -> Any:
        a = x * y
        b = torch.tanh(a)
        return b + 1

    def largest(x: Any, y: Any) -> Any:
        a = torch.maximum(x, y)
        return a.sum()

    def sigmoid(x: Any, y: Any) -> Any:
        a = torch.sigmoid(x)
        return a @ y

    def wave(x: Any, y: Any) -> Any:
        return torch.sin(x) + y

    cases = [("tanh lowered as sin", tanh, aten.tanh.default, aten.sin.default, "torch.tanh(a)"),
             ("maximum lowered as minimum", largest, aten.maximum.default, aten.minimum.default, "torch.maximum(x, y)"),
             ("sigmoid lowered as tanh", sigmoid, aten.sigmoid.default, aten.tanh.default, "torch.sigmoid(x)"),
             ("sin lowered as cos", wave, aten.sin.default, aten.cos.default, "torch.sin(x)")]
    for name, function, op, other, place in cases:
        def prepare(function: Any = function, op: Any = op, other: Any = other) -> Prepared:
            lowered(op, other)
            return warmed(function, (x(4, 4), x(4, 4) + 0.5), backend="inductor")
        yield Wrong(name, "kernel", ("kernel",), place, prepare)

    def texts() -> Prepared:
        from torch._inductor.codecache import PyCodeCache

        original = PyCodeCache.write.__func__ if hasattr(PyCodeCache.write, "__func__") else PyCodeCache.write

        def write(cls: Any, source: Any, *args: Any, **kwargs: Any) -> Any:
            source = source.replace("static_cast<float>(0.125)", "static_cast<float>(0.25)")
            return original(cls, source, *args, **kwargs)

        PyCodeCache.write = classmethod(write)
        return warmed(lambda x, y: (x * 0.125 + y).sum(0), (x(4, 4), x(4, 4)), backend="inductor")

    yield Wrong("a number in generated C++", "kernel", ("kernel",), "0.125", texts)


# --- guards ---------------------------------------------------------------------------------------
class Scaling(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = 2
        self.twice = False
        self.sizes = [1, 2]

    def forward(self, x: Any) -> Any:
        y = x * self.factor
        if self.twice:
            y = y + y
        return y + len(self.sizes)


LEVEL = 3
SETTINGS = {"gain": 2.0}


def without(*names: str) -> dict[str, Any]:
    """Return options of ``torch.compile`` that drop the guards on something."""
    def kept(guard: Any) -> bool:
        return not any(guard.name == name or len(name) > 2 and name in guard.name for name in names)

    return {"guard_filter_fn": lambda guards: [kept(each) for each in guards]}


def in_guards() -> Iterator[Wrong]:
    def guarded(name: str, place: str, prepare: Callable[[], Prepared]) -> Wrong:
        return Wrong(name, "guard", ("guard",), place, prepare)

    def scaled(x: Any, k: Any) -> Any:
        return x * k

    def chosen(x: Any, mode: Any) -> Any:
        return x.sum() if mode in ("sum", True) else x.mean()

    def counted(x: Any, items: Any) -> Any:
        return x + len(items)

    def looked_up(x: Any, table: Any) -> Any:
        return x * table["gain"]

    def by_level(x: Any) -> Any:
        return x * LEVEL

    def by_settings(x: Any) -> Any:
        return x * SETTINGS["gain"]

    def sized(x: Any) -> Any:
        return x * x.shape[0]

    for name, first, then in (("an integer", 2, 7), ("a float", 0.5, 2.5), ("a flag", True, False)):
        yield guarded(name, "k", lambda first=first, then=then: warmed(
            scaled, (x(), then), (x(), first), backend="eager", options=without("k", "L['k']")))
    yield guarded("a text", "mode", lambda: warmed(
        chosen, (x(), "mean"), (x(), "sum"), backend="eager", options=without("mode", "L['mode']")))
    yield guarded("the length of a list", "items", lambda: warmed(
        counted, (x(), [1, 2, 3]), (x(), [1]), backend="eager", options=without("items", "L['items']")))
    yield guarded("a value in a dictionary", "gain", lambda: warmed(
        looked_up, (x(), {"gain": 5.0}), (x(), {"gain": 2.0}), backend="eager", options=without("['gain']")))
    yield guarded("the size of a tensor", "x", lambda: warmed(
        sized, (x(6),), (x(4),), backend="eager", dynamic=False, options=without("x", "L['x']")))

    def attribute(name: str, value: Any) -> Prepared:
        module = Scaling()
        compiled = torch.compile(module, backend="eager", options=without(name))
        compiled(x())
        setattr(module, name, value)
        return Prepared(compiled, module, (x(),))

    for name, value in (("factor", 5), ("twice", True), ("sizes", [1, 2, 3])):
        yield guarded(f"a module's attribute {name}", name, lambda name=name, value=value: attribute(name, value))

    def of_a_global(name: str) -> Prepared:
        function = by_level if name == "LEVEL" else by_settings
        prepared = warmed(function, (x(),), backend="eager", options=without(name))
        if name == "LEVEL":
            globals()[name] = 8
        else:
            SETTINGS["gain"] = 9.0
        return prepared

    yield guarded("a global number", "LEVEL", lambda: of_a_global("LEVEL"))
    yield guarded("a global dictionary", "SETTINGS", lambda: of_a_global("SETTINGS"))

    def captured() -> Prepared:
        factor = 2

        def function(x: Any) -> Any:
            return x * factor

        prepared = warmed(function, (x(),), backend="eager", options=without("factor"))
        function.__closure__[0].cell_contents = 6
        return prepared

    yield guarded("a captured variable", "factor", captured)


# --- code -----------------------------------------------------------------------------------------
def hooked(of: str, old: Any, new: Any) -> None:
    """Take one constant for another in the transformed code of functions whose name holds a text."""
    def hook(original: Any, transformed: Any) -> Any:
        if of not in original.co_name or old not in transformed.co_consts:
            return None
        return transformed.replace(co_consts=tuple(
            new if type(each) is type(old) and each == old else each for each in transformed.co_consts))

    torch._dynamo.convert_frame.register_bytecode_hook(hook)


def in_code() -> Iterator[Wrong]:
    def returns(x: Any) -> Any:
        return x + 1, 31, "left"

    def returns_dict(x: Any) -> Any:
        return {"value": x * 2, "count": 47}

    def continues(x: Any) -> Any:
        y = x + 1
        print("a break")
        return y * 2, 53

    def goes_on(x: Any) -> Any:
        print("first")
        y = x * 3
        print("second")
        return y, "kept"

    def named(x: Any) -> Any:
        torch._dynamo.graph_break()
        return [x.sum(), 61]

    def prints(x: Any) -> Any:
        y = x + 1
        print("said aloud")
        return y

    for name, function, of, old, new, parts in (
            ("another number is returned", returns, "returns", 31, 32, ("transformed code",)),
            ("another text is returned", returns, "returns", "left", "right", ("transformed code",)),
            ("another entry is returned", returns_dict, "returns_dict", 47, 48, ("transformed code",)),
            ("a resume function returns another number", continues, "resume_in_continues", 53, 54,
             ("transformed code",)),
            ("the second resume function returns another text", goes_on, "resume_in_goes_on", "kept", "lost",
             ("transformed code",)),
            ("a resume function after graph_break()", named, "resume_in_named", 61, 62, ("transformed code",)),
            ("another text is printed", prints, "prints", "said aloud", "said quietly",
             ("side effect", "transformed code"))):
        def prepare(function: Any = function, of: str = of, old: Any = old, new: Any = new) -> Prepared:
            hooked(of, old, new)
            return warmed(function, (x(),), backend="eager")
        place = "standard output" if "printed" in name else of.removeprefix("resume_in_")
        kind = "resume function" if "resume" in name else "transformed code"
        yield Wrong(name, kind, parts, place, prepare)


# --- side effects ---------------------------------------------------------------------------------
LOG: list[Any] = []
TOTAL = {"calls": 0}


class Counter:
    def __init__(self) -> None:
        self.count = 0
        self.seen: list[Any] = []

    def add(self, value: Any) -> None:
        self.seen.append(value)


def in_side_effects() -> Iterator[Wrong]:
    def without_effects() -> None:
        from torch._dynamo import side_effects

        side_effects.SideEffects.codegen_update_mutated = lambda self, *args, **kwargs: None

    def appends(x: Any, items: Any) -> Any:
        items.append(3)
        return x + 1

    def sets(x: Any, table: Any) -> Any:
        table["last"] = 5
        return x * 2

    def counts(x: Any, counter: Any) -> Any:
        counter.count += 1
        return x - 1

    def logs(x: Any) -> Any:
        LOG.append(1)
        return x + 2

    def totals(x: Any) -> Any:
        TOTAL["calls"] = TOTAL["calls"] + 1
        return x + 3

    def in_a_method(x: Any, counter: Any) -> Any:
        class Local:
            def put(self, value: Any) -> None:
                counter.add(value)
        Local().put(7)
        return x.abs()

    def keeps(x: Any, items: Any) -> Any:
        items[0] = x + 1
        return x.sum()

    for name, function, args, place, effects in (
            ("list.append is lost", appends, (x(), []), "args[1]", None),
            ("an entry of a dictionary is lost", sets, (x(), {}), "args[1]", None),
            ("an attribute is not set", counts, (x(), Counter()), "count", None),
            ("an append to a global list is lost", logs, (x(),), "global LOG", lambda: LOG),
            ("an entry of a global dictionary is lost", totals, (x(),), "TOTAL", lambda: TOTAL),
            ("list.append in a method of a local class is lost", in_a_method, (x(), Counter()), "seen", None),
            ("a tensor is not put into a list", keeps, (x(), [0]), "args[1]", None)):
        def prepare(function: Any = function, args: Any = args, effects: Any = effects) -> Prepared:
            without_effects()
            return warmed(function, args, backend="eager", effects=effects or (lambda: None))
        yield Wrong(name, "side effect", ("side effect",), place, prepare)


# --- what a backend gives back ----------------------------------------------------------------------
def in_backends() -> Iterator[Wrong]:
    def changed(change: Callable[[Any, Any], Any]) -> Any:
        def planted(gm: Any, inputs: Any) -> Any:
            return lambda *args: change(gm, args)
        return planted

    def doubled(x: Any) -> Any:
        return x * 2

    def viewed(x: Any) -> Any:
        return x.view(-1), x + 1

    def in_place(x: Any) -> Any:
        x.add_(1)
        return x.sum()

    def turned(x: Any) -> Any:
        return (x + 1).t()

    def first(results: Any, change: Callable[[Any], Any]) -> Any:
        return (change(results[0]), *results[1:])

    parts = ("backend", "graph", "transformed code")
    yield Wrong("an argument is not changed in place", "backend", parts, "", lambda: warmed(
        in_place, (x(2, 3),), backend=changed(lambda gm, args: gm(*[each.clone() for each in args]))))
    yield Wrong("a result is a copy and no view", "backend", parts, "", lambda: warmed(
        viewed, (x(2, 3),), backend=changed(lambda gm, args: first(gm(*args), torch.clone))))
    yield Wrong("a result has other strides", "backend", parts, "", lambda: warmed(
        turned, (x(2, 3),), backend=changed(lambda gm, args: first(gm(*args), lambda r: r.contiguous()))))
    yield Wrong("a result has another dtype", "backend", parts, "", lambda: warmed(
        doubled, (x(),), backend=changed(lambda gm, args: first(gm(*args), lambda r: r.double()))))
    yield Wrong("a result requires no gradient", "backend", parts, "", lambda: warmed(
        doubled, (x().requires_grad_(),), backend=changed(lambda gm, args: first(gm(*args), lambda r: r.detach()))))

    def backward(change: Callable[[Any], bool]) -> Any:
        from torch._dynamo.backends.common import aot_autograd

        def compile_backward(gm: Any, inputs: Any) -> Any:
            for node in list(gm.graph.nodes):
                if node.op == "call_function" and change(node):
                    break
            gm.recompile()
            return gm

        return aot_autograd(fw_compiler=lambda gm, inputs: gm, bw_compiler=compile_backward)

    def trained(x: Any, w: Any) -> Any:
        return torch.tanh(x * w).sum()

    def curved(x: Any) -> Any:
        return torch.sin(x).pow(2).sum()

    yield Wrong("a gradient of the other sign", "backward graph", ("backward graph", "backend"), "", lambda: warmed(
        curved, (x().requires_grad_(),), backend=backward(swap(aten.cos.default, aten.sin.default))))
    yield Wrong("a gradient of a weight", "backward graph", ("backward graph", "backend"), "", lambda: warmed(
        trained, (x(), x().requires_grad_()), backend=backward(swap(aten.mul.Tensor, aten.add.Tensor))))


# --- silent errors of torch, from its public issues ------------------------------------------------
def in_torch() -> Iterator[Wrong]:
    def shadowed() -> Prepared:
        class Wrapper(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.sub = torch.nn.Linear(4, 4, bias=False)

            def forward(self, x: Any) -> Any:
                return self.sub(x)

        model = Wrapper()
        compiled = torch.compile(model, backend="eager")
        compiled(x())
        object.__setattr__(model, "sub", torch.nn.Linear(4, 4, bias=False))
        return Prepared(compiled, model, (x(),))

    yield Wrong("a submodule shadowed in __dict__ (#197859)", "guard", ("guard", "version"), "sub", shadowed)

    def code_of_a_method() -> Prepared:
        def first(self: Any, x: Any) -> Any:
            return x * 2.0

        def second(self: Any, x: Any) -> Any:
            return x * 9.0

        class Model:
            m = first

        model = Model()

        def call(x: Any) -> Any:
            return model.m(x)

        compiled = torch.compile(call, backend="eager")
        compiled(x())
        Model.m.__code__ = second.__code__
        return Prepared(compiled, call, (x(),))

    yield Wrong("the code of a bound method (#197860)", "guard", ("guard", "version"), "x * 2.0", code_of_a_method)

    class Recorded(torch.nn.Module):
        items: list[Any] = []

        def forward(self, x: Any) -> Any:
            Recorded.items.append(1)
            return x + 1

    def class_list() -> Prepared:
        model = Recorded()
        compiled = torch.compile(model, backend="eager")
        compiled(x())
        return Prepared(compiled, model, (x(),), lambda: Recorded.items)

    yield Wrong("a list of a class is not appended to (#169253)", "side effect", ("side effect",), "items", class_list)

    def class_attribute() -> Prepared:
        class Config:
            gain = 2.0

        def scaled(x: Any) -> Any:
            return x * Config.gain

        prepared = warmed(scaled, (x(),), backend="eager")
        Config.gain = 5.0
        return prepared

    yield Wrong("an attribute of a class (#176851)", "guard", ("guard", "version"), "gain", class_attribute)

    def filtered() -> Prepared:
        def fn(x: Any) -> Any:
            gen = (v * 2 for v in range(6) if v % 2 == 1)
            return x + next(gen) + next(gen) + next(gen)

        return warmed(fn, (x(),), backend="eager")

    yield Wrong("a generator expression with a filter (#176693)", "graph", ("graph", "transformed code"), "", filtered)

    def lying_set() -> Prepared:
        class MySet(set):  # type: ignore[type-arg]
            def __iter__(self) -> Any:
                return iter([99])

        def fn(x: Any, s1: Any, s2: Any) -> Any:
            return x + 1 if s1 == s2 else x - 1

        return warmed(fn, (x(), {1, 2, 3}, MySet({1, 2, 3})), backend="eager")

    yield Wrong("a set with an __iter__ of its own (#186671)", "graph", ("graph", "transformed code"), "", lying_set)

    def bounded() -> Prepared:
        import collections

        def fn(x: Any, queue: Any) -> Any:
            queue.append(2)
            return x + queue[0]

        return warmed(fn, (x(), collections.deque([0, 1], maxlen=2)), backend="eager")

    yield Wrong("a deque with a maxlen is not bounded", "graph", ("graph", "transformed code"), "", bounded)

    def finalised() -> Prepared:
        def fn(x: Any, out: Any) -> Any:
            class Ends:
                def __del__(self) -> None:
                    out.append(1)
            each = Ends()
            del each
            return x + 1

        return warmed(fn, (x(), []), backend="eager")

    yield Wrong("__del__ runs twice", "side effect", ("side effect",), "args[1]", finalised)

    def transposed() -> Prepared:
        def f(x: Any) -> Any:
            x = x.clone()
            x.sin_()
            return x.t().argmax()

        return warmed(f, (torch.randn(5, 7),), backend="inductor")

    yield Wrong("argmax after sin_ and t (#183082)", "kernel", ("kernel",), "argmax", transposed)

    def graph_of_grad() -> Prepared:
        def g(x: Any) -> Any:
            y = torch.zeros_like(x)
            y[:, 0] += x[:, 2].abs()
            return y.sum()

        def f(x: Any) -> Any:
            return torch.func.grad(g)(x)

        return warmed(f, (x(2, 3),), backend="inductor")

    yield Wrong("torch.func.grad of a slice (#136662)", "kernel", ("kernel", "graph"), "", graph_of_grad)

    def minus_zero() -> Prepared:
        def f(x: Any, other: float) -> Any:
            return torch.ops.aten.copysign(x, other=other)

        return warmed(f, (x(), -0.0), backend="inductor")

    yield Wrong("copysign of -0.0 (#174172)", "kernel", ("kernel", "graph"), "copysign", minus_zero)

    def shared_gradients() -> Prepared:
        token, places = x(1, 1, 4).requires_grad_(), x(1, 3, 4).requires_grad_()

        def embedded(token: Any, places: Any) -> Any:
            return (torch.cat([token, x(1, 2, 4)], 1) + places).pow(2)

        return warmed(embedded, (token, places), backend="aot_eager")

    yield Wrong("gradients that share memory (a model of vision)", "backward graph", ("backward graph",),
                "shares memory", shared_gradients)

    def gradient_needed() -> Prepared:
        class Model(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = torch.nn.Linear(4, 4)

            def forward(self, x: Any) -> Any:
                return self.layer(x)

        model = Model()
        compiled = torch.compile(model, backend="aot_eager")
        model.layer.requires_grad_(False)
        compiled(x())
        model.layer.requires_grad_(True)
        return Prepared(compiled, model, (x(),))

    yield Wrong("requires_grad of parameters (#139476)", "guard", ("guard",), "layer", gradient_needed)


class Stale(Wrong):
    """A number that became symbolic stays in a kernel that the compile cache keeps; it needs the caches."""

    PROGRAM = """
import pickle, sys, torch, torch.nn.functional as F, depyf
torch.manual_seed(0); x, y = torch.randn(4, 4), torch.randn(4, 4)
def g(x, s): return F.huber_loss(x * s, y, delta=s + 1e-3)
c = torch.compile(g)
for s in (0.5, 1.0, 2.0): c(x, s)
result = depyf.compare(c, x, 4.0, stages=())
wrong = abs(c(x, 4.0).item() - g(x, 4.0).item()) > 1e-3
sys.stdout.buffer.write(pickle.dumps((result, wrong)))
"""

    def judge(self) -> tuple[Any, bool]:
        """As that of others, in a Python of its own."""
        environment = {name: value for name, value in os.environ.items()
                       if name != "TORCHINDUCTOR_FORCE_DISABLE_CACHES"}
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "stale.py")
            with open(program, "w", encoding="utf-8") as file:
                file.write(self.PROGRAM)
            done = subprocess.run([sys.executable, program], stdout=subprocess.PIPE, timeout=300, check=True,
                                  env={**environment, "TORCHINDUCTOR_CACHE_DIR": folder})
        result, wrong = pickle.loads(done.stdout)
        return result, wrong


def stale_constant() -> Iterator[Wrong]:
    yield Stale("a number that stays in a kernel (stale_constant.py)", "kernel", ("cache",), "[0/3]", lambda: None)


# --- values ---------------------------------------------------------------------------------------
def off(node_name: str, factor: float, elements: Any = None) -> Any:
    """Return a backend whose graphs give one operation's result, or some elements of it, times a factor."""
    def scaled(value: Any) -> Any:
        if elements is None:
            return value * factor
        result = value.clone()
        result.view(-1)[elements] *= factor
        return result

    def planted(gm: Any, inputs: Any) -> Any:
        for node in list(gm.graph.nodes):
            if getattr(node.target, "__name__", node.target) == node_name:
                with gm.graph.inserting_after(node):
                    new = gm.graph.call_function(scaled, (node,))
                node.replace_all_uses_with(new)
                new.args = (node,)
        gm.recompile()
        return gm.forward

    return planted


def in_values() -> Iterator[Wrong]:
    """Errors of a few percent, and of values that are small, by a backend."""
    def noise(*shape: int, dtype: Any = torch.float32, scale: float = 1.0) -> torch.Tensor:
        return (torch.randn(*shape, generator=torch.Generator().manual_seed(5)) * scale).to(dtype)

    def activated(x: Any) -> Any:
        return torch.nn.functional.gelu(torch.sin(x) * 3)

    def projected(x: Any, w: Any) -> Any:
        return torch.softmax(torch.matmul(x, w), -1)

    def loss(x: Any) -> Any:
        return torch.sin(x).pow(2).mean()

    bf16, half = torch.bfloat16, torch.float16
    for name, function, args, target, factor, elements in (
            ("bfloat16, 6 % off", activated, (noise(32, 16, dtype=bf16),), "sin", 1.06, None),
            ("bfloat16, 10 % off", activated, (noise(32, 16, dtype=bf16),), "sin", 1.1, None),
            ("bfloat16 logits, 8 % off", projected, (noise(8, 16, dtype=bf16), noise(16, 8, dtype=bf16)), "matmul",
             1.08, None),
            ("a loss in bfloat16, 6 % off", loss, (noise(64, dtype=bf16),), "mean", 1.06, None),
            ("one row in bfloat16, 10 % off", activated, (noise(32, 16, dtype=bf16),), "gelu", 1.1, slice(16, 32)),
            ("float16, 2 % off", activated, (noise(32, 16, dtype=half),), "sin", 1.02, None),
            ("values of 1e-7, off by half", activated, (noise(32, 16, scale=1e-7),), "sin", 1.5, None),
            ("a loss of 1e-8, off by half", loss, (noise(64, scale=1e-4),), "mean", 1.5, None),
            ("float32, 1e-5 off", activated, (noise(32, 16),), "gelu", 1.00001, None),
            ("one element in 512, 0.1 % off", activated, (noise(32, 16),), "gelu", 1.001, slice(100, 101))):
        backend = off(target, factor, elements)
        yield Wrong(name, "value", ("graph", "backend"), "", lambda function=function, args=args, backend=backend: (
            warmed(function, args, backend=backend)), True)


def beside_random_numbers() -> Iterator[Wrong]:
    """Faults of Inductor's in programs that draw random numbers."""
    def dropped(x: Any, w: Any) -> Any:
        return torch.sin(torch.nn.functional.dropout(x, 0.5) @ w)

    def noisy(x: Any, w: Any) -> Any:
        return torch.sigmoid(x + 0.1 * torch.randn_like(x)) @ w

    def trained(x: Any, w: Any) -> Any:
        return torch.tanh(torch.nn.functional.dropout(x @ w, 0.3)).pow(2).mean()

    def augmented(x: Any, w: Any) -> Any:
        mask = torch.rand(x.shape[0], 1) > 0.5
        return torch.where(mask, torch.cos(x), x) @ w

    def halved(x: Any, w: Any) -> Any:
        return torch.sin(torch.nn.functional.dropout(x.bfloat16(), 0.5)) * 3

    for name, function, op, other in (
            ("behind dropout", dropped, aten.sin.default, aten.cos.default),
            ("behind noise", noisy, aten.sigmoid.default, aten.tanh.default),
            ("a gradient behind dropout", trained, aten.tanh.default, aten.sin.default),
            ("augmentation", augmented, aten.cos.default, aten.sin.default),
            ("dropout in bfloat16", halved, aten.sin.default, aten.tanh.default)):
        def prepare(function: Any = function, op: Any = op, other: Any = other) -> Prepared:
            lowered(op, other)
            w = x(8, 4).requires_grad_(function is trained)
            return warmed(function, (x(16, 8), w), backend="inductor")
        yield Wrong(name, "beside random numbers", ("kernel", "backward graph"), "", prepare, True)


def programs() -> Iterator[Wrong]:
    """Yield all of them."""
    for part in (in_torch, stale_constant, in_graphs, in_guards, in_code, in_side_effects, in_backends, in_kernels,
                 in_values, beside_random_numbers):
        yield from part()


__all__ = ["Prepared", "Wrong", "programs"]
