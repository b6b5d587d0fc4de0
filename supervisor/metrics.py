"""Counters and gauges for Prometheus, from the store. Does I/O through the store. Called from web and cli."""
