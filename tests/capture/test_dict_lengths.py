"""The number of entries of a dictionary is among the guards, where torch tests it without printing it."""

import pytest
import torch

from depyf.capture.torch_private.guards import with_lengths

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def summed(x, fields):
    for name, field in fields.items():
        x = x + field(x)
    return x


def guards_of(capture):
    return [{guard.expression for guard in entry.guards}
            for function in capture.functions for frame in function.frames for entry in frame.entries]


def test_a_loop_over_a_dictionary(tmp_path):
    import depyf
    from depyf.records import store

    with depyf.prepare_debug(str(tmp_path), files="now"):
        compiled = torch.compile(summed, backend="eager")
        compiled(torch.ones(2), {"sin": torch.sin, "cos": torch.cos})
        compiled(torch.ones(2), {"sin": torch.sin})
    lengths = [{text for text in guards if text.startswith("len(")} for guards in guards_of(store.read(str(tmp_path)))]
    assert sorted(lengths, key=str) == [{"len(L['fields']) == 1"}, {"len(L['fields']) == 2"}]


TREE = """TREE_GUARD_MANAGER:
+- RootGuardManager
| +- DictGuardManager: source=L['d'], accessed_by=FrameLocalsGuardAccessor(key='d'), type=<class 'dict'>
| | +- KeyValueManager pair at index=0
| +- DictGuardManager: source=L['empty'], accessed_by=FrameLocalsGuardAccessor(key='empty'), type=<class 'dict'>
| +- DictGuardManager: source=L['o'].made, accessed_by=GetAttrGuardAccessor(made), type=<class 'dict'>
"""


class Asked:
    def __getattribute__(self, name):
        raise AssertionError("code of the user's ran")


def test_the_tree_has_them_as_guards_of_their_own():
    lines = with_lengths(TREE, {"d": {1: 2, 3: 4}, "empty": {}, "o": Asked()}, {}).splitlines()
    assert lines[3].rstrip() == "| | +- DICT_LENGTH: len(L['d']) == 2"
    assert lines[6].rstrip() == "| | +- DICT_LENGTH: not L['empty']"
    assert len(lines) == len(TREE.splitlines()) + 2


def test_what_torch_prints_itself_is_not_said_twice():
    printed = TREE.replace("KeyValueManager pair at index=0", "DICT_LENGTH: len(L['d']) == 2  # loop.py:1 in f")
    assert with_lengths(printed, {"d": {1: 2, 3: 4}}, {}) == printed
