# since 3.12
type A[B] = {0 < 0 > 0 >= 0}
type C[**D] = {0: 0 != 0 in 0 < 0}
