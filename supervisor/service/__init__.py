"""What stands on the server for years: schedules turned into cycles, signals, systemd. Does I/O.

``scheduler`` says when something is due, ``daemon`` wires everything together. Called from cli.
"""
