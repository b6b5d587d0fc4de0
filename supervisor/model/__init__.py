"""Facts and decisions as frozen dataclasses and enums. Standard library only, no I/O.

One module per subject: ``session`` and ``cycle`` are what is recorded, ``events`` what a CLI prints,
``outcome`` how a run ended, ``report`` what an agent says, ``step`` what happens next, ``handoff`` what
travels when a session cannot be resumed, ``progress`` what a watcher is told while it happens.
"""
