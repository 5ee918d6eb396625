"""Lists, dicts, sets and deques that are read and written."""

import collections

import torch

from .registry import program


@program
def list_methods(compiled):
    """``append``, ``insert``, ``pop``, ``extend``, ``remove``, ``reverse``, slices; a break in the middle."""
    @compiled
    def f(x, items):
        items.append(x)
        items.insert(0, x + 1)
        items.extend([1, 2, 3])
        last = items.pop()
        print(len(items))
        items.reverse()
        items.remove(2)
        items[1:2] = [last, None]
        del items[0]
        return x * last
    items = [5]
    return f(torch.ones(3), items), items


@program
def dict_methods(compiled):
    """``setdefault``, ``pop``, ``update``, ``|``, ``del``, ``in`` and the order of keys."""
    @compiled
    def f(x, d):
        d.setdefault("list", []).append(x)
        d.update(b=2, c=x + 1)
        first = d.pop("a")
        print(list(d))
        d["a"] = first + ("c" in d)
        del d["b"]
        merged = d | {"z": 26}
        return x + first, list(merged), d.get("none")
    d = {"a": 1, "q": 0}
    return f(torch.ones(3), d), d


@program
def dict_views(compiled):
    """Views of a dict: iterated, and used after a break when the dict has grown."""
    @compiled
    def f(x, d):
        keys = d.keys()
        y = x + sum(d.values())
        torch._dynamo.graph_break()
        d["new"] = 9
        return y, list(keys), [k * v for k, v in d.items()]
    d = {"a": 1, "b": 2}
    return f(torch.ones(3), d), d


@program
def sets(compiled):
    """Sets are built, changed and compared across a break."""
    @compiled
    def f(x, s):
        s.add(4)
        s.discard(1)
        both = s & {2, 4, 6} | frozenset([9])
        print(sorted(both))
        return x + len(both), both - s, {4} <= s, 9 in both
    s = {1, 2, 3}
    return f(torch.ones(3), s), s


@program
def deque_and_defaultdict(compiled):
    """``deque(maxlen)``, ``defaultdict`` and ``OrderedDict``."""
    @compiled
    def f(x, queue, groups):
        queue.append(x + 1)
        queue.appendleft(x - 1)
        groups["a"].append(2)
        torch._dynamo.graph_break()
        groups["b"].append(x)
        ordered = collections.OrderedDict(p=1, q=2)
        ordered.move_to_end("p")
        return queue.popleft() + len(groups), list(ordered)
    queue, groups = collections.deque([0, 1], maxlen=3), collections.defaultdict(list)
    return f(torch.ones(3), queue, groups), list(queue), dict(groups)


@program
def nested_containers(compiled):
    """Containers in containers are changed at all depths."""
    @compiled
    def f(tree):
        tree["a"][0]["b"] = (tree["x"] + 1, [tree["x"]])
        tree["a"].append({"c": tree["a"][0]["b"][1]})
        print(sorted(tree))
        tree["a"][1]["c"].append(3)
        return tree["x"] * 2
    tree = {"a": [{}], "x": torch.ones(3)}
    return f(tree), tree, tree["a"][0]["b"][1] is tree["a"][1]["c"]


@program
def starred_unpacking(compiled):
    """Starred and nested unpacking of tuples, of a tensor and of a split."""
    @compiled
    def f(x, items):
        first, *middle, (a, b) = items
        p, q = x
        print(first, middle, a)
        left, *others = torch.split(q, 1)
        return p + left, others, [*middle, b], {"n": a, **dict(m=b)}
    return f(torch.arange(6.0).view(2, 3), [1, 2, 3, (4, 5)])


@program
def slices(compiled):
    """Slice objects, steps, ``None`` and ``...`` in indexing of tensors, lists and strings."""
    @compiled
    def f(x, s):
        even = slice(None, None, 2)
        y = x[even, ..., None]
        print(s[::-1], s[even])
        return y + x[1:, None, :1].sum(), x[-1, 1:-1], [1, 2, 3, 4][even]
    return f(torch.arange(12.0).view(3, 4), "abcd")


@program
def list_of_tensors_in_graph(compiled):
    """``stack``/``cat``/``unbind`` over a list built in a loop, guarded by its length."""
    @compiled
    def f(xs):
        parts = []
        for i, x in enumerate(xs):
            parts += [x * i, x]
        whole = torch.cat(parts)
        torch._dynamo.graph_break()
        return whole, torch.stack(xs).unbind(1)
    xs = [torch.ones(2), torch.zeros(2)]
    return f(xs), f([*xs, torch.full((2,), 3.0)])
