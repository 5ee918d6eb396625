1 or x
() and x
-3 or x
(0, 0) and (y if z else t)
for i in j:
    b'' or x
t
