# may fall back
(x): 0
