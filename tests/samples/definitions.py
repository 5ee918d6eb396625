"""Nested functions and classes, decorators, closures, globals, generators, coroutines."""

counter = 0


def nested(a, b=1, *args, c, d=2, **kwargs):
    """Docstring."""

    def inner(x: int, y: "str" = b) -> list:
        nonlocal a
        a = x
        return y

    return inner


def decorated(a):
    @a
    @a.b(1)
    def f():
        return f

    return f


def global_():
    global counter
    counter += 1
    return counter


def class_(a):
    class A(a, metaclass=type):
        """Doc."""

        x: int = 1
        y = 2

        def __init__(self):
            super().__init__()
            self.__private = __class__

        @property
        def p(self):
            return self.__private

    return A


def positional(a, /, b, *, c):
    return a, b, c


def generator(a):
    x = yield
    y = yield x
    z = yield from a
    yield y, z


async def coroutine(a):
    await a
    x = await a() + 1
    async with a as b:
        await b
    async for i in a:
        if i:
            break
        yield i
    return


async def coroutine_value(a):
    async for i, j in a:
        print(i)
    else:
        print(j)
    async with a, a() as b:
        return await b


def unbound():
    print(x)
    del x


def nonlocal_whose_uses_are_gone():
    a = 1

    def f():
        nonlocal a

    class C:
        nonlocal a

    return f.__closure__, C
