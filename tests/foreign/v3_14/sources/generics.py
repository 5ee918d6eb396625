"""Type parameters and type statements."""


def gen[T: int, *Ts, **P](a: T, b=1, *, c: list[T] = 2) -> list[T]:
    def inner(x: T): return T
    return a


class G[T](Base, metaclass=M):
    x: int

    def m[S: (int, str) = int](self, a: S) -> T:
        return super().m(a, __class__)


class H[T: "G"]: pass


type X[T, U: (int, str)] = list[T]
type Y = dict[X, Y]


def outer(k):
    type Z = k

    @dec
    def f[T](a: T) -> k: return k

    async def g[T]():
        yield T

    class Q[T](k):
        type W = T | k

    return f


class N:
    y: int
    type V = y

    def f[__T](self, a: y, b: __T): return a
