"""Classes and what their bodies end with."""

import os


def body_that_ends_in_an_if(base):
    class A(base):
        if os.name == "nt":
            def kind(self):
                return "nt"
        else:
            def kind(self):
                return "other"
    return A


def body_that_ends_in_an_if_with_super(base):
    class A(base):
        if os.name == "nt":
            def kind(self):
                return super().kind()
    return A


def body_that_ends_in_a_try(base):
    class A(base):
        try:
            import no_such_module
        except ImportError:
            try:
                import neither
            except ImportError:
                found = 0
            else:
                found = 1
        else:
            found = 2
    return A


def attributes(base):
    class A(base):
        def set(self):
            self.one, self.two, self.three = 1, 2, 3
            self.four = self.five = 4

        def get(self):
            self.six = 6
            return self.seven
    return A
