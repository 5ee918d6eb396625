# since 3.12; may fall back: a finally that never ends; what its module holds has to be written beside its loop
type A[B] = 0
type C[*D] = {0 < 0 > 0 >= 0}
try:
    a
except:
    pass
else:
    b
finally:
    raise
