"""Code as Dynamo writes it -> text as its reader would. Each case is proven, and what runs gives what the code gives."""

import ast
import collections
import copy
import gc
import sys
import types
import weakref

import pytest

torch = pytest.importorskip("torch")

from depyf.bytecode.packed import packed, unpacked
from depyf.capture.fact_snapshot import snapshot
from depyf.decompiler import Fidelity, decompile_code
from depyf.decompiler.dynamo import readable
from depyf.decompiler.dynamo.facts import Facts
from depyf.decompiler.errors import SIMPLIFY, CannotDecompile
from live_facts import LiveFacts

CASES = {}


def case(name, source, expected, **live):
    CASES[name] = (source, expected, live)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(2)
        self.proj = torch.nn.Linear(2, 2, bias=False)


class Model(torch.nn.Module):
    def __init__(self, count=2):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer() for _ in range(count))
        self.head = torch.nn.Linear(2, 2)


class Shadowed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self._parameters["weight"] = torch.nn.Parameter(torch.ones(1))

    weight = property(lambda self: 1 / 0)


class Cache:
    """An object that a traced function makes."""


class Output(collections.OrderedDict):
    """An object that is a dictionary as well, as the outputs of transformers are."""


class Statistics(torch.nn.Module):
    """Modules with buffers."""

    def __init__(self, count=2):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm1d(2) for _ in range(count))
        self.means = {}


class Watching(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(1))

    def __setattr__(self, name, value):
        super().__setattr__(name, value)


class Counting:
    def __init__(self):
        self.count = 1


class Kept:
    def __init__(self):
        self.counts = {}


class Picky:
    @property
    def size(self):
        return 3

    @size.setter
    def size(self, value):
        raise ValueError(value)


def compiled(*args, **keywords):
    """Stands for a graph."""
    return (*args, *keywords.items()) if args else (1, 2, 3, 4)


case("module_reads", """
def f(self):
    tmp_1 = self._modules
    tmp_2 = tmp_1['layers']._modules['1']._modules
    return __compiled_fn_1(tmp_1['head']._parameters['bias'], tmp_2['proj']._parameters['weight'],
                           tmp_2['norm']._parameters['weight'])
""", """
def f(self):
    return __compiled_fn_1(self.head.bias, self.layers[1].proj.weight, self.layers[1].norm.weight)
""", self=Model())

class Averaging:
    """Holds a module, and is reached from a method of its own, as where torch compiles a decorated method."""

    def __init__(self):
        self.shadow = Model()

    def update(self, model):
        raise NotImplementedError


case("what_a_bound_method_is_of", """
def f(fn, args):
    tmp_1 = fn.__self__.shadow._modules['layers']._modules['1']._modules
    return __compiled_fn_1(tmp_1['norm']._parameters['weight'], tmp_1['proj']._parameters['weight'])
""", """
def f(fn, args):
    return __compiled_fn_1(fn.__self__.shadow.layers[1].norm.weight, fn.__self__.shadow.layers[1].proj.weight)
""", fn=Averaging().update, args=())

case("layers_are_folded", """
def f(self):
    tmp_1 = self._modules
    tmp_2 = tmp_1['layers']._modules
    tmp_3 = tmp_2['0']._modules
    tmp_4 = tmp_2['1']._modules
    tmp_5 = tmp_2['2']._modules
    return __compiled_fn_1(tmp_3['norm']._parameters['weight'], tmp_3['proj']._parameters['weight'],
        tmp_4['norm']._parameters['weight'], tmp_4['proj']._parameters['weight'],
        tmp_5['norm']._parameters['weight'], tmp_5['proj']._parameters['weight'], tmp_1['head']._parameters['bias'])
""", """
def f(self):
    return __compiled_fn_1(
        *(value for layer in self.layers for value in (layer.norm.weight, layer.proj.weight)),
        self.head.bias,
    )
""", self=Model(3))

case("some_of_the_layers", """
def f(self):
    tmp_2 = self._modules['layers']._modules
    return __compiled_fn_1(tmp_2['0']._modules['norm']._parameters['bias'],
        tmp_2['1']._modules['proj']._parameters['weight'], tmp_2['2']._modules['proj']._parameters['weight'])
""", """
def f(self):
    return __compiled_fn_1(self.layers[0].norm.bias, *(layer.proj.weight for layer in self.layers[1:3]))
""", self=Model(3))

class Caches:
    def __init__(self, count):
        self.layers = [Cache() for _ in range(count)]
        for layer in self.layers:
            layer.keys, layer.values = 1, 2


case("lists_side_by_side", """
def f(self, caches):
    tmp_2 = self._modules['layers']._modules
    return __compiled_fn_1(tmp_2['0']._modules['norm']._parameters['bias'], caches.layers[0].keys,
        caches.layers[0].values, tmp_2['1']._modules['norm']._parameters['bias'], caches.layers[1].keys,
        caches.layers[1].values)
""", """
def f(self, caches):
    return __compiled_fn_1(
        *(value for layer, caches_layer in zip(self.layers, caches.layers) for value in (
            layer.norm.bias,
            caches_layer.keys, caches_layer.values,
        )),
    )
""", self=Model(2), caches=Caches(2))

case("two_elements_of_one_list_in_one_argument", """
def f(caches, x):
    return __compiled_fn_1((caches.layers[0].keys, caches.layers[1].keys), x)
""", """
def f(caches, x):
    return __compiled_fn_1((caches.layers[0].keys, caches.layers[1].keys), x)
""", caches=Caches(2), x=1)

case("lists_of_lists", """
def f(self):
    tmp_2 = self._modules
    tmp_3, tmp_4 = tmp_2['0']._modules, tmp_2['1']._modules
    return __compiled_fn_1(tmp_3['0']._parameters['bias'], tmp_3['1']._parameters['bias'],
        tmp_4['0']._parameters['bias'], tmp_4['1']._parameters['bias'])
""", """
def f(self):
    return __compiled_fn_1(*(value for layer in self for value in (*(inner_layer.bias for inner_layer in layer),)))
""", self=torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)) for _ in range(2)))

case("four_lists_side_by_side", """
def f(a, b, c, d):
    return __compiled_fn_1(a._modules['0']._parameters['weight'], b._modules['0']._parameters['weight'],
        c._modules['0']._parameters['weight'], d._modules['0']._parameters['weight'], a._modules['1']._parameters['weight'],
        b._modules['1']._parameters['weight'], c._modules['1']._parameters['weight'], d._modules['1']._parameters['weight'])
""", """
def f(a, b, c, d):
    return __compiled_fn_1(
        *(value for layer, inner_layer, inner_layer_1, inner_layer_2 in zip(a, b, c, d) for value in (
            layer.weight,
            inner_layer.weight,
            inner_layer_1.weight,
            inner_layer_2.weight,
        )),
    )
""", **{name: torch.nn.ModuleList(torch.nn.Linear(1, 1) for _ in range(2)) for name in "abcd"})

case("the_elements_of_a_list", """
def f(xs, ys):
    return __compiled_fn_1(xs[0], xs[1], xs[2], xs[3], ys[1], ys[2], ys[3], ys[4], ys[0], ys[1])
""", """
def f(xs, ys):
    return __compiled_fn_1(*xs, *ys[1:5], ys[0], ys[1])
""", xs=[1, 2, 3, 4], ys=(5, 6, 7, 8, 9))

case("the_elements_of_lists_beside_a_starred_list_of_the_program", """
def f(xs, ys):
    return __compiled_fn_1(xs[0], xs[1], xs[2], xs[3], *ys)
""", """
def f(xs, ys):
    return __compiled_fn_1(xs[0], xs[1], xs[2], xs[3], *ys)
""", xs=[1, 2, 3, 4], ys=(5, 6, 7, 8, 9))

case("a_comprehension_of_the_program", """
def f(self, x):
    tmp_1 = self._modules
    tmp_2 = [x(layer) for layer in tmp_1['layers'][0:2]]
    return tmp_2, tmp_1['head']._parameters['bias'], tmp_1['head']._parameters['weight']
""", """
def f(self, x):
    return ([x(layer) for layer in self.layers[0:2]], self.head.bias, self.head.weight)
""", self=Model(3), x=id)

case("members_read_inside_a_comprehension_of_the_program", """
def f(self):
    return {key: 1 for key in (self._modules['head']._parameters['bias'], self._modules['head']._parameters['weight'])}
""", """
def f(self):
    return {key: 1 for key in (self.head.bias, self.head.weight)}
""", self=Model())

case("what_is_stored_runs_before_where_it_is_stored", """
def f(self, x):
    tmp_1 = self._modules['head']._parameters
    tmp_2 = (tmp_1['bias'], tmp_1['weight'])
    x[tmp_1['weight']] = tmp_2
    return x
""", """
def f(self, x):
    x[self.head.weight] = (self.head.bias, self.head.weight)
    return x
""", self=Model(), x={})

case("objects_of_the_layers_beside_their_members", """
def f(self):
    set = __import_torch_dot__dynamo_dot_utils.object_setattr_ignore_descriptor
    tmp_1 = self._modules['layers']._modules
    tmp_2 = Cache.__new__(Cache)
    set(tmp_2, 'layer', tmp_1['0'])
    set(tmp_2, 'bias', 1)
    tmp_3 = Cache.__new__(Cache)
    set(tmp_3, 'layer', tmp_1['1'])
    set(tmp_3, 'bias', 1)
    return __compiled_fn_1(tmp_1['0']._modules['norm']._parameters['bias'], [tmp_2, tmp_3],
        tmp_1['1']._modules['norm']._parameters['bias'])
""", """
def f(self):
    items = [new(Cache, layer=layer, bias=1) for layer in self.layers]
    return __compiled_fn_1(self.layers[0].norm.bias, items, self.layers[1].norm.bias)
""", self=Model(2))

case("what_is_done_to_each_element", """
def f(caches):
    graph_out_0 = __compiled_fn_1()
    layers_0 = caches.layers[0]
    layers_1 = caches.layers[1]
    set = __import_torch_dot__dynamo_dot_utils.object_setattr_ignore_descriptor
    set(layers_1, 'keys', graph_out_0[3])
    set(layers_1, 'values', graph_out_0[2])
    set(layers_1, 'ready', True)
    set(layers_0, 'keys', graph_out_0[1])
    set(layers_0, 'values', graph_out_0[0])
    set(layers_0, 'ready', True)
    return caches.layers
""", """
def f(caches):
    graph_out_0 = __compiled_fn_1()
    for layer, keys, values in zip(caches.layers[1::-1], graph_out_0[3::-2], graph_out_0[2::-2]):
        layer.keys = keys
        layer.values = values
        layer.ready = True
    return caches.layers
""", caches=Caches(2))

case("buffers_of_the_layers_are_stored", """
def f(self):
    graph_out_0 = __compiled_fn_1()
    update_0 = self._modules['norms']._modules['0']._buffers.update
    update_1 = self._modules['norms']._modules['1']._buffers.update
    means = self.means.update
    means({'mean': graph_out_0[3]})
    update_1({'running_mean': graph_out_0[2], 'running_var': graph_out_0[3]})
    update_0({'running_mean': graph_out_0[0], 'running_var': graph_out_0[1]})
    return graph_out_0[3]
""", """
def f(self):
    graph_out_0 = __compiled_fn_1()
    self.means.update({'mean': graph_out_0[3]})
    for norm, running_mean, running_var in zip(self.norms[1::-1], graph_out_0[2::-2], graph_out_0[3::-2]):
        norm.running_mean = running_mean
        norm.running_var = running_var
    return graph_out_0[3]
""", self=Statistics())

case("a_buffer_is_stored_between_other_changes", """
def f(self, cache):
    graph_out_0 = __compiled_fn_1()
    update = self._modules['norms']._modules['0']._buffers.update
    cache.count = graph_out_0[1]
    update({'running_mean': graph_out_0[0]})
    cache.last = None
    return graph_out_0[2]
""", """
def f(self, cache):
    graph_out_0 = __compiled_fn_1()
    cache.count = graph_out_0[1]
    self.norms[0].running_mean = graph_out_0[0]
    cache.last = None
    return graph_out_0[2]
""", self=Statistics(), cache=Cache())

case("a_module_that_watches_its_attributes_is_updated", """
def f(self):
    self._buffers.update({'mean': __compiled_fn_1()[0]})
""", """
def f(self):
    self._buffers.update({'mean': __compiled_fn_1()[0]})
""", self=Watching())

case("what_is_called_for_a_resume_function_has_a_line_of_its_own", """
def f(x):
    graph_out_0 = __compiled_fn_1(x)
    return __resume_at_30_1([], [], print('step', 2), graph_out_0[0])
""", """
def f(x):
    graph_out_0 = __compiled_fn_1(x)
    print_result = print('step', 2)
    return __resume_at_30_1([], [], print_result, graph_out_0[0])
""", x=1)

case("what_is_read_before_a_call_for_a_resume_function_stays_before_it", """
def f(picky, x):
    return __resume_at_30_1(x.real, print('step', 2))
""", """
def f(picky, x):
    return __resume_at_30_1(x.real, print('step', 2))
""", picky=Picky(), x=1)

case("elements_are_named_with_whom_they_are_of", """
def f(kwargs, x):
    tmp_1 = kwargs['cache'].layers[0]
    tmp_2 = kwargs['cache'].layers[1]
    x()
    return tmp_1, tmp_2, tmp_1
""", """
def f(kwargs, x):
    cache_layers_0 = kwargs['cache'].layers[0]
    cache_layers_1 = kwargs['cache'].layers[1]
    x()
    return (cache_layers_0, cache_layers_1, cache_layers_0)
""", kwargs={"cache": Caches(2)}, x=int)

case("keywords_of_a_dictionary_of_the_program", """
def f(options, x):
    return __compiled_fn_1(x, b=x, **options, **dict(options, a=x))
""", """
def f(options, x):
    return __compiled_fn_1(x, b=x, **options, **dict(options, a=x))
""", options={}, x=1)

case("a_dictionary_of_the_program_with_another_in_it", """
def f(options, x):
    tmp_1 = {'a': x, **options}
    return __compiled_fn_1([*x, 1, *x], tmp_1, {*x, 1})
""", """
def f(options, x):
    value = {'a': x, **options}
    return __compiled_fn_1([*x, 1, *x], value, {*x, 1})
""", options={}, x=(1, 2))

case("a_dictionary_of_modules", """
def f(self):
    return __compiled_fn_1(self._modules['a-b']._parameters['weight'], self._modules['c']._parameters['weight'])
""", """
def f(self):
    return __compiled_fn_1(self['a-b'].weight, self.c.weight)
""", self=torch.nn.ModuleDict({"a-b": torch.nn.Linear(1, 1), "c": torch.nn.Linear(1, 1)}))

case("a_list_of_parameters", """
def f(self):
    return __compiled_fn_1(self._parameters['0'], self._parameters['1'])
""", """
def f(self):
    return __compiled_fn_1(self[0], self[1])
""", self=torch.nn.ParameterList([torch.ones(1), torch.zeros(1)]))

odd = Layer()
odd.add_module("7", torch.nn.Linear(1, 1))
case("a_name_that_is_no_name", """
def f(self):
    return __compiled_fn_1(self._modules['7']._parameters['bias'])
""", """
def f(self):
    return __compiled_fn_1(self._modules['7'].bias)
""", self=odd)

case("a_shadowed_parameter_stays_as_torch_reads_it", """
def f(self):
    return __compiled_fn_1(self._parameters['weight'])
""", """
def f(self):
    return __compiled_fn_1(self._parameters['weight'])
""", self=Shadowed())

case("the_dictionary_of_an_instance", """
def f(self):
    return __compiled_fn_1(self.__dict__['_modules']['head']._parameters['bias'])
""", """
def f(self):
    return __compiled_fn_1(self.head.bias)
""", self=Model())

case("an_object_made_again", """
def f():
    graph_out_0 = __compiled_fn_1()
    tmp_1 = Cache.__new__(Cache)
    set = __import_torch_dot__dynamo_dot_utils.object_setattr_ignore_descriptor
    tmp_2 = [tmp_1]
    set(tmp_1, 'keys', graph_out_0[1])
    set(tmp_1, 'values', graph_out_0[0])
    del graph_out_0
    return tmp_2
""", """
def f():
    graph_out_0 = __compiled_fn_1()
    return [new(Cache, keys=graph_out_0[1], values=graph_out_0[0])]
""")

case("objects_that_differ_in_their_values", """
def f():
    graph_out_0 = __compiled_fn_1()
    tmp_1 = Cache.__new__(Cache)
    tmp_2 = Cache.__new__(Cache)
    set = __import_torch_dot__dynamo_dot_utils.object_setattr_ignore_descriptor
    set(tmp_2, 'keys', graph_out_0[3])
    set(tmp_2, 'values', graph_out_0[2])
    set(tmp_2, 'ready', True)
    set(tmp_1, 'keys', graph_out_0[1])
    set(tmp_1, 'values', graph_out_0[0])
    set(tmp_1, 'ready', True)
    return [tmp_1, tmp_2]
""", """
def f():
    graph_out_0 = __compiled_fn_1()
    return [
        new(Cache, keys=keys, values=values, ready=True)
        for keys, values in zip(graph_out_0[1:4:2], graph_out_0[0:3:2])
    ]
""")

case("an_object_that_is_a_dictionary", """
def f():
    graph_out_0 = __compiled_fn_1()
    tmp_1 = Output.__new__(Output)
    dict_from = OrderedDict({'logits': graph_out_0[0], 'loss': None})
    dict_class = type(tmp_1).__mro__[1]
    dict_class.clear(tmp_1)
    for k, v in dict_from.items():
        dict_class.__setitem__(tmp_1, k, v)
    __import_torch_dot__dynamo_dot_utils.object_setattr_ignore_descriptor(tmp_1, 'logits', graph_out_0[0])
    return tmp_1
""", """
def f():
    graph_out_0 = __compiled_fn_1()
    return new(Output, {'logits': graph_out_0[0], 'loss': None}, logits=graph_out_0[0])
""")

case("an_attribute_of_an_object_of_the_users", """
def f(cache, picky):
    graph_out_0 = __compiled_fn_1()
    set = __import_torch_dot__dynamo_dot_utils.object_setattr_ignore_descriptor
    set(cache, 'keys', graph_out_0[0])
    set(picky, 'size', 3)
""", """
def f(cache, picky):
    cache.keys = __compiled_fn_1()[0]
    vars(picky)['size'] = 3
""", cache=Cache(), picky=Picky())

case("a_result_of_a_graph_that_has_no_name_of_its_own", """
def f(x):
    graph_out_0 = __compiled_fn_1()
    tmp_1 = graph_out_0[1]
    if graph_out_0[0]:
        return (tmp_1, x)
    return tmp_1
""", """
def f(x):
    graph_out_0 = __compiled_fn_1()
    if graph_out_0[0]:
        return (graph_out_0[1], x)
    return graph_out_0[1]
""", x=1)

case("a_graph_runs_before_what_comes_after_it", """
def f(x):
    graph_out_0 = __compiled_fn_1()
    tmp_1 = print(x)
    tmp_2 = graph_out_0[0]
    return (tmp_1, x, tmp_2)
""", """
def f(x):
    graph_out_0 = __compiled_fn_1()
    print_result = print(x)
    return (print_result, x, graph_out_0[0])
""", x=1)

case("what_is_imported_by_dynamo", """
def f(x):
    return __compiled_fn_1(__import_torch_dot__dynamo_dot_utils.istype(x, 0))
""", """
def f(x):
    from torch._dynamo.utils import istype
    return __compiled_fn_1(istype(x, 0))
""", x=torch.ones(3))

case("sizes", """
def f(**kwargs):
    tmp_1 = kwargs['x']
    return __compiled_fn_1(__import_torch_dot__dynamo_dot_utils.call_size(tmp_1, 0), tmp_1)
""", """
def f(**kwargs):
    return __compiled_fn_1(kwargs['x'].size(0), kwargs['x'])
""", kwargs={"x": torch.ones(3)})

case("sizes_of_several_arguments_between_members", """
def f(self, xs):
    x, y = xs['a'], xs['b']
    size = __import_torch_dot__dynamo_dot_utils.call_size
    tmp_1, tmp_2, tmp_3 = size(x, 0), size(y, 0), size(y, 1)
    return __compiled_fn_1(tmp_1, x, self._modules['head']._parameters['bias'], tmp_2, tmp_3, y,
        self._modules['layers']._modules['0']._modules['norm']._parameters['bias'])
""", """
def f(self, xs):
    return __compiled_fn_1(
        xs['a'].size(0), xs['a'],
        self.head.bias,
        xs['b'].size(0), xs['b'].size(1), xs['b'],
        self.layers[0].norm.bias,
    )
""", self=Model(), xs={"a": torch.ones(3), "b": torch.ones(3, 4)})

case("a_size_that_is_used_twice", """
def f(x, y):
    tmp_1 = __import_torch_dot__dynamo_dot_utils.call_size(x, 0)
    return __compiled_fn_1(tmp_1, y), tmp_1
""", """
def f(x, y):
    x_size = x.size(0)
    return (__compiled_fn_1(x_size, y), x_size)
""", x=torch.ones(3), y=1)

case("a_size_of_an_argument", """
def f(x):
    return __compiled_fn_1(__import_torch_dot__dynamo_dot_utils.call_size(x, 0))
""", """
def f(x):
    return __compiled_fn_1(x.size(0))
""", x=torch.ones(3))

case("a_read_is_not_moved_behind_what_could_change_it", """
def f(self, cache):
    tmp_1 = cache.count
    set = __import_torch_dot__dynamo_dot_utils.object_setattr_ignore_descriptor
    set(cache, 'count', 2)
    return tmp_1
""", """
def f(self, cache):
    count = cache.count
    cache.count = 2
    return count
""", self=Model(), cache=Counting())


for name, key in {"tuple": "(1, 'k')", "size": "(graph_out_0[0][1], 'k')", "object": "tuple"}.items():
    case(f"a_dictionary_is_filled_under_a_key_of_type_{name}", f"""
def f(self, kept):
    tmp_1 = self._modules['norms']._modules['0']._parameters
    graph_out_0 = __compiled_fn_1(tmp_1['weight'], tmp_1['bias'])
    update = kept.counts.update
    update({{{key}: graph_out_0[1]}})
    return [graph_out_0[0]]
""", f"""
def f(self, kept):
    graph_out_0 = __compiled_fn_1(self.norms[0].weight, self.norms[0].bias)
    kept.counts.update({{{key}: graph_out_0[1]}})
    return [graph_out_0[0]]
""", self=Statistics(), kept=Kept())

case("a_read_behind_the_hash_of_a_key_is_made_there", """
def f(self, key):
    d = {key: 1}
    return d, self._modules['norms']._modules['0']._parameters['weight']
""", """
def f(self, key):
    return ({key: 1}, self.norms[0].weight)
""", self=Statistics(), key=(1, 2))


def module_globals(**more):
    import torch._dynamo.utils as utils
    return {"__import_torch_dot__dynamo_dot_utils": utils, "__compiled_fn_1": compiled, "__resume_at_30_1": compiled, "Cache": Cache,
            "Output": Output, "OrderedDict": collections.OrderedDict, **more}


def function(source, globals):
    scope = dict(globals)
    exec(compile(source, "case.py", "exec"), scope)
    return scope["f"]


def described(value):
    """What a value holds, so that two that were made alike are equal."""
    if isinstance(value, (list, tuple)):
        return [described(item) for item in value]
    if isinstance(value, (Cache, Output)):
        own = list(value.items()) if isinstance(value, dict) else []
        return type(value).__name__, own, list(vars(value).items())
    return value.data_ptr() if isinstance(value, torch.Tensor) else value


def copies(live):
    """The arguments for one call, which may change them."""
    return [copy.copy(value) if isinstance(value, (Cache, Counting, Picky)) else value for value in live.values()]


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    source, expected, live = CASES[name]
    globals = module_globals()
    code = function(source, globals).__code__
    found = decompile_code(code, simplify=True, facts=Facts(snapshot(code, live, globals)))
    of_live = decompile_code(code, simplify=True, facts=LiveFacts(live, globals))
    assert (found.text, found.note) == (of_live.text, of_live.note), "what is recorded says what the objects say"
    assert found.text == expected.lstrip()
    assert found.fidelity in (Fidelity.EQUIVALENT, Fidelity.EXACT)
    running = function(ast.fix_missing_locations(found.runs), globals)
    if list(live) == ["kwargs"]:
        assert described(running(**live["kwargs"])) == described(function(source, globals)(**live["kwargs"]))
        return
    assert described(running(*copies(live))) == described(function(source, globals)(*copies(live)))


def with_slices(source):
    """The function, with ``slice(None, None, None)`` for the constant ``":"`` and ``slice(1, 3, None)`` for ``"1:3"``."""
    made = function(source, module_globals())
    slices = {":": slice(None), "1:3": slice(1, 3)}
    constants = tuple(slices.get(value, value) if isinstance(value, str) else value for value in made.__code__.co_consts)
    return made.__code__.replace(co_consts=constants)


@pytest.mark.parametrize(("source", "shown"), [
    ("tmp = [':', keep]\n    return x[tmp[0], tmp[1]]", "x[:, keep]"),
    ("tmp = [':', keep, '1:3']\n    return x[tmp[0], tmp[2]][tmp[0], tmp[1]]", "x[:, 1:3][:, keep]"),
    ("tmp = [':', keep]\n    return x[tmp[0], tmp[1]], tmp[0]", "(x[__constant_0_slice, keep], __constant_0_slice)"),
    ("tmp = [':', keep]\n    return x[tmp[0], tmp[1]], x[:, 0]", "(x[__constant_0_slice, keep], x[:, 0])"),
], ids=["mask", "two slices", "used otherwise", "of the program, too"])
def test_slices_among_constants(source, shown):
    code = with_slices(f"def f(x, keep):\n    {source}\n")
    x, keep = torch.rand(4, 5), torch.tensor([True, False, True, False, False])[: 2 if "'1:3'" in source else 5]
    found = decompile_code(code, simplify=True, facts=LiveFacts({"x": x, "keep": keep}, module_globals()))
    assert found.text == f"def f(x, keep):\n    return {shown}\n"
    assert found.fidelity is Fidelity.EQUIVALENT
    assert ("__constant_0_slice stands for" in found.note) == ("__constant_0_slice" in shown)
    scope = {f"__constant_{number}_slice": value for number, value in enumerate((slice(None), slice(1, 3)))}
    running = function(ast.fix_missing_locations(found.runs), module_globals(**scope))
    made = types.FunctionType(code, module_globals())
    assert str(running(x, keep)) == str(made(x, keep))


Pair = collections.namedtuple("Pair", "a b")


def with_constant(value):
    """The code of a function that calls the constant with ``(x, 2)``."""
    made = function("def f(x):\n    tmp_1 = 'constant'\n    return tmp_1((x, 2))\n", module_globals())
    constants = tuple(value if each == "constant" else each for each in made.__code__.co_consts)
    return made.__code__.replace(co_consts=constants)


def test_what_a_method_among_the_constants_gives_is_a_result():
    """The constant's own name says nothing, least where the text has the class in its place."""
    made = function("def f(x):\n    tmp_1 = 'constant'((x, 2))\n    tmp_2 = x.size\n    return (tmp_1, tmp_2(), tmp_1)\n",
                    module_globals())
    constants = tuple(Pair._make if each == "constant" else each for each in made.__code__.co_consts)
    code = made.__code__.replace(co_consts=constants)
    found = decompile_code(code, simplify=True, facts=LiveFacts({"x": torch.ones(1)}, {"Pair": Pair}))
    assert "    result = Pair._make((x, 2))\n" in found.text


def local_pair():
    return collections.namedtuple("Local", "a b")


@pytest.mark.parametrize(("value", "globals", "lines", "note"), [
    (Pair._make, {"Pair": Pair}, ["return Pair._make((x, 2))"], "if no global name is rebound meanwhile"),
    (Pair._make, {}, [f"from {__name__} import Pair", "return Pair._make((x, 2))"],
     "if no global name is rebound meanwhile"),
    (Pair._make, {"Pair": Cache}, [f"from {__name__} import Pair", "return Pair._make((x, 2))"],
     "if no global name is rebound meanwhile"),
    (Cache, {"Cache": Cache}, ["return Cache((x, 2))"], "if no global name is rebound meanwhile"),
    (type(torch.max(torch.ones(1, 1), 0)), {}, ["return torch.return_types.max((x, 2))"], ""),
    (local_pair()._make, {}, ["return __constant_0_method((x, 2))"],
     "__constant_0_method stands for the method _make of the class Local, a constant that source cannot say"),
    (Counting().__init__, {}, ["return __constant_0_method((x, 2))"],
     "__constant_0_method stands for the method __init__ of an object of type Counting, a constant that source cannot say"),
], ids=["a global", "imported", "the global is another", "a class", "of torch's", "local", "of an object"])
def test_classes_and_their_methods_among_constants(value, globals, lines, note, monkeypatch):
    monkeypatch.setitem(sys.modules, __name__, types.ModuleType(__name__))
    vars(sys.modules[__name__]).update(Pair=Pair, Cache=Cache)
    code = with_constant(value)
    found = decompile_code(code, simplify=True, facts=Facts(snapshot(code, {"x": 1}, globals)))
    assert found.text.splitlines()[1:] == [f"    {line}" for line in lines]
    assert found.fidelity in (Fidelity.EQUIVALENT, Fidelity.EXACT)
    assert note in found.note
    assert ("stands for" in found.note) == ("__constant_" in found.text)
    assert "import" not in ast.unparse(found.runs)
    recorded = unpacked(packed(code), sys.version_info[:2])
    assert decompile_code(recorded, simplify=True, facts=Facts(snapshot(code, {"x": 1}, globals))).text == found.text


def test_a_shadowed_parameter_is_named_with_the_reason():
    source, _, live = CASES["a_shadowed_parameter_stays_as_torch_reads_it"]
    found = decompile_code(function(source, module_globals()).__code__, simplify=True,
                           facts=LiveFacts(live, module_globals()))
    assert ("written in torch's long form: self._parameters['weight'] (Shadowed.weight is an attribute of the class)"
            in found.note)


def test_a_text_that_is_not_proven_in_the_users_words_says_so(monkeypatch):
    def fails(*args):
        raise CannotDecompile(SIMPLIFY, "as this test has it")

    monkeypatch.setattr("depyf.decompiler.dynamo.simplify._Simplifier._inline_graph_items", fails)
    source = "def f(self):\n    tmp_1 = [self]\n    return tmp_1[0]._modules['head']._parameters['bias']"
    found = decompile_code(function(source, module_globals()).__code__, simplify=True,
                           facts=LiveFacts({"self": Model()}, module_globals()))
    assert "return self._modules['head']._parameters['bias']" in found.text
    assert "all is written in torch's long form: a shorter text was not proven (" in found.note
    assert "as this test has it" in found.note


@pytest.mark.parametrize("source", [
    "def f(self):\n    return __compiled_fn_1(self.head.weight)",
    "def f(self):\n    return __compiled_fn_1(self._modules['head']._parameters['bias'], 1)",
    "def f(self):\n    return __compiled_fn_1(self._modules['layers']._modules['0']._parameters['bias'])",
])
def test_another_member_is_not_the_same(source):
    """The proof tells members of modules apart, however they are read."""
    from depyf.bytecode.code import Code
    from depyf.decompiler.proof.equivalence import equivalent

    live, globals = {"self": Model()}, module_globals()
    one = function("def f(self):\n    return __compiled_fn_1(self._modules['head']._parameters['bias'])", globals)
    same = function("def f(self):\n    return __compiled_fn_1(self.head.bias)", globals)
    other = function(source, globals)
    facts = LiveFacts(live, globals)
    assert equivalent(Code.of(one.__code__), Code.of(same.__code__), facts=facts)
    assert not equivalent(Code.of(one.__code__), Code.of(other.__code__), facts=facts)


STORED = """
def f(self, x, d):
    norm = self._modules['norms']._modules['0']
    update = norm._buffers.update
    weight, mean = norm._parameters['weight'], norm._buffers['running_mean']
    d.update({%r: x})
    update({'running_mean': x, 'running_var': 1})
    return __compiled_fn_1(weight, mean)
"""
READ = """
def f(self, x, d):
    %s
    d[%r] = x
    self.norms[0]._buffers['running_mean'] = x
    self.norms[0]._buffers['running_var'] = %d
    return __compiled_fn_1(%s, %s)
"""


@pytest.mark.parametrize(("before", "key", "number", "weight", "mean", "same"), [
    ("mean = self.norms[0].running_mean", "k", 1, "self.norms[0].weight", "mean", True),
    ("mean = self.norms[0].running_mean", "k", 2, "self.norms[0].weight", "mean", False),
    ("pass", "k", 1, "self.norms[0].weight", "self.norms[0].running_mean", False),  # another buffer by then
    ("mean = self.norms[0].running_mean", "weight", 1, "self.norms[0].weight", "mean", False),  # what ``d`` is, who knows
])
def test_what_is_stored_is_not_read_afterwards(before, key, number, weight, mean, same):
    """The proof lets reads of submodules and parameters pass entries of other names, and reads of buffers none."""
    from depyf.bytecode.code import Code
    from depyf.decompiler.proof.equivalence import equivalent

    live, globals = {"self": Statistics(), "x": 1, "d": {}}, module_globals()
    one, other = function(STORED % key, globals), function(READ % (before, key, number, weight, mean), globals)
    assert bool(equivalent(Code.of(one.__code__), Code.of(other.__code__), facts=LiveFacts(live, globals))) is same


@pytest.mark.parametrize(("source", "same"), [
    ("def f(x, d):\n    e = {'a': x, 'b': 1}\n    d['a'] = x\n    d['b'] = 1\n    return e", True),
    ("def f(x, d):\n    d['a'] = x\n    d['b'] = 1\n    return {'b': 1}", False),
    ("def f(x, d):\n    d['a'] = x\n    d['b'] = True\n    return {'a': x, 'b': 1}", False),
    ("def f(x, d):\n    d['b'] = 1\n    d['a'] = x\n    return {'a': x, 'b': 1}", False),  # another order
    ("def f(x, d):\n    d['a'] = x\n    return {'a': x, 'b': 1}", False),
])
def test_an_update_makes_each_entry_and_leaves_what_it_takes(source, same):
    from depyf.bytecode.code import Code
    from depyf.decompiler.proof.equivalence import equivalent

    globals = module_globals()
    one = function("def f(x, d):\n    e = {'a': x, 'b': 1}\n    d.update(e)\n    return e", globals)
    facts = LiveFacts({"x": 1, "d": {}}, globals)
    assert bool(equivalent(Code.of(one.__code__), Code.of(function(source, globals).__code__), facts=facts)) is same


@pytest.mark.parametrize(("source", "same"), [
    ("def f(x):\n    put = object.__setattr__\n    a = Cache.__new__(Cache)\n    put(a, 'k', x)\n    put(a, 'v', 1)\n    return a", True),
    ("def f(x):\n    put = object.__setattr__\n    a = Cache.__new__(Cache)\n    put(a, 'v', 1)\n    put(a, 'k', x)\n    return a", False),  # another order
    ("def f(x):\n    put = object.__setattr__\n    a = Cache.__new__(Cache)\n    put(a, 'k', x)\n    return a", False),
    ("def f(x):\n    put = object.__setattr__\n    a = Cache.__new__(Cache)\n    put(a, 'k', x)\n    put(a, 'v', 2)\n    return a", False),
    ("def f(x):\n    put = object.__setattr__\n    a = Output.__new__(Output)\n    put(a, 'k', x)\n    put(a, 'v', 1)\n    return a", False),
    ("def f(x):\n    put = object.__setattr__\n    a = Cache.__new__(Cache)\n    print(a)\n    put(a, 'k', x)\n    put(a, 'v', 1)\n    return a", False),
])
def test_objects_are_compared_by_what_they_hold_when_others_see_them(source, same):
    from depyf.bytecode.code import Code
    from depyf.decompiler.proof.equivalence import equivalent

    globals = module_globals()
    one = function("def f(x):\n    a = Cache.__new__(Cache)\n    object.__setattr__(a, 'k', x)\n"
                   "    object.__setattr__(a, 'v', 1)\n    return a", globals)
    facts = LiveFacts({}, globals)
    assert bool(equivalent(Code.of(one.__code__), Code.of(function(source, globals).__code__), facts=facts)) is same


def test_facts_run_no_code_of_the_users():
    class Trap:
        def __getattribute__(self, name):
            raise AssertionError(name)

    class Asked:
        def __init__(self):
            self.__dict__["kept"] = 1

        def __getattr__(self, name):
            raise AssertionError(name)

    facts = LiveFacts({"trap": Trap(), "asked": Asked()}, {})
    for path in ((("local", "trap"), ("attr", "x")), (("local", "asked"), ("attr", "x")),
                 (("local", "asked"), ("item", 0)), (("local", "nothing"),)):
        assert facts.reading(path) == ""
    assert facts.reading((("local", "asked"), ("attr", "kept"))) == "plain"
    assert not facts.stores_plainly((("local", "asked"),), "x", True)


def test_nothing_live_is_kept():
    """Neither by the result nor in a cycle that waits for the garbage collector."""
    source, _, _ = CASES["module_reads"]
    module = Model()
    watched = weakref.ref(module)
    gc.disable()
    try:
        found = decompile_code(function(source, module_globals()).__code__, simplify=True,
                               facts=LiveFacts({"self": module}, module_globals()))
        del module
        assert watched() is None and found.runs is not None
    finally:
        gc.enable()


CPU = torch.device("cpu")


@pytest.mark.parametrize(("value", "shown"), [
    (torch.Size([2, 3]), "torch.Size([2, 3])"), (torch.Size([]), "torch.Size([])"),
    ((CPU, torch.float32), "(torch.device('cpu'), torch.float32)"),
    ((torch.device("cuda", 1), ("a", -2, None)), "(torch.device('cuda', 1), ('a', -2, None))"),
    (((torch.Size([1]),),), "((torch.Size([1]),),)"),
    ((CPU, object()), "__constant_0_tuple"), ((CPU, Cache), "__constant_0_tuple"), ((CPU, slice(1)), "__constant_0_tuple"),
    ((CPU, float("inf")), "__constant_0_tuple"),
])
def test_tuples_among_constants(value, shown):
    made = function("def f(d):\n    tmp_1 = 'constant'\n    return d[tmp_1], tmp_1\n", module_globals())
    code = made.__code__.replace(co_consts=tuple(value if each == "constant" else each for each in made.__code__.co_consts))
    found = decompile_code(code, simplify=True, facts=LiveFacts({"d": {}}, module_globals()))
    key = shown[1:-1] if shown.startswith("(") else shown
    assert found.text == f"def f(d):\n    return (d[{key}], {shown})\n"
    assert found.fidelity is Fidelity.EQUIVALENT
    assert ("stands for" in found.note) == ("__constant_" in found.text)
    assert "__constant_0_" in ast.unparse(found.runs)
    recorded = unpacked(packed(code), sys.version_info[:2])
    assert decompile_code(recorded, simplify=True, facts=LiveFacts({"d": {}}, module_globals())).text == found.text


def test_a_tuple_that_the_program_builds_is_no_constant():
    """Two dtypes among the constants, a tuple of them, and one that is built."""
    values = {"d": CPU, "t": torch.float32, "both": (CPU, torch.float32)}
    made = function("def f(x):\n    tmp_1, tmp_2 = ['d'], ['t']\n    return (tmp_1[0], tmp_2[0], 'both', (tmp_1[0], tmp_2[0]))\n",
                    module_globals())
    code = made.__code__.replace(co_consts=tuple(values.get(each, each) if isinstance(each, str) else each
                                                 for each in made.__code__.co_consts))
    found = decompile_code(code, simplify=True, facts=LiveFacts({"x": 1}, module_globals()))
    assert found.fidelity is Fidelity.EQUIVALENT and "(torch.device('cpu'), torch.float32)" in found.text
    assert "__constant_" in found.text


UNKNOWN_NEW = """
def f(cls, x):
    tmp_1 = cls.__new__
    tmp_2 = tmp_1(cls, {'a': x, 'b': x})
    __import_torch_dot__dynamo_dot_utils.object_setattr_ignore_descriptor(tmp_2, 'a', x)
    return [[tmp_2][0], tmp_1]
"""


class Picky:
    """Of a class whose `__new__` may do anything."""

    def __new__(cls, *args):
        return super().__new__(cls)


def test_a_method_called_new_is_no_form():
    found = decompile_code(function(UNKNOWN_NEW, module_globals()).__code__, simplify=True,
                           facts=LiveFacts({"cls": Picky, "x": 1}, module_globals()))
    assert found.fidelity is Fidelity.EQUIVALENT and "does not call the class" not in found.note
    assert "    new = " not in found.text and "(cls, {'a': x, 'b': x})" in found.text


def test_what_cannot_be_written_out_is_written_without_forms(monkeypatch, recwarn):
    """The simplified text, neither an error of depyf nor what stands for the compiler's sake."""
    error = CannotDecompile(SIMPLIFY, "a form that is not known")

    def refuse(*args):
        raise error

    monkeypatch.setattr(readable, "written_out", refuse)
    found = decompile_code(function(UNKNOWN_NEW, module_globals()).__code__, simplify=True,
                           facts=LiveFacts({"cls": Picky, "x": 1}, module_globals()))
    assert found.fidelity is Fidelity.EQUIVALENT and str(error) in found.note and not recwarn.list
    assert "(cls, {'a': x, 'b': x})" in found.text
    assert not any(litter in found.text for litter in (" or 0", "tmp_", "value_1", "[*"))
