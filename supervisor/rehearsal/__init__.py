"""Rehearsals: the real CLI climbing a scripted incident, with a Messages API of our own on loopback.

``scenario`` is what the model will say and ``scenario_file`` reads it; ``play`` knows how far each session has come;
``api`` answers the CLI over HTTP (with ``http_wire``, ``question`` and ``sse``) and keeps the ``account``;
``demo_site`` is a small broken web service to practise on. Does network and file I/O; used by commands and tests.
"""
