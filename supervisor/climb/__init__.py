"""Carry a cycle up the ladder: record the intent, run one tier, record the outcome, ask again. Does I/O.

``cycle`` is the loop, ``run`` one CLI process, ``launch`` how it is started, ``recorder`` what is kept of it while it
runs, ``conclude`` what is kept of it afterwards, ``recovery`` what happens to what a dead supervisor left.
Nothing here decides: every decision is asked of ``decide``.
"""
