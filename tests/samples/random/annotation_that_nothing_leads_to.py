raise 0
x: 0
