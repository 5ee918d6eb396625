(1 or x, 2, 3)
[1 or x, 2, 3]
{() and x, 2, 3}
{1 or x: y, 2: z}
-(1 or x)
(1 or x) + 3, 1 / 0, -'a', 2 ** 1000 + 'a'
(() and x) or y
x or (() and y) or z
((0, 1) or x)[0]
(not f'') - x
(not f'a') - x
def f(a=1 or x, *, b=2 or x):
    return (a or 1 and 2, 3)
