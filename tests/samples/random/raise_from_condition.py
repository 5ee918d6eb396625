raise a from b if c else d
