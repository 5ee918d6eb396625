"""Random nests of modules, lists and objects, read in random order: the text gives the values that the code gives."""

import ast
import random

import pytest

torch = pytest.importorskip("torch")

from depyf.capture.fact_snapshot import snapshot
from depyf.decompiler import decompile_code
from depyf.decompiler.dynamo.facts import Facts
from live_facts import LiveFacts

FIELDS = ("norm", "proj", "items", "layers", "keys", "weight", "s")


class Holder:
    """An object of the user's that is no module."""


class Nest(torch.nn.Module):
    """A module with what is put into it."""


def module(some, depth):
    """A random module, and how torch reads the tensors in it."""
    if not depth or some.random() < 0.2:
        made = torch.nn.Linear(1, 1, bias=some.random() < 0.5)
        return made, [f"._parameters[{name!r}]" for name, _ in made.named_parameters()]
    if some.random() < 0.5:
        members = alike(some, depth)
        made = torch.nn.ModuleList(member for member, _ in members)
        return made, [f"._modules['{at}']{read}" for at, (_, reads) in enumerate(members) for read in reads]
    if some.random() < 0.15:
        made = torch.nn.ParameterList(torch.ones(1) for _ in range(3))
        return made, [f"._parameters['{at}']" for at in range(3)]
    made, reads = (torch.nn.ModuleDict() if some.random() < 0.2 else Nest()), []
    for name in some.sample(FIELDS[:4], some.randint(1, 3)):
        member, inner = module(some, depth - 1)
        made.add_module(name if type(made) is Nest else f"{name}-", member)
        reads += [f"._modules[{name if type(made) is Nest else name + '-'!r}]{read}" for read in inner]
    return made, reads


def plain(some, depth):
    """A random object or list that is none of torch's."""
    if not depth:
        return torch.ones(1), [""]
    if some.random() < 0.5:
        members = alike(some, depth, plain)
        made = [member for member, _ in members]
        return (made if some.random() < 0.7 else tuple(made)), [
            f"[{at}]{read}" for at, (_, reads) in enumerate(members) for read in reads]
    made, reads = Holder(), []
    for name in some.sample(FIELDS, some.randint(1, 3)):
        member, inner = plain(some, depth - 1)
        setattr(made, name, member)
        reads += [f".{name}{read}" for read in inner]
    return made, reads


def alike(some, depth, make=module):
    """Members of a list: all of one shape, or of shapes of their own."""
    shape = some.random()
    return [make(random.Random(shape) if some.random() < 0.9 else some, depth - 1) for _ in range(some.randint(1, 4))]


def arguments(some, reads):
    """An argument list over the reads: in order or not, with some left out, some twice, some in a tuple."""
    chosen = [read for read in reads if some.random() < 0.95]
    style = some.randrange(5)
    if style == 0:
        chosen.reverse()
    elif style == 1:
        chosen.sort(key=lambda read: read[::-1])  # first all norms, then all projections
    elif style == 2 and chosen:
        split = some.randrange(len(chosen))
        chosen = [each for pair in zip(chosen[split:], chosen) for each in pair]
    found = []
    for read in chosen:
        extra = some.random()
        found.append(f"({read}, {some.choice(chosen)})" if extra < 0.05 else read)
        if extra > 0.97:
            found.append(some.choice(["x", "1", "graph_out_0[0]", "[graph_out_0[1], x]"]))
    return found[:250]


def program(seed):
    """A random function as Dynamo writes it, and what it is called with."""
    some = random.Random(seed)
    live, reads = {"x": 1}, []
    for name in some.sample(["self", "caches", "layers", "model"], some.randint(1, 3)):
        live[name], inner = (module if some.random() < 0.6 else plain)(some, some.randint(1, 4))
        reads += [f"{name}{read}" for read in inner]
    if some.random() < 0.2:
        some.shuffle(reads)
    body = ["graph_out_0 = __compiled_fn_1(1, 2)"]
    given = arguments(some, reads)
    body.append(f"graph_out_1 = __compiled_fn_2({', '.join(given)})")
    outputs = list(range(len(given)))
    if some.random() < 0.5:
        outputs = outputs[:: some.choice([-1, 2, 3])]
    pairs = [f"[graph_out_1[{a}], graph_out_1[{b}], 0]" for a, b in zip(outputs[::2], outputs[1::2])]
    dictionaries = [f"dict(keys=graph_out_1[{a}], values=graph_out_1[{b}], c=1)"
                    for a, b in zip(outputs[::2], outputs[1::2])]
    body.append(f"return [{', '.join(some.choice([outputs_of(outputs), pairs, dictionaries]))}]")
    return "\n    ".join([f"def f({', '.join(live)}):", *body]), live


def outputs_of(outputs):
    return [f"graph_out_1[{each}]" for each in outputs]


def scope(source):
    found = {"__compiled_fn_1": lambda *args: args, "__compiled_fn_2": lambda *args: args}
    exec(compile(source, "case.py", "exec"), found)
    return found


def identities(value):
    """What a value holds, by identity of the objects in it."""
    if isinstance(value, (list, tuple)):
        return [identities(item) for item in value]
    if isinstance(value, dict):
        return {key: identities(item) for key, item in value.items()}
    return value if isinstance(value, int) else id(value)


def check(source, live):
    globals = scope(source)
    code = globals["f"].__code__
    found = decompile_code(code, simplify=True, facts=Facts(snapshot(code, live, globals)))
    assert found.text == decompile_code(code, simplify=True, facts=LiveFacts(live, globals)).text
    assert found.runs is not None, found.note  # the first form was good
    expected = identities(globals["f"](*live.values()))
    assert identities(scope(ast.fix_missing_locations(found.runs))["f"](*live.values())) == expected
    assert identities(scope(found.text)["f"](*live.values())) == expected
    return found


@pytest.mark.filterwarnings("error:internal error")
@pytest.mark.parametrize("seed", range(40))
def test_random_nest(seed):
    check(*program(seed))


def test_many_arguments_are_looked_at_a_few_times(monkeypatch):
    """Half a thousand members of one layer, before a layer of another kind: no run begins at any of them."""
    from depyf.decompiler.dynamo import folding

    asked = []
    real = folding.Comparison._common
    monkeypatch.setattr(folding.Comparison, "_common", lambda self, *given: (asked.append(1), real(self, *given))[1])
    layer = Nest()
    for number in range(250):
        layer.add_module(f"part_{number}", torch.nn.Linear(1, 1))
    reads = [f"self._modules['0']._modules['part_{number}']._parameters['{name}']"
             for number in range(250) for name in ("weight", "bias")]
    reads.append("self._modules['1']._parameters['bias']")
    source = f"def f(self):\n    return __compiled_fn_1({', '.join(reads)})"
    check(source, {"self": torch.nn.ModuleList([layer, torch.nn.Linear(1, 1)])})
    assert len(asked) <= 20 * len(reads)
