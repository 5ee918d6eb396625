raise 0 from 0 < a <= 0
