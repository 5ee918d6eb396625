class A:
    b: 0 = [b for c in d]
