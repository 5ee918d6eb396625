"""The ways to deal with torch's compile caches while a program is watched."""

#: Entries that are made meanwhile are kept apart from others; the caches are left alone; they are used as they are,
#: and what an entry does not hold is missing. (Read while the interpreter starts: nothing is imported here.)
CACHES = ("separate", "bypass", "use")
