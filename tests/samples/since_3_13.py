"""Defaults of type parameters."""


def functions():
    def f[T = int, *Ts = *tuple[int, str], **P = [int]](a: T) -> T:
        return a

    def g[T: int = bool, U: (int, str) = T](a: T, b: U = 1):
        return T, U

    return f, g


def classes(Base):
    class C[T = int](Base):
        x: T

        def m[U = T](self, a: U) -> T:
            return a

    return C


def aliases():
    type A[T = int, U: str = "s"] = dict[T, U]
    type B[*Ts = *tuple[int, ...], **P = ...] = (Ts, P)
    return A, B


class C:
    x = int
    type A[T = x] = list[T]
