x = [0, 0 if (a if b else a) else 0]
lambda: a if b else a
