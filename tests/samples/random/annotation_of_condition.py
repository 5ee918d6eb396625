def f() -> a or b:
    pass
match 0:
    case None if c:
        pass
