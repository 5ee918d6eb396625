def f():
    0 if (x if y else z) else t

q = [0, 0 if (x if y else z) else t]
