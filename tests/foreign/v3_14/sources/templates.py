"""Template strings."""


def fields(a, b, w):
    x = t"{ a }{ {1,2} !r}{a + b = }{a!s:{w}.3}{x:}{'q'}{ (lambda: 1) }"
    return t"plain {{}}", t'{b:>{w!r}}\n"\'', t""


def nested(a):
    return t"{ t'{a}' }", t"one {a}" t" two {a}", [t"{i}" for i in a], t"{
        a
    }"
