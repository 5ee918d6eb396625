"""Compiled code called directly (the class of depyf 0.20 that vLLM used)."""

import gc
import threading
import weakref

import pytest

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.optimization import TorchCompileWrapperWithCustomDispatcher  # noqa: E402


class Shift(TorchCompileWrapperWithCustomDispatcher):
    def __init__(self, amount):
        self.amount = amount
        self.traced = 0
        super().__init__(torch.compile(self.forward, backend=self.backend, dynamic=False))

    def backend(self, gm, inputs):
        self.traced += 1
        return gm.forward

    def forward(self, x, cache=None):
        if cache is not None:
            return x + cache * self.amount
        return x + self.amount

    def __call__(self, x, cache=None, index=None):
        if index is None:
            return super().__call__(x, cache)
        with self.dispatch_to_code(index):
            return self.forward(x, cache)


@pytest.fixture(autouse=True)
def fresh():
    """Torch keeps what it compiled, and with it the objects here: their hooks go with the test all the same."""
    from torch._dynamo import convert_frame

    torch._dynamo.reset()
    before = dict(convert_frame._bytecode_hooks)
    yield
    torch._dynamo.reset()
    for key in convert_frame._bytecode_hooks.keys() - before.keys():
        del convert_frame._bytecode_hooks[key]


X = torch.arange(3.0)


def test_each_version_can_be_called():
    shift = Shift(2)
    assert shift.compiled_codes == []
    assert shift(X).tolist() == [2, 3, 4]
    assert shift(X, torch.ones(3)).tolist() == [2, 3, 4]
    assert len(shift.compiled_codes) == 2 and shift.traced == 2
    assert shift(X, None, 0).tolist() == [2, 3, 4]
    assert shift(X, torch.full((3,), 10.0), 1).tolist() == [20, 21, 22]
    assert shift.traced == 2, "nothing was compiled again"


def test_no_guard_is_tested():
    """Another shape would be another version; called directly, the first one runs."""
    shift = Shift(1)
    shift(X)
    assert shift(torch.zeros(5), None, 0).tolist() == [1] * 5
    assert len(shift.compiled_codes) == 1


def test_the_code_comes_back_also_after_an_exception():
    shift = Shift(1)
    shift(X)
    before = Shift.forward.__code__
    with pytest.raises(ZeroDivisionError), shift.dispatch_to_code(0):
        assert Shift.forward.__code__ is not before
        1 / 0  # noqa: B018
    assert Shift.forward.__code__ is before is shift.original_code_object


def test_objects_keep_their_versions_apart():
    one, two = Shift(1), Shift(2)
    one(X)
    two(X)
    assert len(one.compiled_codes) == len(two.compiled_codes) == 1
    assert one.compiled_codes[0] is not two.compiled_codes[0]


def test_a_version_that_is_not_there():
    shift = Shift(1)
    with pytest.raises(IndexError, match="0 compiled versions"), shift.dispatch_to_code(0):
        pass
    assert Shift.forward.__code__ is shift.original_code_object


def test_no_forward():
    with pytest.raises(NotImplementedError, match="Bare has no forward"):
        type("Bare", (TorchCompileWrapperWithCustomDispatcher,), {})(None).forward()


def test_the_object_is_let_go():
    from torch._dynamo import convert_frame

    gc.collect()  # those of other tests
    hooks = len(convert_frame._bytecode_hooks)
    shift = TorchCompileWrapperWithCustomDispatcher(len)
    assert len(convert_frame._bytecode_hooks) == hooks + 1
    ref = weakref.ref(shift)
    del shift
    gc.collect()
    assert ref() is None
    assert len(convert_frame._bytecode_hooks) == hooks


def test_under_prepare_debug(tmp_path):
    shift = Shift(3)
    with depyf.prepare_debug(str(tmp_path)):
        shift(X)
    assert shift(X, None, 0).tolist() == [3, 4, 5]
    assert "self.amount" in depyf.decompile(shift.original_code_object)
    assert depyf.decompile(shift.compiled_codes[0]).startswith("def forward(self, x, cache")


def test_threads_take_turns():
    shift = Shift(1)
    shift(X)
    wrong = []

    def run():
        for _ in range(200):
            with shift.dispatch_to_code(0):
                if Shift.forward.__code__ is not shift.compiled_codes[0]:
                    wrong.append(1)
    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and Shift.forward.__code__ is shift.original_code_object
