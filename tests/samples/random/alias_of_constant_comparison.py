# since 3.12; may fall back: no form of the alias but the loop can be written
type A[B] = {0 < 0 > 0 >= 0}
type C[**D] = {0: 0 != 0 in 0 < 0}
