# since 3.10
match 0:
    case 0:
        pass
    case 0 if 0:
        pass
    case 0:
        pass
match 0:
    case '' as n if 0:
        pass
    case 1 as n:
        pass
match 0:
    case X():
        pass
    case 0 if 0:
        pass
    case {**n}:
        pass
match 0:
    case 0 if 1:
        a
    case 1:
        pass
