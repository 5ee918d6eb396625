def else_after_raise(a, c):
    if a:
        raise ValueError(a)
    else:
        return c


def guard_before_return(a, c):
    if a:
        raise ValueError(a)
    return c


def chain(a, b, c):
    if a:
        raise KeyError(a)
    elif b:
        raise ValueError(b)
    else:
        c.done()
    return c


def guards(a, b, c):
    if a:
        raise KeyError(a)
    if b:
        raise ValueError(b)
    c.done()
    return c


def goes_on(items):
    for item in items:
        try:
            item.open()
        except OSError:
            continue
        except ValueError:
            pass
        item.read()


def on_one_line(a, items):
    if a: return  # noqa: E701  (the form that is the point)
    for item in items:
        item.read()


def without_an_else(name, items):
    try:
        first = items[name]
    except KeyError:
        return None
    first.read()
    return first


def with_an_else(name, items):
    try:
        first = items[name]
    except KeyError:
        first = None
    else:
        first.read()
    return first
