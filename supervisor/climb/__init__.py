"""Carry a cycle up the ladder: record the intent, run one tier, record the outcome, ask again. Does I/O.

``cycle`` is the loop, ``run`` one CLI process, ``launch`` how it is started, ``recorder`` what is kept of it while it
runs and ``entries`` in which form, ``conclude`` what is kept of it afterwards, ``close`` how a cycle is over,
``recovery`` what happens to what a dead supervisor left and ``owner`` how it is known to be dead. ``insist`` bears with
a store that is away, ``files`` knows what lies on disk meanwhile. Nothing here decides: every decision is asked of
``decide``.
"""
