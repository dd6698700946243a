"""Options of the toy agent."""

from __future__ import annotations

from sessionmgr.adapter import Options


class ToyOptions(Options, frozen=True, kw_only=True):
    """Settings of the toy agent. An unknown one is refused, with the nearest known name."""

    command: tuple[str, ...] = ()
    """The command of the agent; by default the program beside the adapter."""
    keep: bool = True
    """Keep the agent running between runs."""
