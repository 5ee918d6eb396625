# may fall back
match 0 if a else 0:
    case 0:
        pass
    case 0:
        pass
raise 0
