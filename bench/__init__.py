"""Benchmarks: `python -m bench` runs all of them, `python -m bench ladder|stream|calls` the ones named.

``ladder`` is the time a whole climb takes against a shell loop, ``stream`` the cost of reading a large stream and
``calls`` the fixed size of an API call. Each prints ratios beside their aims and asserts nothing. Everything is
measured in the run itself, on the real CLIs, with the scripted API on loopback.
"""
