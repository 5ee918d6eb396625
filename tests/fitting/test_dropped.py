"""Guards that a program told torch to drop are held against its calls."""

import gc
import re

import pytest

torch = pytest.importorskip("torch")

import depyf

pytestmark = [
    pytest.mark.usefixtures("fresh_dynamo"),
    pytest.mark.skipif(
        tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13), reason="other torches word guards otherwise"),
]
KEEP = {
    "none": lambda guards: [False for _ in guards],
    "tensors": lambda guards: [each.guard_type == "TENSOR_MATCH" for each in guards],
    "all": lambda guards: [True for _ in guards]}


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2

    def forward(self, x):
        return x * self.scale if x.shape[0] > 1 else x


def compiled(model, keep):
    """As ``torch.compile`` does with ``options={"guard_filter_fn": ...}``, which other backends than Inductor refuse."""
    return torch._dynamo.optimize("eager", guard_filter_fn=KEEP[keep], dynamic=True)(model)


def subjects(dropped):
    return [(each.failure.subject, each.failure.wanted, each.failure.met, each.calls, each.first_call)
            for each in dropped.violations]


@pytest.mark.parametrize("keep", ["none", "tensors"])
def test_calls_that_violate(keep):
    model = Scaled()
    with depyf.dropped_guards() as dropped:
        run = compiled(model, keep)
        results = [run(torch.ones(size, 3)) for size in (4, 5, 1, 1)]
        model.scale = 3
        results.append(run(torch.ones(4, 3)))
    # The program gets what it would get without being watched: here the wrong results.
    assert [float(each[0, 0]) for each in results] == [2.0] * 5
    assert subjects(dropped) == [("x.shape[0]", "2 or more", "1", 2, 2), ("self.scale", "2", "3", 1, 4)]
    text = re.sub(r"test_dropped.py:\d+", "test_dropped.py:N", str(dropped))
    assert text == """\
3 of 4 calls violate guards that torch was asked to drop.

  [0/0] of forward, test_dropped.py:N: 2 of 4 calls, first call 2:
    x.shape[0] must be 2 or more, is 1 (test_dropped.py:N: return x * self.scale if x.shape[0] > 1 else x)

  [0/0] of forward, test_dropped.py:N: 1 of 4 calls, first call 4:
    self.scale must be 2, is 3 (test_dropped.py:N: return x * self.scale if x.shape[0] > 1 else x)
"""
    # Behind the block nothing is checked any more.
    run(torch.ones(1, 3))
    assert dropped.calls == {"0/0": 4}


def test_nothing_is_dropped_or_violated():
    with depyf.dropped_guards() as dropped:
        run = compiled(Scaled(), "all")
        for size in (4, 1, 5):
            run(torch.ones(size, 3))
    assert dropped.violations == [] and dropped.problems == []
    assert "None of" in str(dropped)
    with depyf.dropped_guards() as dropped:
        torch.compile(Scaled(), backend="eager")(torch.ones(2, 3))
    assert str(dropped) == "No call was checked: no function was compiled whose guards torch was asked to drop.\n"


def test_asking_is_no_call():
    with depyf.dropped_guards() as dropped:
        run = compiled(Scaled(), "none")
        run(torch.ones(4, 3))
        run(torch.ones(4, 3))
        text = str(depyf.fits(run, torch.ones(1, 3)))
    assert dropped.calls == {"0/0": 1}
    assert "[0/0]  fits\n         a guard that torch skips on request does not hold: x.shape[0] must be 2 or more" in text


def test_an_error_of_ours_stays_ours(monkeypatch):
    with depyf.dropped_guards() as dropped:
        run = compiled(Scaled(), "none")
        run(torch.ones(4, 3))
        monkeypatch.setattr(dropped, "_check", lambda full, values: 1 / 0)
        assert float(run(torch.ones(4, 3))[0, 0]) == 2.0
    assert "could not be checked: ZeroDivisionError" in str(dropped)


def test_what_is_kept_goes_with_the_function():
    """(Of a module torch itself keeps the guards that are left, and with them goes what is kept here.)"""
    from depyf.capture.torch_private import guards

    gc.collect()
    before = len(guards._full)
    with depyf.dropped_guards():
        run = compiled(lambda x: x + 1, "none")
        run(torch.ones(4, 3))
    assert len(guards._full) == before + 1
    del run
    torch._dynamo.reset()
    gc.collect()
    assert len(guards._full) == before


def test_skipped_by_the_stance():
    run = torch.compile(Scaled(), backend="eager")
    run(torch.ones(4, 3))
    with torch.compiler.set_stance("default", skip_guard_eval_unsafe=True):
        text = str(depyf.fits(run, torch.ones(5, 3)))
    assert "a guard that torch skips on request does not hold: x.shape[0] must be 4, is 5" in text
