class A:
    raise 0
    x: int
