# since 3.12; may fall back: the module is a loop, and what it holds has to be written beside it
type A[B] = 0
type C[*D] = {0 < 0 > 0 >= 0}
0 != (a := b) <= 0
