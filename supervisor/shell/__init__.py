"""A shell text in, every simple command it could run out. Pure: no I/O, starts nothing, never raises.

Read for bash and for POSIX shells that agree with it. ``read_shell`` is all there is to call; what it returns is in
``model.reading``. The parts: ``scan`` (words, here-documents, outline) → ``walk`` (structure, by tree-sitter) →
``simple`` (one statement) → ``launch`` (what a command starts in turn) → back to ``walk`` for texts that are scripts
themselves.
"""

from supervisor.shell.read import read_shell

__all__ = ["read_shell"]
