match x:
    case y if z and w:
        pass
    case 0:
        pass


def f(x):
    match x:
        case y if y > 3 and z:
            return 1
        case y if y < 4:
            return 3
        case 0:
            a()
    b()


match 0:
    case A():
        pass
    case y if b or c:
        pass
    case []:
        pass
