# since 3.12; may fall back: the scope of the parameters is a loop too
0 != (a := b) <= 0


def c[c: 0]():
    pass


@d
class E[F: 0]((g for g in a)):
    b: F


class G[H](i=0 == 0 >= 0 > 0):
    pass


class I:
    J = 0
    0 != (a := b) <= 0

    def k[L: J](self):
        return L
