"""Functions whose form only the columns of the line table show: each is written as it was.

Where a text is another one, its program is the same; so nothing but these samples would show it.
"""

from __future__ import annotations

import ast
import pathlib
import sys

import pytest

from depyf.decompiler import Fidelity, decompile_code

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="columns came with 3.11")

SAMPLES = {
    "while True around a try": """\
def f(q, empty):
    while True:
        try:
            q.get()
        except empty:
            break
    q.x = 1
""",
    "a try around while True": """\
def f(q, empty):
    try:
        while True:
            q.get()
    except empty:
        pass
    q.x = 1
""",
    "while True around a try, in a finally": """\
async def f(self, fut):
    try:
        await fut
    finally:
        err = None
        while True:
            try:
                await self.acquire()
                break
            except Cancelled as e:
                err = e
        if err is not None:
            try:
                raise err
            finally:
                err = None
""",
    "the copies of return None that end branches": """\
def evs(self, cur):
    self.c = cur
    if isinstance(cur, A):
        return self.a(cur)
    elif isinstance(cur, P):
        self.p(cur)
    elif isinstance(cur, Q):
        self.q(cur)
    elif isinstance(cur, B):
        return self.b(cur)
    elif isinstance(cur, D):
        if cur.f:
            return self.d(cur)
        return self.s(cur)
    elif isinstance(cur, C):
        self.cc(cur)
    elif isinstance(cur, (D, E)):
        return self.h(cur)
    elif isinstance(cur, G):
        raise X()
    else:
        raise E('Unknown')
    return None
""",
    "return None in a with, and its else": """\
def lines(self, filename):
    with self._connect() as con:
        file_id = self._file_id(filename)
        if file_id is None:
            return None
        else:
            query = 'select'
            data = [file_id]
            if self.q is not None:
                query += 'x'
            with con.execute(query, data) as cur:
                return list(cur)
""",
    "a try with an else that ends a handler": """\
def f(self):
    try:
        p = a()
    except E:
        if self.auto:
            try:
                p = b()
            except E:
                self.exit(1)
            else:
                g(p)
        else:
            self.exit(2)
    else:
        h(p)
    self.p = p
""",
    "variables that get another value at once": """\
def f(t):
    for a, (b, _), (c, _), _ in t:
        g(a, b, c)
    (d, _), _ = t
    return d
""",
    "a test that goes on below": """\
def f(frame, s):
    while frame is not None and (
            is_own(frame.f) or
            is_other(s)):
        frame = frame.back
    return frame
""",
    "the copies of one end inside of an else": """\
def gv(self, action, arg_strings):
    if action.a == OPTIONAL:
        value = action.x
    elif action.nargs == REMAINDER:
        value = [self._get_value(action, v) for v in arg_strings]
    elif action.nargs == PARSER:
        value = [self._get_value(action, v) for v in arg_strings]
        self._check_value(action, value[0])
    elif action.nargs == SUPPRESS:
        value = SUPPRESS
    else:
        value = [self._get_value(action, v) for v in arg_strings]
        for v in value:
            self._check_value(action, v)
    return value
""",
    "a bare return in the else of a try": """\
def touch(self, exist_ok):
    if exist_ok:
        try:
            os.utime(self, None)
        except OSError:
            pass
        else:
            return
    flags = os.O_CREAT | os.O_WRONLY
    return flags
""",
    "a try in an else, and a return after both": """\
def win():
    try:
        import winreg
    except ImportError:
        pass
    else:
        try:
            key = winreg.a
            with winreg.b(key) as k:
                return winreg.q(k)[0]
        except OSError:
            pass
    return None
""",
    "a return after an if with a loop in it": """\
def m(self, result, match, pat):
    for i in range(3):
        match = a.b(i)
        if match is not None:
            result = [len(s) for s in match.groups()]
            if match.end() < len(pat) and pat[match.end()] == 'O':
                while result and not result[-1]:
                    del result[-1]
            return result
    return []
""",
    "an else after an async with": """\
async def sd(self, timeout):
    try:
        async with timeouts.timeout(timeout):
            await future
    except TimeoutError:
        warnings.warn(timeout)
        self.x.shutdown(wait=False)
    else:
        thread.join()
""",
    "breaks to a return after the loop, in a finally": """\
async def sf(self, sock, file, offset, count):
    if offset:
        file.seek(offset)
    try:
        while True:
            if count:
                blocksize = min(count - total_sent, blocksize)
                if blocksize <= 0:
                    break
            view = memoryview(buf)[:blocksize]
            read = await self.run(view)
            if not read:
                break
            await self.sock(read)
            total_sent += read
        return total_sent
    finally:
        if total_sent > 0 and hasattr(file, 'seek'):
            file.seek(offset + total_sent)
""",
    "a loop in a finally": """\
def close(self):
    try:
        if self.a is not None:
            x = self.a
            self.a = None
            g(x)
    finally:
        while self.h:
            h = self.h.pop()
            g(h)
""",
    "statements before the only break": """\
def branches(self, nodes):
    b = []
    for n in nodes:
        t = n
        while True:
            p = self.parents(n)
            if p[1] != null or p[0] == null:
                b.append((t, n, p[0], p[1]))
                break
            n = p[0]
    return b
""",
    "an if whose test begins below its parenthesis": """\
def trunc(this, unit):
    if unit:
        return a(this)

    if (
        (this and this.is_type(NUM))
        or (second and second.is_type(NUM))
        or (not d and not second)
    ):
        return b(this)
    return c
""",
    "two breaks with calls in their tests": """\
async def wait(self, fn):
    while True:
        if fn():
            break
        if self.a or self.b:
            break
        await self.w.park()
    await check()
""",
    "a call with a conditional expression in an else": """\
def data(self, text):
    if self._data and self._data.text == text:
        return self._data

    else:
        return ClipboardData(
            text=text,
            type=SelectionType.LINES if "a" in text else SelectionType.CHARACTERS,
        )
""",
    "a constant in an else, before a finally": """\
def roll(self, a):
    lock = None
    try:
        if a:
            return self.r(a)
        else:
            self.ui.warn(b'no')
            return 1
    finally:
        release(lock)
""",
    "an else with continue, and what follows": """\
def names(self, expr):
    for node in expr.walk():
        if isinstance(node, A):
            x = 1
        elif node.b:
            node.set(1)
        else:
            continue
        node.g()
""",
    "statements before the break of an endless loop, in a branch": """\
def f(self, s):
    if self.x is None:
        self.x = s
        while True:
            if s.out:
                self.alive = True
                break
            if s.err:
                raise E
            s.sleep()
    return self.x
""",
    "branches before the break of an endless loop, in a loop": """\
def f(self, parts):
    while parts < 2:
        no = True
        while True:
            chunk = get(self)
            if not chunk:
                if parts < 2:
                    parts += 1
                elif no:
                    parts += 1
                break
            no = False
            yield chunk
        yield close()
""",
    "an endless loop after a guard": """\
def f(queue):
    q = queue()
    if not q:
        return False
    while True:
        try:
            event = q.get()
        except Empty:
            break
        else:
            fn, args = event
            fn(*args)
    return True
""",
    "a loop at the end of a branch, before a return": """\
def f(path, low, high):
    if path and isinstance(path[-1], int):
        while high > low and isinstance(path[high], int):
            high -= 1
    return path[low:high + 1]
""",
    "return in the else of a try whose handler passes": """\
def f(wait, timeout):
    try:
        if timeout is not None:
            shield(timeout)
        else:
            wait()
    except E:
        pass
    else:
        return
""",
    "the value of a return after loops in a try with finally": """\
def f(count, data):
    try:
        while True:
            if count:
                data = min(count)
                if data <= 0:
                    break
            data = read(data)
            if not data:
                break
            while True:
                try:
                    sent = send(data)
                except E:
                    continue
                else:
                    if sent < len(data):
                        data = data[sent:]
                    else:
                        break
        return data
    finally:
        if data:
            seek(data)
""",
    "return True in a branch of a try, after which nothing follows": """\
def f(text):
    try:
        text.encode()
        return True
    except E:
        pass
    return False
""",
    "return of a constant after a clean-up, in a handler": """\
def f(self, n):
    with self.lock:
        try:
            size = self.read(n)
        except E:
            if self.closed:
                raise F
            self.check()
            return b''
        else:
            del n[size:]
            return n
""",
    "return in a loop in a try": """\
def f(xs):
    try:
        for x in xs.f():
            if x.g() in T:
                return True
    except E:
        return False
    return False
""",
    "return in a loop in a try in a loop": """\
def f(cls):
    for base in cls.bases:
        try:
            for i in base.infer():
                if i.q() in T:
                    return True
        except E:
            continue
    return False
""",
    "several returns in a loop in a try": """\
def f(node):
    try:
        for i in node.infer():
            if isinstance(i, (A, B)):
                return True
            if not hasattr(i, "g"):
                return True
            h = next(i.g("h"))
            if h.p is i:
                return True
        return False
    except E:
        return True
""",
    "guard and return None in a loop in a try": """\
def f(node):
    types = set()
    try:
        for v in node.infer():
            if isinstance(v, U) or is_none(v):
                continue
            types.add(v)
            if len(types) > 1:
                return None
    except E:
        return None
    return types.pop() if types else None
""",
    "return None in a loop in a try with several handlers": """\
def f(node, value):
    try:
        g = node.infer(context=1)
        value = next(g)
    except E:
        return None
    except Exception as e:
        raise A from e
    try:
        for i in g:
            t = f(i)
            if t not in value:
                return None
            if t and i:
                return None
    except E:
        return None
    except StopIteration:
        return value
    return value if len(t) <= 1 else None
""",
    "a constant returned after a finally": """\
def f(c):
    try:
        if c:
            return g(x)
    finally:
        g(9)
    return 2
""",
    "True returned after a finally": """\
def f(c):
    try:
        if c:
            g(3)
            raise F(x)
    finally:
        g(9)
    return True
""",
    "None returned after except and finally": """\
def f(c):
    try:
        if c:
            g(2)
    except E:
        g(8)
    finally:
        g(9)
    return None
""",
    "a guard that returns nothing in a with": """\
def f(m, c):
    with m(1) as n:
        p = g()
        if not c:
            return
        g(4)
    return 2
""",
    "else and return in a loop in a with": """\
def f(m, xs, c):
    with m:
        for x in xs:
            if c:
                g(5)
            else:
                return 1
        g(1)
""",
    "a guard in a finally in a with": """\
def f(m, c):
    with m:
        try:
            if not c:
                return 1
            g(4)
        finally:
            g(9)
    return 2
""",
    "text returned before and after a finally": """\
def f(c):
    try:
        if c:
            return 'a'
        g(1)
    finally:
        g(9)
    return 'b'
""",
    "True returned in a body with finally": """\
def f(c):
    try:
        g(1)
        return True
    except E:
        return False
    finally:
        g(9)
""",
    "else that returns in a try": """\
def f(c):
    try:
        if c:
            g(5)
        else:
            return 1
    except E:
        g(0)
    g(1)
""",
    "return None in a loop in a try at the end": """\
def f(xs, c):
    try:
        for x in xs:
            if c:
                return None
    except E:
        return False
""",
    "return None through two clean-ups": """\
def f(m, c):
    with m:
        try:
            if c:
                g(3)
                return None
        finally:
            g(9)
        g(1)
""",
    "return after a wildcard as wide as its value": """\
def f(m, q):
    match q:
        case A():
            with m(1) as n:
                v = g(2)
            return 2
        case _:
            g(6)
    return 2
""",
    "return after a try in a with": """\
def f(m, c):
    with m(1) as n:
        try:
            if not c:
                return
            g(4)
        except E:
            return False
        return 2
    g(1)
""",
    "return None through a finally": """\
def f(source):
    try:
        item = source.get()
        if item is None:
            return
        handle(item)
    finally:
        source.done()
    return item
""",
    "an if in an if, after a guard": """\
def f(self, node):
    if not node.doc or isinstance(node, D) and node.f:
        return node

    if not self.c:
        if isinstance(node, C) and not node.py:
            return node
    if not self.all and '>' not in node.doc:
        return node
    return h(node)
""",
    "a guard that raises, and an if": """\
async def f(self, n):
    if self._exception is not None:
        raise self._exception

    # migration
    if self._eof and not self._buffer:
        self._c = getattr(self, "_c", 0) + 1
        if self._c > 5:
            log()
    if not n:
        return b""
    return g(n)
""",
    "return in a loop in a finally": """\
def f(s):
    s.a = True
    try:
        for i in range(50):
            if not s.m:
                return
            with s.f():
                for o in s.o:
                    if o is not None:
                        o.b()
    finally:
        s.a = False
""",
    "return in a handler in an endless loop": """\
def f(s):
    while True:
        try:
            c = s.get()
        except W:
            return
        except F:
            pass
        else:
            if c:
                s.put(c)
""",
    "return after a try in a with, whose handler passes": """\
def f(m, c):
    with m:
        try:
            if not c:
                g(2)
            g(4)
        except E:
            pass
        return 2
""",
    "return in a handler and after the try, in a with": """\
def f(m, c):
    with m:
        try:
            g(4)
        except E:
            g(0)
            return 2
        return 2
""",
    "return in a body and in its handler, in a with": """\
def f(m, c):
    with m:
        try:
            g(4)
            return 2
        except E:
            g(0)
            return 2
""",
    "return and else in a with, in a try": """\
def f(m, c):
    with m(1) as n:
        try:
            if c:
                g(5)
            else:
                return None
        except E as e:
            g(e)
        g(1)
""",
    "continue in a loop that begins a try": """\
def f(w, c):
    try:
        while w:
            if not c:
                continue
            g(4)
    except E:
        g(0)
    g(1)
""",
    "break out of a try in a loop that ends a function": """\
def f(w, c):
    try:
        while w:
            p = g()
            try:
                if c:
                    break
            except E:
                g(0)
    except E:
        raise F
""",
    "break and what follows an endless loop, in a try": """\
def f(x, c):
    try:
        while True:
            p = g()
            if c:
                g(3)
                break
        g(1)
    except E:
        return False
""",
    "return of a value from an endless loop in a branch": """\
def f2(a, c, x):
    try:
        p = g()
        if a:
            p = g()
            while True:
                p = g()
                if c:
                    g(3)
                    return g(x)
        else:
            g(7)
    except E:
        return None
    return 2
""",
    "return None from a loop in a with": """\
def f3(m, c, xs):
    with m(1) as n:
        p = g()
        for x in xs:
            if c:
                g(5)
            else:
                return None
        return None
    return 2
""",
    "return after a branch and an endless loop": """\
def f(a, c):
    if a:
        g(7)
    else:
        while True:
            if c:
                g(3)
                g(2)
    return 2
""",
    "return after a branch, in whose else a function ends": """\
def f(a, m, c):
    if a:
        g(7)
    else:
        with m:
            if c:
                g(5)
        return None
    return 2
""",
    "return in an else and after it, in a try with a finally": """\
def f(a):
    try:
        if a:
            g(7)
        else:
            return 1
        return None
    except E:
        g(8)
    finally:
        g(9)
    g(1)
""",
    "return in a body whose finally stores": """\
def f(x):
    try:
        g(1)
        return 2
    finally:
        x = 1
""",
    "return after a finally that stores": """\
def f(x):
    try:
        g(1)
    finally:
        x = 1
    return 2
""",
    "return in a body whose finally loops": """\
def f(x):
    try:
        g(1)
        return 2
    finally:
        for y in x:
            g(y)
""",
    "return after a finally that loops": """\
def f(x):
    try:
        g(1)
    finally:
        for y in x:
            g(y)
    return 2
""",
    "return of nothing in a body whose finally tests": """\
def f(x):
    try:
        g(1)
        return
    finally:
        if x:
            g(x)
""",
    "return None in a body whose finally tests, and after it": """\
def f(x):
    try:
        if x:
            return None
    finally:
        if x:
            g(x)
    return None
""",
    "break as the whole body of a loop": """\
def f(w, c):
    while w:
        if c:
            break
    g(1)
""",
    "break as the whole body of a loop whose test is inverted": """\
def f(w, c):
    while not w:
        if not c:
            break
    g(1)
""",
    "break as the whole body of a loop with an else": """\
def f(w, c, d):
    while w(1):
        if c(2) and d:
            break
    else:
        g(2)
    g(1)
""",
    "a loop without a body": """\
def f(w, c, d):
    while w(1) and not c(3):
        pass
    g(1)
""",
    "return after a try in a finally": """\
def f(m, c):
    try:
        try:
            g(4)
        except E:
            g(0)
        return 2
    finally:
        g(9)
""",
    "return after a try in a with in a try": """\
def f(m, c):
    try:
        with m:
            try:
                g(4)
            except E:
                g(0)
            return 2
    except F:
        pass
""",
    "continue and return in a with in a loop": """\
def f(m, c):
    for x in c:
        with m:
            try:
                g(4)
            except E:
                continue
            return x
""",
    "a guard that returns in a try in a with": """\
def f(m, c):
    with m:
        try:
            if not c:
                return
            g(4)
        except E:
            pass
""",
    "return twice in a try in a with": """\
def f(m, c):
    with m:
        try:
            if not c:
                return
            g(4)
        except E:
            return
    return 2
""",
    "guards of wildcards in a row": """\
def f(x):
    match x:
        case A():
            return g()
        case _ if x > 3:
            y = 1
        case _ if x > 2:
            y = 3
        case _:
            y = 4
    return y
""",
    "break after a try whose handlers fall and continue": """\
def f(s, data):
    for d, last in data:
        for n in range(1, 4):
            try:
                s.f(d)
            except T:
                g(1)
                if not last:
                    g(5)
            except W as e:
                if n == 3:
                    raise
                g(2)
                continue
            break
""",
    "return None in a handler, before a finally with tests": """\
def f(self, p):
    try:
        p.f()
        with s(T):
            p.w()
        if p.r is not None:
            return None
        return "could not"
    except L:
        p.w()
        return None
    finally:
        if self.a:
            self.a.c()
        if self.b:
            self.b.c()
""",
    "elif and else after a guard that continues": """\
def f(trans):
    for src, trans in trans:
        for label in trans:
            if label is E:
                continue
            elif label is A:
                raise X
            else:
                assert isinstance(label, t)
                l8 = label.e()
                for i, b in enumerate(l8):
                    if i < 3:
                        g(i)
                    else:
                        h(i)
                del trans[label]
""",
    "targets on several lines": """\
def f(x, y):
    (
        a,
        b,
    ) = x.f(), y.g()
    if a:
        (
            c,
            d,
            e,
        ) = (
            x.f(),
            y.g(),
            b,
        )
        return c, d, e
    return b
""",
    "if not in an if, before the rest of a loop": """\
def f(x, s):
    for i in x:
        if isinstance(i, N):
            if not (
                i.a == s
                and i.b
            ):
                continue
            g(i)
            if s:
                h(i)
""",
    "return None in handlers, and after the try": """\
def f(self, node, name):
    try:
        return node.load(name)
    except E:
        if self.ignores(node):
            return None
        self.add(node)
    except F:
        if not self.enabled:
            return None
        self.add(name)
    return None
""",
}


@pytest.mark.parametrize("source", SAMPLES.values(), ids=SAMPLES)
def test_the_form_is_that_of_the_source(source: str) -> None:
    found = decompile_code(compile(source, "test", "exec"))
    assert found.fidelity is Fidelity.EXACT
    assert ast.unparse(ast.parse(found.text)) == ast.unparse(ast.parse(source))


_MATCHES = (pathlib.Path(__file__).parent.parent / "samples" / "match_forms.py").read_text()


@pytest.mark.parametrize("name", [stmt.name for stmt in ast.parse(_MATCHES).body if isinstance(stmt, ast.FunctionDef)])
def test_the_form_of_a_match(name: str) -> None:
    tree = ast.parse(_MATCHES)
    (code,) = (const for const in compile(tree, "test", "exec").co_consts if getattr(const, "co_name", "") == name)
    found = decompile_code(code)
    assert found.fidelity is Fidelity.EXACT
    (source,) = (ast.unparse(stmt) for stmt in tree.body if isinstance(stmt, ast.FunctionDef) and stmt.name == name)
    assert ast.unparse(ast.parse(found.text)) == source


@pytest.mark.skipif(sys.version_info < (3, 14), reason="before, `not a in b` was `a not in b` everywhere")
@pytest.mark.parametrize("statement", [
    "x = not a is None", "return not a is None and c", "x = [i for i in p if not i in a]", "assert not a in b",
    "x = 1 if not a in b else 2", "while not a in b and (not b is a) or x:\n    h()", "if not a is b:\n    g()",
    "for i in x:\n    if not i in a:\n        continue\n    g()",
])
def test_not_before_in_and_is(statement: str) -> None:
    source = "def f(a, b, c, p, x):\n    " + statement.replace("\n", "\n    ")
    found = decompile_code(compile(source, "test", "exec"))
    assert found.fidelity is Fidelity.EXACT
    assert ast.unparse(ast.parse(found.text)) == ast.unparse(ast.parse(source))
