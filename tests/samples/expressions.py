"""Expressions, assignments, calls, displays, f-strings, slices, imports, del."""


def assign(a, b):
    x = y = a
    a, b = b, a
    a, b, c = b, c, a
    x.y = z = a[0] = b
    (p, q), r = a
    p, *q = b
    [p, q] = r
    return x, y, c, p, q, r, z


def augmented(a, b):
    a += 1
    a.b -= b
    a[b] *= 2
    a[b:] //= 3
    a.c[b.d] @= b
    return a


def calls(f, a, b):
    f()
    f(a, b=b)
    f(*a, **b)
    f(a, *b, c=1, **a, d=2)
    a.b.c(1)(2)
    return f(f(a), f(b))


def displays(a, b):
    return [a, b], (a, *b), {a, b}, {a: b, **b}, [1, 2, 3], {1, 2, 3}, {"a": 1, "b": 2, "c": a}, ()


def slices(a, b, c):
    return a[b:c], a[:], a[::2], a[b, 1:2], a[-1], a[b:c:2]


def strings(a, b):
    return f"{a}", f"{a!r} and {b:>10} and {b:{a}.3f}", f"{{}}{a}", "%s" % a, f"{a}{b}" "x"


def numbers():
    return -1, 1.5, 1e300 * 1e10, 2j, -2j, 1 + 2j, True, None, ..., b"x", "y\n'\"", 10**20


def operators(a, b):
    return a + b, a - b, a**b, -a, +a, ~a, not a, a @ b, a << b, a >> b, a & b, a | b, a ^ b, a // b, a % b, a / b


def compares(a, b):
    return a == b, a != b, a is b, a is not None, a in b, a not in b, a <= b


def imports():
    import os
    import os.path as p
    import xml.dom.minidom as m
    import a.b
    from . import c
    from ..d import e as f, g
    return os, p, m, a, c, f, g


def deletes(a, b):
    del a, b.c, b[0]


def comprehensions(a, b):
    return (
        [x for x in a], {x for y in a for x in y if x if y}, {k: v for k, v in a.items() if v and k},
        list(x + b for x in a), [[y for y in x if b] for x in a], [x if x else b for x in a],
    )


def lambdas(a):
    return (lambda: 1), (lambda x, y=a, *z, **w: x + y), (lambda x: x if x else a), (lambda x: x and a)


def percent_formats_that_stay(a, b):
    x = f"%s.%s" % (a, b)  # noqa: F541
    y = "%d %s" % (a, b)
    return x, y, "%s" % a, f"{{%s}}%%" % (a,)


def keyword_arguments_that_are_no_names(f, a):
    return f(**a, **{"__debug__": 1}), f(**a, **{"\ufb01": 2}), f(**a, **{"if": 3}, b=4)


def a_dictionary_unpacked_into_another(a, b, c):
    """(cfnlint's ``Template.is_resource_available``: ``{a: False, **b}`` is another program.)"""
    return [{**{a: False}, **b}], {**b, **{a: 1, c: 2}}, {a: 1, **{b: 2}, c: 3}, {**b, a: 1, c: 2}


def many_keywords_of_which_the_last_is_chosen(f, a, b):
    """(dateutil's ``relativedelta.__add__``: so many keywords are a dictionary.)"""
    return f(
        a, k0=a, k1=a, k2=a, k3=a, k4=a, k5=a, k6=a, k7=a, k8=a, k9=a, k10=a, k11=a, k12=a, k13=a, k14=a, k15=a,
        k16=a, k17=a, k18=a, k19=a, k20=a, k21=a, k22=a, k23=a, k24=a, k25=a, k26=a, k27=a, k28=a, k29=a or b,
        k30=(a.x if a.x
             is not None else
             b.x))
