"""What ``depyf.compare`` says of values: equal within rounding, different, or not judged; forked, and on copies."""

import os
import random
import shutil
import weakref

import pytest

torch = pytest.importorskip("torch")

import depyf
from depyf.capture import forked
from depyf.capture.torch_private import cache_entries
from depyf.comparing import outcome, reachable
from depyf.comparing.outcome import outcome_of
from depyf.comparing.reference import Reference, within_rounding

pytestmark = pytest.mark.usefixtures("fresh_dynamo")
needs_compiler = pytest.mark.skipif(not shutil.which(os.environ.get("CXX", "g++")), reason="needs a C++ compiler")
log = []


@pytest.fixture(params=["forked", "on copies"], autouse=True)
def place(request, monkeypatch):
    if request.param == "on copies":
        monkeypatch.setattr(forked, "why_not", lambda: "forking is refused")
    elif forked.why_not():
        pytest.skip("no process can be forked here")
    log.clear()
    return request.param


def off_by(factor, operation=torch.sin):
    """A backend whose graphs give one operation's result times a factor."""
    def backend(gm, inputs):
        for node in list(gm.graph.nodes):
            if node.target is operation or getattr(node.target, "__name__", node.target) == operation.__name__:
                with gm.graph.inserting_after(node):
                    new = gm.graph.call_function(torch.mul, (node, factor))
                node.replace_all_uses_with(new)
                new.args = (node, factor)
        gm.recompile()
        return gm.forward
    return backend


@pytest.mark.parametrize("dtype, scale, factor", [
    (torch.bfloat16, 1.0, 1.06), (torch.bfloat16, 1.0, 1.1), (torch.float16, 1.0, 1.02), (torch.float32, 1e-7, 1.5),
    (torch.float32, 1e-7, 1.001), (torch.float64, 1e-12, 1.0001)])
def test_an_error_of_a_few_percent_is_found(dtype, scale, factor):
    x = torch.randn(64, dtype=dtype) * scale

    def waves(x):
        return torch.sin(x) * 3

    right, wrong = torch.compile(waves, backend="eager"), torch.compile(waves, backend=off_by(factor))
    right(x)
    assert depyf.compare(right, x, stages=()).equal
    torch._dynamo.reset()
    wrong(x)
    result = depyf.compare(wrong, x, stages=())
    assert result.different and not result.equal, str(result)
    assert "DIFFERENT" in str(result)


@needs_compiler
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rounding_of_inductors_is_none(dtype):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4),
                                torch.nn.LogSoftmax(-1)).to(dtype)
    x = torch.randn(8, 16, dtype=dtype)
    compiled = torch.compile(model)
    compiled(x)
    result = depyf.compare(compiled, x, stages=())
    assert result.equal and result.running.served, str(result)


def dropped(x, w):
    return torch.sin(torch.nn.functional.dropout(x, 0.5) @ w)


@needs_compiler
@pytest.mark.parametrize("wrong", [False, True])
def test_what_follows_dropout_is_judged_with_the_random_numbers_of_eager_python(monkeypatch, wrong):
    from torch._inductor import lowering

    aten = torch.ops.aten
    if wrong:
        monkeypatch.setitem(lowering.lowerings, aten.sin.default, lowering.lowerings[aten.cos.default])
    x, w = torch.randn(8, 8), torch.randn(8, 8)
    compiled = torch.compile(dropped)
    compiled(x, w)
    running = depyf.compare(compiled, x, w, stages=()).running
    assert running.served and bool(running.differing) == wrong and running.equal != wrong, str(running)
    assert "draws the random numbers of eager Python" in running.remade, str(running)
    assert "made afresh" in str(running)


@needs_compiler
def test_a_version_that_is_wrong_behind_dropout_is_not_said_to_be_equal():
    """Compiled afresh it is right: the version that exists is not."""
    def dropped_and_scaled(x, factor):
        return torch.nn.functional.dropout(x, 0.5) * factor

    compiled = torch.compile(dropped_and_scaled, dynamic=False, options={
        "guard_filter_fn": lambda guards: ["factor" not in each.name for each in guards]})
    x = torch.ones(64)
    compiled(x, 2.0)
    running = depyf.compare(compiled, x, 5.0, stages=()).running
    assert running.served and not running.equal, str(running)
    assert "another compilation gives other values from one seed" in str(running)


def test_where_eager_python_differs_from_itself_nothing_is_judged():
    def numbered(x):
        return x + 1, torch.tensor([id(object()) % 7, int.from_bytes(os.urandom(6), "big")])

    compiled = torch.compile(numbered, backend="eager")
    compiled(torch.ones(2))
    result = depyf.compare(compiled, torch.ones(2), stages=())
    assert not result.equal and not result.different, str(result)
    assert "not judged: result[1]: two runs in eager Python differ there" in str(result)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(()))
        self.history, self.calls = [], 0

    def forward(self, x, state):
        self.calls += 1
        self.seen += 1
        self.history.append(x.sum())
        state["last"] = x
        log.append(self.calls)
        x.mul_(2)
        return self.linear(x)


def test_the_program_is_as_it_was():
    """Objects, versions of tensors, gradients, counters of random numbers, cache entries."""
    torch.manual_seed(0)
    model, x, state = Model(), torch.randn(2, 4), {}
    compiled = torch.compile(model, backend="aot_eager")
    compiled(x, state).sum().backward()

    def everything():
        tensors = [*model.parameters(), *model.buffers(), x, model.linear.weight.grad, *model.history, *state.values()]
        entries = [(code.co_name, entry.name, id(entry.code)) for code in cache_entries.known_codes()
                   for entry in cache_entries.entries(code)]
        return ([(id(each), each._version, each.tolist()) for each in tensors], model.calls, list(log),
                list(map(id, model.history)), sorted(model.__dict__), entries, random.getstate(),
                torch.get_rng_state().tolist(), "forward" in vars(model))

    before = everything()
    result = depyf.compare(compiled, x, state, stages=("captured",))
    assert result.running.equal and result.stage("captured").equal, str(result)
    assert everything() == before


def test_a_version_that_is_wrong_is_found_where_it_is(place):
    compiled = torch.compile(lambda x, factor: x * factor, backend="eager", dynamic=False, options={
        "guard_filter_fn": lambda guards: ["factor" not in each.name for each in guards]})
    compiled(torch.ones(3), 2)
    running = depyf.compare(compiled, torch.ones(3), 5, stages=()).running
    assert running.differing and running.served == ("<lambda> [0/0]",), str(running)
    assert (running.fault is None) == (place == "on copies")


def test_a_call_that_no_version_fits():
    compiled = torch.compile(lambda x, y: x * y, backend=off_by(1.5, torch.mul), dynamic=False)
    compiled(torch.ones(3), torch.ones(3))
    entries = len(cache_entries.known_codes())
    running = depyf.compare(compiled, torch.ones(4), torch.ones(4), stages=()).running
    assert running.nothing_fits and running.differing, str(running)
    assert len(cache_entries.known_codes()) == entries


def test_an_iterator_is_refused_on_copies(place):
    compiled = torch.compile(lambda x, items: x + next(items), backend="eager")
    items = iter([1, 2, 3])
    compiled(torch.ones(2), items)
    result = depyf.compare(compiled, torch.ones(2), items, stages=())
    if place == "on copies":
        assert not result.equal and "is an iterator" in result.running.failure
    assert next(items) == 2


def test_a_weak_reference_is_no_obstacle():
    target = torch.nn.Linear(2, 2)
    holder = {"weak": weakref.ref(target)}
    compiled = torch.compile(lambda x: x + len(holder), backend="eager")
    compiled(torch.ones(2))
    result = depyf.compare(compiled, torch.ones(2), stages=())
    assert result.equal, str(result)


def test_calls_are_checked(tmp_path, capfd):
    wrong = torch.compile(lambda x, factor: x + factor, backend="eager", options={
        "guard_filter_fn": lambda guards: ["factor" not in each.name for each in guards]})
    with depyf.prepare_debug(str(tmp_path / "dump"), check=True):
        for factor in (2, 3):
            wrong(torch.ones(2), factor)
    assert "2 of 2 compiled calls judged: 1 equal to eager Python, 1 DIFFERENT" in capfd.readouterr().err
    records = (tmp_path / "dump" / "records.jsonl").read_text()
    assert records.count('"outcome"') <= 2  # nothing that was compiled to judge a call is recorded


# --- where a difference may hide -------------------------------------------------------------------
def doubled(gm, inputs):
    """A backend whose graphs return twice what they should."""
    def run(*args):
        return tuple(each * 2 if isinstance(each, torch.Tensor) else each for each in gm.forward(*args))
    return run


def shifted(gm, inputs):
    """A backend whose graphs return 5 more, but where the value is a mask's."""
    return lambda *args: tuple(torch.where(each < -1e8, each, each + 5) for each in gm.forward(*args))


WORDS = {f"word {number}": number for number in range(600)}


def masked(x):
    return (x * 2).masked_fill(x > 0.5, -1e9)


def looked_up(x):
    return x + WORDS["word 3"]


def in_a_set(x):
    return {"values": {1: x * 3}.values(), "many": [[x * 2]]}


def sparse(x):
    return (x * 2).to_sparse()


def of_numpy(x):
    import numpy

    return numpy.tanh(x)


def nested(x):
    result = x * 2
    for _ in range(45):
        result = [result]
    return result


@pytest.mark.parametrize("function, backend", [
    (masked, shifted), (in_a_set, doubled), (nested, doubled), (of_numpy, doubled)])
def test_a_difference_is_found_wherever_it_is(function, backend):
    x = torch.linspace(-1, 1, 3000) if function is not of_numpy else torch.linspace(-1, 1, 3000).numpy()
    right, wrong = torch.compile(function, backend="eager"), torch.compile(function, backend=backend)
    right(x)
    assert depyf.compare(right, x, stages=()).equal, str(depyf.compare(right, x, stages=()))
    torch._dynamo.reset()
    wrong(x)
    assert depyf.compare(wrong, x, stages=()).different


def logged(x):
    total = (x * x).sum()
    print(f"loss {total.item():.6f}")
    return total.item() * 1.5


def test_numbers_that_are_printed_or_returned():
    x = torch.rand(100)
    right, wrong = torch.compile(logged, backend="eager"), torch.compile(logged, backend=doubled)
    right(x)
    assert not depyf.compare(right, x, stages=()).different
    torch._dynamo.reset()
    wrong(x)
    differing = depyf.compare(wrong, x, stages=()).running.differing
    assert [each.partition(":")[0] for each in differing] == ["standard output", "result"]


def test_more_objects_than_are_looked_at_are_not_called_equal(monkeypatch):
    for module in (reachable, outcome):
        monkeypatch.setattr(module, "MOST", 500)
    right, wrong = torch.compile(looked_up, backend="eager"), torch.compile(looked_up, backend=doubled)
    right(torch.ones(2))
    result = depyf.compare(right, torch.ones(2), stages=())
    assert not result.equal and not result.different and "500 are reached" in str(result)
    torch._dynamo.reset()
    wrong(torch.ones(2))
    assert depyf.compare(wrong, torch.ones(2), stages=()).different


def test_a_gradient_that_flows_on_into_the_program():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x * 2

        @staticmethod
        def backward(context, gradient):
            return gradient * 7

    weight = torch.ones(3, requires_grad=True)
    wrong = torch.compile(lambda x: x * 2, backend=lambda gm, inputs: lambda *args: (Wrong.apply(args[0]),))
    x = weight * 3
    wrong(x)
    result = depyf.compare(wrong, x, stages=(), backward=True)
    assert result.running.differing and "gradient of args[0]" in result.running.differing[0], str(result)
    x.sum().backward()  # the program's own graph is still there
    assert weight.grad.tolist() == [3.0] * 3


def test_a_sparse_result_can_be_judged():
    compiled = torch.compile(sparse, backend="eager")
    compiled(torch.eye(3))
    assert depyf.compare(compiled, torch.eye(3), stages=()).equal


def test_objects_of_one_name_are_told_apart():
    """Two parameters are keys of one dictionary; only the first one's value is wrong."""
    table = {torch.nn.Parameter(torch.ones(2)): {"count": torch.zeros(2)},
             torch.nn.Parameter(torch.ones(3)): {"count": torch.zeros(3)}}

    def counts(x):
        for each in table.values():
            each["count"] = each["count"] + 1
        return x + 1

    def planted(gm, inputs):
        return lambda *args: tuple(each + 1 if each.shape == (2,) else each for each in gm.forward(*args))

    compiled = torch.compile(counts, backend=planted)
    compiled(torch.ones(5))
    assert depyf.compare(compiled, torch.ones(5), stages=()).different


def test_odd_objects_are_put_back():
    import collections

    class Point:
        __slots__ = ("x",)

    point, order = Point(), collections.OrderedDict(a=1)
    point.x = torch.ones(2)
    own = torch.ones(2)
    own.extra = [own]

    def changes(x):
        order["b"] = 2
        own.extra.append(1)
        return x * point.x + len(order)

    compiled = torch.compile(changes, backend="eager")
    depyf.compare(compiled, torch.ones(2), stages=("captured",))
    assert list(order.items()) == [("a", 1)] and point.x.tolist() == [1, 1] and len(own.extra) == 1
    assert compiled(torch.ones(2)).tolist() == [3, 3]


# --- the measure of rounding -------------------------------------------------------------------------
def test_views_and_changes_in_place_have_one_value():
    x = torch.ones(4, 4)

    def changes():
        y = x * (1 / 3)
        y.t()[0] += 1
        z = y[:, 0]
        return z * 3

    with Reference() as reference:
        result = changes()
    exact = reference.of(result)[0]
    third = torch.tensor(1 / 3, dtype=torch.float64)
    assert torch.equal(exact, ((torch.ones(4, dtype=torch.float64) * third) + 1) * 3)
    assert not reference.incomplete


def test_random_numbers_are_drawn_as_without():
    def draws():
        mask = torch.nn.functional.dropout(torch.full((50,), 1 / 3), 0.5)
        return mask + torch.rand(50) + torch.randn(50)

    torch.manual_seed(3)
    expected, state = draws(), torch.get_rng_state()
    torch.manual_seed(3)
    with Reference() as reference:
        actual = draws()
    assert torch.equal(actual, expected) and torch.equal(torch.get_rng_state(), state)
    assert (reference.of(actual)[0] - expected).abs().max() < 1e-6


def test_a_branch_that_rounding_decides():
    values = torch.tensor([1.0, 2.0])
    near = (torch.tensor([True, True]),) * 3
    either = (torch.tensor([True, True]), torch.tensor([True, False]), torch.tensor([True, True]))
    actual = torch.tensor([True, False])
    assert within_rounding(actual, torch.tensor([True, True]), either)
    assert not within_rounding(actual, torch.tensor([True, True]), near)
    assert not within_rounding(values * 1.001, values, tuple(values.double() for _ in range(3)))


def test_a_number_that_the_program_reads():
    measured = outcome_of(lambda x: (x / 3).sum().item(), {}, (torch.rand(100),), {}, None, measured=True)
    value = measured.states["result"].value
    exact, *disturbed = measured.scalars[value]
    assert abs(exact - value) < 1e-5 and any(each != exact for each in disturbed)
