"""opsladder: a tiered ops-escalation supervisor around the Claude CLI. No I/O at import."""

__version__ = "0.1.0"
