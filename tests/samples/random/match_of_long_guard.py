# since 3.10
match 0:
    case n if 0 <= 0 is not 0:
        pass
    case 0:
        pass
match 0:
    case n if [0 for a in b]:
        pass
    case 0:
        pass
match a:
    case x if (b if c else d):
        b
    case 0:
        pass
match a:
    case x if (y := x) and (lambda: 0):
        b
    case 0:
        pass
