for a in b:
    break
else:
    raise
from .. import c
