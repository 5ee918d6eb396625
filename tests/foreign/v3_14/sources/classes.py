# Classes with methods and without annotations: 3.14 keeps a cell for annotations in each.
class Plain:
    def go(self):
        if self.x:
            return True

    async def wait(self):
        with self:
            return False


class Annotated:
    x: int = 1

    def go(self):
        for y in self:
            if y:
                return 'abcd'


class Empty:
    limit = 3
