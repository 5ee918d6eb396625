class A:
    x and y or z

def f():
    if a:
        x and y
    else:
        1 < x() < y

def g():
    for i in j:
        x or y

a < x() < y
