"""What is written down of live objects answers as asking the objects does."""

import collections
import collections.abc

import pytest

torch = pytest.importorskip("torch")

from depyf.capture.fact_snapshot import snapshot  # noqa: E402
from depyf.decompiler.dynamo.facts import Facts  # noqa: E402
from live_facts import LiveFacts  # noqa: E402


class Shadowed(torch.nn.Linear):
    """Its parameters are not what its attributes are."""

    def __init__(self):
        super().__init__(2, 2)
        self.__dict__["weight"] = 1


class Early(Shadowed):
    """The class has an attribute of a parameter's name."""

    bias = property(lambda self: 3)

    def register_parameter(self, name, param):
        self._parameters[name] = param

    def __setattr__(self, name, value):
        if name == "bias":
            self._parameters[name] = value
        else:
            super().__setattr__(name, value)

    def reset_parameters(self):
        pass


class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(2, 2)

    def __getattr__(self, name):
        return super().__getattr__(name)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2), Early(), Own()])
        self.block = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        self.scales = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(1))])
        self.norm = torch.nn.BatchNorm1d(2)
        self.config = collections.OrderedDict()
        self.sizes = [1, (2, 3)]
        self.table = {"layers": collections.OrderedDict(a=1), 0: "first", True: "yes"}
        self.method = self.forward

    @property
    def device(self):
        raise AssertionError("code of the user's runs")

    def forward(self, x):
        return x


class Counts(dict):
    """A dictionary with a method of its own."""

    def __getitem__(self, key):
        raise AssertionError("code of the user's runs")


class Pretending:
    """Its instances say that they are of another class."""

    @property
    def __class__(self):
        raise AssertionError("code of the user's runs")


def transformed(self, counts, ordered, kwargs, pretending):
    """Names and keys that lead to the objects."""
    object.__setattr__(ordered, "count", collections.abc)
    self.total = type.__new__
    return (self._modules["layers"]._modules["0"], self._modules["layers"]._modules["1"]._parameters["weight"],
            self._modules["layers"]._modules["1"]._parameters["bias"],
            self._parameters["bias"], self._modules["layers"]._modules["2"]._modules["lin"],
            self._modules["block"][0], self.__dict__["scales"], self._buffers["running_mean"],
            self._modules["norm"], self.config, self.sizes[1][-1], self.table["layers"]["a"], self.table[0],
            self.method.__self__, self.device, counts["a"], vars(ordered), dict, list, torch.nn.functional.relu,
            collections.OrderedDict, Model, kwargs, self.__class__, pretending.__class__)


def test_the_text_answers_as_the_objects_do():
    variables = {"self": Model(), "counts": Counts(a=1), "ordered": collections.OrderedDict(), "kwargs": {},
                 "pretending": Pretending()}
    code = transformed.__code__
    live = LiveFacts(variables, globals())
    written = Facts(snapshot(code, variables, globals()))
    paths = list(written._answers)
    keys = [0, 1, -1, True, "0", "1", "lin", "layers", "weight"]
    assert len(paths) > 60
    assert (("local", "self"), ("attr", "__class__")) in paths
    assert not live.reading((("local", "pretending"), ("attr", "__class__")))
    asked = 0
    for path in paths:
        for question in ("reading", "unshadowed", "stores_member", "length", "allocates", "well_known",
                         "imported", "class_path"):
            if question == "class_path" and (*path, ("class", "")) not in written._answers:
                continue
            assert getattr(written, question)(path) == getattr(live, question)(path), (question, path)
            asked += 1
        assert written.allocates(path, True) == live.allocates(path, True), path
        for index in range(4):
            assert written.ancestor(path, index) == live.ancestor(path, index), (path, index)
        for key in keys:
            inside = live.element(path, key)
            assert written.element(path, key) in (inside, None), (path, key)
            if inside is not None and inside in written._answers:
                assert written.element(path, key) == inside, (path, key)
        if path[-1][0] == "class":
            for name in ("total", "count"):
                for generic in (True, False):
                    assert written.stores_plainly(path, name, generic) == live.stores_plainly(path, name, generic)
        assert written.builtin_method(path, "append") == live.builtin_method(path, "append"), path
    assert sorted(written.refusals()) == sorted(live.refusals()) and len(live.refusals()) >= 3
    told = {name for path in paths for name in [written.reading(path)]}
    assert told == {"always", "modules", "plain"} and asked > 500


def test_the_class_of_an_empty_dictionary_with_attributes_is_written():
    variables = {"self": Model(), "counts": {}, "ordered": collections.OrderedDict(), "kwargs": {}}
    written = Facts(snapshot(transformed.__code__, variables, globals()))
    path = (("local", "ordered"),)
    assert written.class_path(path) is not None
    assert (*path, ("class", "")) in written._answers
