match x:
    case 0:
        pass
    case None:
        pass
