"""Plain values: what happened, what became of it, what it cost and what was allowed.

No I/O, no clock, no trio.
"""
