"""What else 3.14 compiles in another way."""


def caught(a):
    try:
        return a()
    except ValueError, TypeError:
        return None
    except OSError as error:
        return error


def entered(a, b):
    with a, b as c:
        print(c)
    with a() as (d, e):
        return d


async def entered_later(a, b):
    async with a as c:
        await c
    async for d in b:
        print(d)


def called(a, *b, **c):
    return f(*b), f(*a, **c), f(a, **c), f(a, k=1), a.m(*b)


def searched(a, q):
    if any(x for x in a):
        return all(y.b for y in a.z(1))
    for z in tuple(w for w in [v for v in q]):
        print(z)
    while not all(x for x in (a if q else 4)):
        pass
    return sum(any(x for x in y) for y in q)


def sliced(a, b):
    a[1:2] = a[:], a[::2], a[1:], a[-1], a[b:], a[1:2, 3]
    a[1:2] += b
    del a[:3]
    return a[0]


def chosen(a, b, c):
    x = a and b or c
    y = (a or b) and c
    return a and b or c and x, y


def inlined(a):
    b = [i for i in a if i]
    c = {i: j for i, j in a}
    return [[j for j in i] for i in b], {lambda: i for i in c}


def counted(a):
    "A docstring."
    for i in a:
        if i == 3:
            break
        elif i < 255 and i > 256:
            continue
    else:
        return -1, 1.0, 0
    assert a, "message"
    raise NotImplementedError


def plain():
    return "no docstring"


def passed(a):
    if a:
        pass
    elif a > 2:
        print(a)
    else:
        return 3
    return 4


def passed_in_case(a):
    match a:
        case 'x' | b'y':
            pass
        case str() as s:
            print(s)
        case _:
            return 3
    return 4


def said(code):
    match code:
        case 200 | 201:
            text = 'ok'
        case 404:
            text = 'not found'
        case _:
            text = 'error'
    return text


def done(command):
    match command.split():
        case ['go', direction]:
            result = move(direction)
        case ['take', *things] if things:
            result = take(things)
        case other:
            result = other
    return result


def sign(x):
    if x > 0:
        return 1
    else:
        return -1
