"""Conditions: if, elif, boolean operators, chained comparisons, ternaries, assert, walrus."""


def if_else(a):
    if a:
        return 1
    else:
        b = 2
    return b


def elif_chain(a):
    if a == 1:
        x = "one"
    elif a == 2:
        x = "two"
    elif a > 3:
        x = "more"
    else:
        x = "other"
    return x


def nested(a, b, c):
    if a:
        if b:
            c()
        else:
            return b
    elif c:
        b()
    return a


def and_or_condition(a, b, c, d):
    if (a and b) or (c and not d):
        return 1
    while a or not b and c:
        d()


def not_in(a, b, c):
    if a not in b and not c:
        return 1
    if a in b and not (c or a is None):
        return 2


def and_or_value(a, b, c, d):
    x = a and b or c
    y = a or b and c
    return (a or b) and (c or d), x, y


def chained(a, b, c):
    if 0 <= a < b != c:
        return 1
    if not 0 <= a < b:
        return 2
    return a < b < c


def ternary(a, b, c):
    x = f(a, b if c else a, 1)
    return g(a if b else c, x) if c and a else h(b)


def ternary_condition(a, b, c):
    if (a if b else c):
        return 1


def asserts(a, b):
    assert a
    assert a and b, "message"
    assert not a, f"{b}"


def walrus(a):
    if (n := len(a)) > 3 and (m := n + 1):
        return n, m
    return [y for x in a if (y := x + 1)]


def parts_on_other_lines(self, tx):
    first = (
        self.get() in tx
        or isinstance(self, tx)
    ) and can(tx)
    second = lambda x: (
        x.a
        and x.b
    ) or x.c
    third = (self.a or self.b) and tx
    return (
        first and
        second
    ) or third


def none_or_not_in(cls, names):
    for name in cls:
        if isinstance(name, property):
            if name.fget is not None or name not in names:
                names.add(name)
            else:
                names.discard(name)
        elif name not in names:
            names.add(name)
    if (cls.decoder is not None
            and (cls.encoding is not None or cls.errors is not None
                 or names is not Ellipsis)):
        raise ValueError


def chains_in_or(c):
    """c"""
    return b'0' <= c <= b'9' or b'a' <= c <= b'f' or b'A' <= c <= b'F'


def asserts_a_constant_under_a_test_that_folds(a, b):
    """(sympy's ``test_harmonic``: ``assert a is not b`` would be another program.)"""
    if a is b:
        assert None, "delete this"
    if a not in b:
        assert False, "and this"
    assert a is not b
    return a
