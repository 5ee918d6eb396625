"""``match`` statements in forms that columns decide (3.11); on 3.10 the programs are the same."""


def pass_and_return_in_the_last_case(node):
    match node:
        case Call(func=Name(name='x')):
            pass
        case _:
            return
    g(node)
    h(node)


def continue_in_cases(elt):
    for inferred in elt:
        match inferred:
            case A():
                continue
            case Const(value=str() as value) if value:
                pass
            case _:
                add(1)
                continue
        match (c := node.get(inferred)):
            case [NodeNG(parent=None)]:
                return
            case _ if c:
                add(2)


def pass_and_return_of_a_value(self, node):
    if self.a:
        first = self.a[-1]
    else:
        match (closest := get(node)):
            case F(args=A(args=[N(name=first), *_])) if closest.is_bound():
                pass
            case _:
                return False
    return node.name == first


def two_cases_with_pass(literal):
    match literal:
        case C(value=bool() | None):
            return
        case C(value=bytes() | str()):
            pass
        case L() | D() | S():
            pass
        case _:
            return
    g()
    h()


def guard_and_return(node):
    match node:
        case Y(v=N(n=n), p=E(p=L(t=T(n=t), b=[_]) as loop)) if not isinstance(loop, A) and t == n:
            pass
        case _:
            return
    if isinstance(node.frame(), F):
        return
    g(loop)


def guards_of_alternatives_and_of_a_wildcard(node):
    current, parent = node, node.parent
    while parent:
        match parent:
            case If() | While() | Assert() if current is parent.test:
                return True
            case IfExp() if current is parent.test:
                return True
            case GeneratorExp() if current is parent.elt and (a(parent, "all") or a(parent, "any")) and parent in c:
                return True
            case _ if a(parent, "bool") and current in parent.args:
                return True
            case BoolOp() if current in parent.values:
                current = parent
                parent = current.parent
                continue
            case _:
                break
    return False


def continue_after_a_guard(node):
    while node:
        match node:
            case I() if b:
                node = c
                continue
            case _:
                break
    return False


def guard_of_the_last_wildcard(node):
    match node:
        case I():
            return True
        case _ if a(node, "bool") and c:
            return True
    return False


def guard_of_a_wildcard_between_cases(node):
    match node:
        case I():
            return True
        case _ if c:
            return True
        case J():
            return 1
        case _:
            return 2


def several_passes(x):
    match x:
        case A():
            pass
        case B():
            pass
        case _:
            return 1
    g()
    return 2


def guard_of_a_wildcard_that_falls(x):
    match x:
        case A():
            g()
        case _ if x > 3:
            return 1
    return 2


def break_in_the_last_case(x):
    for a in x:
        match a:
            case A():
                continue
            case B(c):
                pass
            case _:
                break
        g(c)
        h(c)


def a_try_after_cases_that_return(x):
    match x:
        case 1:
            return "a"
        case 2:
            return "b"
    try:
        g(x)
    except E:
        return "c"
    return "d"


def cases_of_an_endless_loop(x):
    while True:
        match x.next():
            case None:
                break
            case A(b=b):
                if b:
                    continue
                yield b
            case [*c]:
                yield from c
        x.done()


def alternatives_of_sequences(x):
    match x, x.y:
        case (A(), 1) | (B(), 2):
            return 1
        case (A(), z) if z > 1:
            return z
        case (_, None):
            pass
        case _:
            return 0
    x.f()


def pass_in_the_last_case_of_a_handler(x):
    try:
        match x:
            case A():
                return 1
            case _:
                x.f()
    except E:
        match x:
            case B():
                return 3
            case _:
                pass
    return 2


def in_branches(x):
    if x.a:
        match x:
            case A():
                return 1
    elif x.b:
        match x:
            case B():
                x.c()
            case C() if x.d:
                x.e()
            case _:
                return
    else:
        return 5
    x.z()


def two_in_a_loop(x):
    for y in x:
        match y:
            case A(n=str() as n):
                r = n
            case A(n=int()):
                r = "i"
            case _:
                continue
        match r:
            case "q":
                g(1)
                continue
            case "r" | "s":
                g(2)
        if y:
            g(r)
        elif x:
            break
    return r


def names_on_several_lines(node):
    match node:
        case Call(
            func="c" | "s" as name,
            args=[y, *_],
        ):
            pass
        case _:
            return
    g(y)


def if_in_the_last_case(self, node):
    match node.args:
        case [C(v=str() as msg), _, *_]:
            if "%" in msg or ("{" in msg and "}" in msg):
                self.add(1)


def guard_in_parentheses(self, node):
    match node:
        case Y(
            v=N(n=n),
            p=E(p=L(t=T(n=t), b=[_]) as loop),
        ) if not isinstance(loop, A) and t == n:
            pass
        case _:
            return
    if isinstance(node.frame(), F):
        return
    g(loop)


def empty_cases_of_a_loop(exprs, name):
    for expr in exprs:
        match expr:
            case None:
                continue
            case Name():
                if expr.name == name:
                    return True
            case B():
                pass
            case D():
                continue
            case Lambda():
                g()
    return False


def empty_cases_of_a_function(x):
    match x:
        case A():
            return
        case B():
            g()
        case C():
            pass
        case D():
            return
        case E():
            h()
            return


def continue_in_the_last_case(x):
    for y in x:
        if y:
            match y:
                case A():
                    continue
                case B():
                    pass
                case _:
                    continue
        else:
            g()


def named_subject(x):
    if x.f():
        return 1
    match y := g(x):
        case _ if not y:
            return 2
        case A():
            return 3
        case B() if y.z:
            return 4
    return 5


def an_endless_loop_with_none_first(x):
    while True:
        match x.next():
            case None:
                break
            case A(b=b):
                g(b)
        x.done()
