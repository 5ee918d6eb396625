"""What the compiler has copied, folded or dropped (each was a class of docs/fidelity.md)."""


async def async_for_in_a_branch(output):
    if output:
        output(1)
        async for i in output([3]):
            output.append(i)
    else:
        output.append(6)
    while output:
        if output:
            async for i in output():
                output.append(i)
    output.append(8)


def chain_before_a_copied_end(f, a, b):
    f(a.x == b.y == 1)


def chain_returned_by_a_call(f, a, b):
    return f(a == b == f(a))


def bool_in_parentheses_on_lines(a, b, c):
    return ((a or b)
            or c)


def bool_before_a_copied_end(future, timeout):
    try:
        return future.result(timeout)
    finally:
        future.done() or future.cancel()


def choice_in_a_returned_tuple(encoded, f):
    try:
        return (f(encoded), [f()] if encoded else [])
    except ValueError:
        return 5


def assignment_idiom_in_comprehensions(a, f):
    x = {j + k: j * k for i in range(4) for j, k in [(i + 1, i + 2)]}
    y = {k for i in range(4) for j in [i + 1] for k in [j + 1] if k > 3}
    z = [y for x in a for x.u in [x.r] for z in x.u]
    return x, y, z, (y for x in a for y in [f(x)])


def nothing_is_added_to_comprehensions(a, b):
    g = (x for x in (y for y in (z for z in a) if False) if True)
    return g, [y for x in a for y in b if False], {y: x for x in a if x for y in b if False}, {y for x in a if False}


def return_before_a_finally_that_raises(a, b):
    def inner():
        try:
            yield a
            return b
        finally:
            raise a
    return inner


def closure_was_dropped(self, q):
    if 0:
        lambda: (self, q)
    self = None
    try:
        q()
    except ValueError:
        return

        def inner():
            return inner, q
    q()


def sets_with_equal_elements(a):
    a({1, 1.0, True})
    a({1, 1, 2}, {1, 2}, {1, 2, 2, 3})
    return a in {1, 1, 1}


def break_out_of_a_handler(path, hooks, a):
    try:
        x = a[path]
    except KeyError:
        for hook in hooks:
            try:
                x = hook(path)
                a(path, x)
                break
            except ImportError:
                pass
        else:
            x = None
    return x


def continue_behind_else(self, names):
    for filename in self():
        if not filename:
            continue
        for name in names:
            if filename[name]:
                break
        else:
            continue
        self[name] = filename


def chain_as_the_test_of_a_loop(n, j, k):
    i = 0
    res = []
    while 0 <= i < n:
        if not j and not k:
            res.append(i)
            break
        i = 3
    return res


def choices_in_the_test_of_a_loop(a, b):
    post = 0
    while a[:post or None] and b[:post or None] and a[post - 1] == b[post - 1]:
        post -= 1
    while a[post if b else 3]:
        post += 1
    return post


def returns_from_an_endless_loop(self, verbose):
    while 1:
        line = b""
        while 1:
            try:
                part = self.read(1)
                if part == b"":
                    return
                line += part
            except OSError:
                return
            if line.endswith(b"\r\n"):
                break
        if verbose:
            print(line)
        self.c(line)


def returns_from_under_an_iterator(self, kind):
    while True:
        for i in self:
            if kind == i:
                while i:
                    if not self.stack:
                        return True
                    self()
                return False
            elif i >= 256:
                self.push(i)
                break
        else:
            self.pop()


def breaks_that_meet(pattern, file):
    with open(file) as file:
        match = False
        while True:
            line = file.readline()
            if line == "":
                break
            if pattern.search(line):
                match = True
                break
    pattern.clean()
    return match


def finally_in_a_finally(self, status):
    try:
        self.a()
    except ValueError:
        self.b()
    finally:
        try:
            self.c()
        finally:
            self.d(status)


def assert_in_an_if(a, b, c):
    if a in b:
        assert c is a
    if a in b:
        assert c not in a
    else:
        c(a)
    a(b)


def loop_at_the_end_of_a_finally(g, n):
    try:
        yield
    finally:
        for _ in g():
            if n < g:
                break
        else:
            raise AssertionError(n)


def complex_with_a_negative_zero(g):
    g(-(1 + 0j), -(2.5 - 0j), -0j, -1j)


class Mangled:
    def keywords(self, g):
        return g(_Mangled__a=2, __b=3)


def returns_of_one_with(select, timeout):
    with select() as selector:
        while True:
            if selector.select(timeout):
                return select.one()
            else:
                timeout -= 1
                if timeout < 0:
                    return select.other()
