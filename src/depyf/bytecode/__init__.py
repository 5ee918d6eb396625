"""A code object of any supported Python version, as operations that all versions share.

Input: a code object of the running interpreter (:meth:`.code.Code.of`) or a ``.pyc`` of any version (:mod:`.pyc`);
output: a :class:`.operations.Program`. ``lambda a: a.x + 1`` on its way:

* **code** (:mod:`.code`): an immutable view with the version it is of, and its **instructions** by the table of that
  version: ``LOAD_FAST a``, ``LOAD_ATTR x``, ``LOAD_CONST 1``, ``BINARY_OP 0``, ``RETURN_VALUE``, each with its offset
  and line (:mod:`.linetable`);
* **checks** (:mod:`.validate`): could the interpreter run this? Code comes from anywhere;
* **operations** (:mod:`.canonical`, by ``rules/``; up to 3.8 :mod:`.unfold` before): ``LOAD_FAST 'a'``,
  ``LOAD_ATTR 'x'``, ``CONST 1``, ``BINARY '+'``, ``RETURN``, the same on every version, with one row of facts each
  (:mod:`.operations`), from which everybody else derives what they ask.

Read :mod:`.operations` first. Refused input raises :class:`.errors.Unreadable`, and nothing else.
"""
