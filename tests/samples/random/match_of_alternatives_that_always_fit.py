# since 3.10
def f(v):
    match v:
        case [x] | x:
            return x
def g(v):
    match v:
        case [x] | x if x:
            return x
        case 3:
            return 4
match v:
    case {} | _ if g:
        a
    case {**b}:
        pass
match 0:
    case 0:
        pass
    case A() | _ if u:
        pass
    case None:
        pass
match v:
    case [1 | 2 | _, 3]:
        a
match v:
    case [{} | _, 3] if g:
        a
    case {**b}:
        pass
match v:
    case 0 | 1 | _ if a or b and c:
        d
    case {} | 4 as z:
        b
