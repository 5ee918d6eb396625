# since 3.12
def f[*f]():
    raise 0
    f

class A[*b]:
    raise 0
    b

type C[*d] = (e and g) and 0
