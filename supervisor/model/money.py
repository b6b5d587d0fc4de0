"""Sums of money as people read them. No I/O. Used by everything that says what was spent."""


def dollars(usd: float) -> str:
    """With four decimals: one call of a cheap model costs a tenth of a cent."""
    return f"${usd:.4f}"
