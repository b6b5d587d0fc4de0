"""Benchmarks: `python -m bench` runs all but the long ones, `python -m bench NAME …` the ones named.

``ladder`` is the time a whole climb takes against a shell loop, ``stream`` the cost of reading a large stream,
``calls`` the fixed size of an API call, ``guard`` what it costs to ask before every tool call and ``recovery`` how long
a start takes that finds a thousand sessions of a dead supervisor. Some take minutes, with a million records:
``records`` is how looking things up slows down, ``scrape`` how much reading the metrics does, ``sweep`` how long a
sweep holds up others' writes. ``service`` is what `opsladder run` costs with 500 cycles at once. Each prints its
figures beside their aims and asserts nothing. Everything is measured in the run itself, on the real CLIs where one is
needed, with the scripted API on loopback.
"""
