global x
x
