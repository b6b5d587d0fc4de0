"""The guard: every tool call is decided outside the model. Does I/O: a socket and a directory for each run.

``hooks`` makes the CLI ask, ``client`` is the program it asks with, ``post`` the directory in which the two sides meet,
``server`` answers, ``wire`` is what they say to each other, ``bounds`` how long each of them waits.
"""
