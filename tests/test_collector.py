"""The garbage collector waits while depyf works, and is as the program wants it afterwards."""

import gc
import weakref

import pytest

from depyf import guarded


class Node:
    pass


def cycle():
    """Something that only the collector can free."""
    node = Node()
    node.itself = node
    return weakref.ref(node)


@pytest.fixture(autouse=True)
def as_before():
    collecting = gc.isenabled()
    yield
    (gc.enable if collecting else gc.disable)()


def test_nothing_is_collected_meanwhile():
    gc.enable()
    with guarded.paused():
        held = cycle()
        lists = [[] for _ in range(10 * gc.get_threshold()[0])]
        assert held() is not None and lists
    gc.collect()
    assert held() is None


@pytest.mark.parametrize("collecting", [True, False])
def test_the_program_finds_it_as_it_was(collecting):
    (gc.enable if collecting else gc.disable)()
    with guarded.paused(), guarded.paused():
        assert not gc.isenabled()
    assert gc.isenabled() is collecting
    with pytest.raises(KeyError), guarded.paused():
        raise KeyError
    assert gc.isenabled() is collecting


def test_a_program_that_turns_it_on_meanwhile_has_it_on():
    gc.disable()
    with guarded.paused():
        gc.enable()
    assert gc.isenabled()
