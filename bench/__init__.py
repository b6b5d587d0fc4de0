"""Benchmarks: `python -m bench` runs all of them, `python -m bench ladder|stream|calls|guard` the ones named.

``ladder`` is the time a whole climb takes against a shell loop, ``stream`` the cost of reading a large stream,
``calls`` the fixed size of an API call and ``guard`` what it costs to ask before every tool call. Each prints ratios
beside their aims and asserts nothing. Everything is measured in the run itself, on the real CLIs, with the scripted API
on loopback.
"""
