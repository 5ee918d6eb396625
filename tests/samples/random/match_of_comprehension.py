# may fall back
match [0 for a in b]:
    case 0:
        pass
    case 0:
        pass
