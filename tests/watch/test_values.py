"""When a value counts as bad."""

import math

import pytest

torch = pytest.importorskip("torch")

from depyf.watch.stop import Condition, described, leaves

NAN, INF = float("nan"), float("inf")


def tensor(*values, dtype=torch.float32):
    return torch.tensor(values).to(dtype)


@pytest.mark.parametrize("dtype", [
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.complex32,
    torch.float8_e5m2])
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_every_floating_dtype(dtype):
    assert Condition("nan").holds("x", tensor(1.0, NAN, dtype=dtype))
    assert not Condition("nan").holds("x", tensor(1.0, INF, dtype=dtype))
    assert Condition("inf").holds("x", tensor(1.0, -INF, dtype=dtype))
    assert not Condition("inf").holds("x", tensor(1.0, NAN, dtype=dtype))
    assert not Condition("inf").holds("x", tensor(1.0, 2.0, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool, torch.uint8])
def test_integers_never_are(dtype):
    assert not Condition("nan").holds("x", torch.ones(3).to(dtype))
    assert not Condition("inf").holds("x", torch.ones(3).to(dtype))


def test_numbers_and_nested_values():
    condition = Condition("nan")
    assert condition.holds("x", [1, (2.0, {"a": [NAN]})])
    assert condition.holds("x", complex(0, NAN))
    assert condition.holds("x", torch.return_types.max((tensor(NAN), tensor(0))))
    assert not condition.holds("x", [1, (2.0, {"a": [INF]}, "nan", None, object())])
    endless = []
    endless.append(endless)
    assert list(leaves(endless)) == []


def test_imaginary_part_only():
    value = torch.complex(tensor(1.0), tensor(NAN))
    assert Condition("nan").holds("x", value)
    assert Condition("nan").holds("x", value.conj())


def test_what_holds_no_numbers():
    condition = Condition("nan")
    assert not condition.holds("x", torch.empty(3, device="meta"))
    assert not condition.holds("x", torch.empty(0))
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        assert not condition.holds("x", torch.empty(3))
    assert not condition.unknown


def test_sparse_and_nested():
    assert Condition("nan").holds("x", tensor(0.0, NAN).to_sparse())
    assert Condition("nan").holds("x", torch.tensor([[0.0, NAN]]).to_sparse_csr())
    assert not Condition("nan").holds("x", tensor(0.0, 1.0).to_sparse())


def test_a_subclass_is_looked_into():
    class Pair(torch.Tensor):
        @staticmethod
        def __new__(cls, a, b):
            return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype)

        def __init__(self, a, b):
            self.a, self.b = a, b

        def __tensor_flatten__(self):
            return ["a", "b"], None

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("nobody looks at the whole")

    assert Condition("nan").holds("x", Pair(tensor(1.0), tensor(NAN)))
    assert not Condition("nan").holds("x", Pair(tensor(1.0), tensor(2.0)))


def test_nobody_notices():
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise AssertionError(func)

    class Function(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise AssertionError(func)

    value = tensor(1.0, NAN).requires_grad_()
    state = torch.get_rng_state()
    with Dispatch(), Function():
        assert Condition("nan").holds("x", value)
        assert "1 of 2 elements, the first at [1]" in described("x", value, Condition("nan"))
        assert described("y", "text") == "y: str"
    assert torch.equal(state, torch.get_rng_state())
    assert torch.is_grad_enabled()


def test_a_function_is_asked_for_each_part():
    asked = []

    def large(name, value):
        asked.append(name)
        return not isinstance(value, torch.Tensor) and value > 3

    condition = Condition(large)
    assert condition.holds("x", (tensor(9.0), 4))
    assert asked == ["x", "x"]
    assert not condition.holds("y", 2)
    assert condition.name == "a value for which large is true"


def test_descriptions():
    assert described("x", tensor(1.0, 3.0)) == "x: float32[2], from 1 to 3"
    assert described("x", torch.tensor(2.5)) == "x: float32[], 2.5"
    assert described("s", 3) == "s: 3"
    assert described("x", [tensor(1.0)] * 6).count(";") == 4
    assert math.isnan(tensor(NAN).item())
