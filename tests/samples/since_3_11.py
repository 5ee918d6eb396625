"""except*."""


def each(f, g):
    try:
        f()
    except* ValueError as e:
        g(e)
    except* (KeyError, TypeError):
        f()


def bodies_that_cannot_raise(f):
    try:
        f()
    except* ValueError as e:
        pass
    except* KeyError:
        pass


def one_and_else(f, g):
    try:
        x = f()
    except* OSError as e:
        x = e
    else:
        g(x)
    return x


def everything(f, g, a, b):
    try:
        f()
    except* ValueError as e:
        g(e)
    except* (a, b):
        f()
    else:
        g()
    finally:
        f(g)


def nested(f, g):
    try:
        try:
            f()
        except* ValueError as e:
            g(e)
    except* KeyError as e:
        try:
            g(e)
        except* OSError as inner:
            f(inner)
        else:
            f()
        g()


def in_a_loop(f, items):
    for item in items:
        try:
            if item:
                continue
            f(item)
        except* ValueError:
            f()
        else:
            break
    while f():
        try:
            f(items)
        except* KeyError as e:
            print(e)


def returns_around(f, g):
    try:
        if f():
            return g()
        for x in g:
            if x:
                return x
    except* ValueError as e:
        g(e)
    finally:
        f(g)
    return f


def a_loop_inside(f, g):
    try:
        f()
    except* ValueError as e:
        for x in e.exceptions:
            if x:
                continue
            if g(x):
                break
        while f():
            if g:
                break
    except* KeyError:
        if f:
            g()


def an_else_that_ends_everything(a, b, c):
    try:
        try:
            if c():
                return 1
            a(1)
        except* KeyError:
            a(2)
        else:
            b(3)
    except* ValueError as e:
        b(4)
    if a:
        try:
            try:
                a(5)
            except* KeyError:
                b(6)
            else:
                b(7)
        except* OSError as e:
            pass


def raises_inside(f, g):
    try:
        f()
    except* ValueError as e:
        raise RuntimeError from e
    except* KeyError:
        raise
    except* OSError as e:
        if f:
            raise TypeError
        elif g:
            g(e)


def types_of_any_kind(f, g):
    try:
        f()
    except* (f() or g()) as e:
        g(e)
    except* (f if g else TypeError):
        f()
    except* g(ValueError):
        g()


def with_others_inside(f, g):
    try:
        with f() as x:
            g(x)
    except* ValueError as e:
        with g(e):
            f()
        try:
            f()
        except KeyError as e2:
            g(e2)
        finally:
            f()
    except* KeyError as e:
        try:
            g(e)
        finally:
            f()


def inside_others(f, g):
    with f():
        try:
            g()
        except* KeyError as e:
            f(e)
    try:
        try:
            f()
        except* OSError:
            pass
    except KeyError:
        try:
            f()
        except* ValueError as e:
            g(e)
    finally:
        try:
            g()
        except* ValueError as e:
            g(e)


def kept_in_a_cell(f):
    global caught
    try:
        f()
    except* ValueError as e:
        f(lambda: e)
    except* KeyError as caught:
        f(caught)


async def awaited(f, g):
    try:
        await f()
    except* ValueError as e:
        async with g(e) as x:
            await x
    async for y in f:
        try:
            yield y
        except* KeyError:
            await g(y)


def at_the_end(f):
    if f:
        try:
            f()
        except* KeyError as e:
            e = None
            del e
        else:
            return 1
    else:
        return f


class InAClass:
    try:
        x = 1
    except* KeyError as e:
        print(e)
    except* ValueError:
        y = 2


try:
    import something
except* ImportError as e:
    print(e)


def annotation_with_a_star(Ts):
    def bare(*args: *Ts):
        return args

    def among_others(a: int, *args: *tuple[int, ...]) -> None:
        return args
    return bare, among_others
