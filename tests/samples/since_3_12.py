"""Type parameters and ``type`` statements."""


def functions(deco, g):
    def one[T](a: T) -> T:
        return a

    @deco
    @deco(1)
    async def decorated[T: int, *Ts, **P](a: T, *args: *Ts, **kwargs: P.kwargs) -> T:
        await a

    def defaults[T](a: T = 1, *, b: list[T] = 2, c=g) -> dict[str, T]:
        """It has a docstring."""
        yield a

    def only_keyword[T](*, b=g()):
        return T, b

    def constrained[T: (int, str), U: "T", V: list[T] | None]():
        return [T, U, V]

    return one, decorated, defaults, only_keyword, constrained


def classes(deco, Base, M):
    class Plain[T]:
        pass

    @deco
    class Full[T: int, *Ts, **P](Base, M.Other[T], metaclass=M, flag=T):
        """It has a docstring."""

        x: T = 1

        def m[U](self, x: U) -> T:
            return x, T, U

        @property
        def p[T](self) -> T:
            return super().p

        async def a[K: T](self, k: K = x):
            return [k async for k in self]

        class Inner[V](Plain[T]):
            v: V
            t: T
            type W = dict[T, V]

        type Alias[K] = dict[K, T]

    class Stars[*Ts](*Base, **M):
        y = 1

    return Plain, Full, Stars


def aliases(g):
    type A = int
    type B[T] = list[T] | A
    type C[T: int, *Ts, **P] = Callable[P, tuple[T, *Ts]]
    type Recursive = list[Recursive] | None
    type Lazy = [x for x in (A, B)]
    type L[T] = lambda x: (x, T)
    if g:
        type A = str
    return A, B, C, Recursive, Lazy, L


def names_of_the_class():
    class C:
        T = int
        type A = T
        type B[U: T] = dict[T, U]

        def f[U: T](self, a: T, b: U) -> T:
            return a

        def __private[V](self, __x: V) -> __name:
            return __x

        class D[V: T](T):
            pass

    return C


def shadowed(x):
    def f[x](a: x):
        def g[y](b: y) -> x:
            return x, y

        return g

    def h[T]():
        class C[U]:
            def m(self) -> tuple[T, U]:
                nonlocal x
                x = T, U

        return C

    def comprehension[T]():
        return [lambda: T for T in (T, x)]

    return f, h, comprehension


def scopes_around(a):
    type T = a
    for a in range(3):
        def f[U: a](b: U):
            return a, b
    try:
        class G[U: a](list[U]):
            def m(self, b: a) -> "G":
                return __class__
    except* ValueError:
        pass
    return T, f, G


def many_parameters[A, B: A, C: (A, B), *D, **E](a: A, b: B, /, c: C, *d: *D, e: E = 1):
    return A, B, C, D, E


class Module[T]:
    def m(self) -> T: ...


type ModuleAlias[T] = Module[T]


@print
def module_function[T](x: T = 1):
    global g
    g = T
