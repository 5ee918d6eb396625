def f(self, level):
    before = self.at
    while (not self.isopener[before]
           or self.text[before] not in level
           or self.levels[before] > level):
        before -= 1
        if before < 0:
            return None
        level = min(level, self.levels[before])
    after = self.at + 1
    while after < level and self.levels[after] >= level:
        after += 1
    return before, after
