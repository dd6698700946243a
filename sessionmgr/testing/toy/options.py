"""What may be set for the toy agent."""

from __future__ import annotations

from sessionmgr.adapter import Options


class ToyOptions(Options, frozen=True, kw_only=True):
    """The fields are the whole of it: an unknown one is refused, with the nearest known name."""

    command: tuple[str, ...] = ()
    """The agent's program; none is the one that comes with the adapter."""
    keep: bool = True
    """Keep the agent running between runs."""
