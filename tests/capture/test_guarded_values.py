"""What torch lets go of while a program is watched is gone: records hold texts, not graphs."""

import gc
import weakref

import pytest

torch = pytest.importorskip("torch")

import depyf


def test_graphs_of_a_reset_are_gone_while_the_block_goes_on(tmp_path):
    graphs = []

    def backend(gm, inputs):
        graphs.append(weakref.ref(gm))
        return gm.forward

    def double(x):
        return x * 2

    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        for size in (2, 3):
            torch._dynamo.reset()
            assert torch.compile(double, backend=backend, dynamic=False)(torch.ones(size)).shape == (size,)
        torch._dynamo.reset()
        gc.collect()
        assert len(graphs) == 2 and [graph() for graph in graphs] == [None, None]
    assert len(list((tmp_path / "d").glob("__transformed_code_*_double.py"))) == 2, on.path


def test_torchs_list_of_files_to_leave_alone_does_not_grow(tmp_path):
    def double(x):
        return x * 2

    lengths = []
    for name in ("a", "b", "c"):
        with depyf.prepare_debug(str(tmp_path / name)):
            torch._dynamo.reset()
            torch.compile(double, backend="eager")(torch.ones(2))
        lengths.append(len(torch._dynamo.trace_rules.SKIP_DIRS))
    assert lengths == [lengths[0]] * 3
