# since 3.12; may fall back: a finally that never ends; the scope of the parameters is a loop too
try:
    a
except:
    pass
else:
    b
finally:
    raise


def c[c: 0]():
    pass


@d
class E[F: 0]((g for g in a)):
    b: F


class G[H](i=0 == 0 >= 0 > 0):
    pass


class I:
    J = 0
    try:
        a
    except:
        pass
    else:
        b
    finally:
        raise

    def k[L: J](self):
        return L
