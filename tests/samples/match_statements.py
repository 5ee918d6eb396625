"""``match`` (3.10)."""


def every_kind(x):
    match x:
        case 1:
            return "literal"
        case "s" | 2:
            return "alternatives"
        case None:
            return "singleton"
        case A.B:
            return "value"
        case [a, b, *rest] if a:
            return rest
        case [Point(1, 2), {"a": [q, w]}]:
            return q
        case [1, [q, _]] | (3, q, *_, 4):
            return q
        case {"k": v, "l": _, **kw}:
            return kw
        case Point(x=0, y=yy) | Point(yy):
            return yy
        case str() as s:
            return s
        case _:
            return 1


def falls_through(x, y):
    match x, y:
        case a, b:
            print(a)
        case A.B:
            print(x)
    return 3


def in_a_loop(x):
    for i in x:
        match i:
            case int():
                continue
            case (1 | 2) as z:
                break
            case _ if i > 3:
                f()
    else:
        g()


def a_name_takes_the_rest(x):
    match f(x):
        case [y]:
            g(y)
        case y if y > 3:
            g(x)
        case y:
            h(y)


def nested(x):
    while x:
        match x:
            case [0, y]:
                match y:
                    case {"z": z}:
                        x = z
                    case _:
                        x = y
            case [*_, last]:
                x = last
            case _:
                return x


def with_handlers(x):
    try:
        match g(x):
            case {"error": e}:
                raise ValueError(e)
            case []:
                pass
    except ValueError:
        return 1
    with x as y:
        match y:
            case 1:
                return 2


def no_match_at_all(f, x):
    if (y := f(x)) is None:
        return 1
    if (z := f(y)) == 2 or (z := f(z)) is True:
        x = w = f(z)
        if w:
            return z
    while (c := f(x)) is not None and c.d == 1:
        x = c
    return y
