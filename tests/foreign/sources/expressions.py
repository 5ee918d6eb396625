"""What 3.7 and 3.8 evaluate in one go (stars), in another order, or with other instructions."""


def stars(a, b, c):
    return [*a, b, *c], (*a, b), {*a, b, *c}, {"x": 1, **a, "y": b, **c}, [1, 2, *a], (*a, *b), {**a}


def star_calls(f, a, b, k):
    f(*a)
    f(*a, b)
    f(1, *a, 2, *b)
    f(**k)
    f(x=a, **k)
    f(*a, y=1, **k)
    f(a, *b, x=1, y=2, **k, **a)
    return f((*a, b), *b)


class Derived(*(object,), metaclass=type, **{}):
    def method(self, *args, key=1, **rest):
        return super().method(*args, key=key, **rest)


def comprehensions(a, b):
    return [x for x in a if x], {x for x in a for y in x}, {k: v for k, v in b}, (x for x in b if x not in a)


def comparisons(a, b, c):
    return a < b < c, a is b, a is not None, a in b, a not in b, not a == b


def texts(a, b):
    return f"{a!r:>{b}} and {b:x}", f"{a}", "%s" % a


def calls(a, b):
    a.b(1).c(x=b)
    a.b(x=1)
    return a(1, *[b]) or a.b


def slices(a, i, j):
    a[i:j] += a[::2]
    a[i, j:] = a[:-1]
    del a[i:]
    a[i] = a[j] = i = j
    return a


def annotated(a: int, *, b: "str" = 1) -> str:
    c: int = a
    return b


count: int = 1


def decide(a, b, c):
    if a and (b or not c):
        return a if b else c
    while a or b:
        a, b = b, a
    x = a and b or c
    return lambda y=x: (yield y)
