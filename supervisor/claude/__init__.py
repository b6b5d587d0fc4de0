"""Everything that knows the Claude CLI: what a binary can do, how it is told, what it prints, how it lives and ends.

``probe`` finds and asks the binary, ``command`` writes its command line and environment (pure), ``lines`` and
``stream`` turn its bytes into typed events (pure), ``gather`` sums the events of a run up (pure), ``limits`` says when
a run has gone on for too long (pure), ``process`` starts and watches it over ``pipes``, and ``tree`` ends it with
everything it started. Called from ``climb`` and ``cli``.
"""
