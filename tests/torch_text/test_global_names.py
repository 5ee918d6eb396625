"""Globals that Dynamo names by the id of an object."""

import collections
import weakref

import pytest

from depyf.torch_text.global_names import without_ids


class Config:
    pass


CONFIG = Config()
NAME = "_140084081999072_c3"


@pytest.mark.parametrize(("value", "name"), [
    (collections, "collections"), (collections.OrderedDict, "collections.OrderedDict"), (len, "len"), (CONFIG, "CONFIG"),
    (weakref.ref(CONFIG), "weakref.ref(CONFIG)"), (Config(), "some_Config"), (None, "value"),
])
def test_what_a_global_holds_gives_its_name(value, name):
    namespace = {NAME: value, "__builtins__": {}, "CONFIG": CONFIG, "_hidden": value}
    assert without_ids(f"G['{NAME}'].x is G['{NAME}']", namespace, {}) == f"G['{name}'].x is G['{name}']"


def test_variables_of_the_frame_come_first_and_names_are_distinct():
    one, other, third = Config(), Config(), Config()
    namespace = {"_140084081999072_c0": one, "_140084081999073_c0": other, "t_140084081999074_c0": third, "later": one}
    text = " ".join(f"G['{name}']" for name in list(namespace)[:3])
    assert without_ids(text, namespace, {"mine": one}) == "G['mine'] G['some_Config'] G['some_Config_1']"


def test_a_global_that_is_gone_keeps_what_stood_before_its_id():
    assert without_ids("G['param_140084081999072_c1']() is not None", {}, {}) == "G['param']() is not None"
